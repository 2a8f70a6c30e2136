// The driver API: arrays, texture objects and surface objects. An array is device memory of rows without gaps; what a
// GPU's layout is, no program can see. Images have one level.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/shim/work.h"

using namespace roofgen::shim;

namespace {

using roofgen::sim::Image;

constexpr unsigned kSurfaces = 2;                                // CUDA_ARRAY3D_SURFACE_LDST
constexpr unsigned kAsIntegers = 1, kNormalisedCoordinates = 2;  // CU_TRSF_...
constexpr unsigned kTrilinear = 0x20, kSeamless = 0x40;          // CU_TRSF_...: without effect on images of one level
constexpr size_t kPitchAlignment = 32;                           // CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT

Status make_array(State& s, const char* call, Handle* out, const Array3dDescriptor* d) {
  CHECK(out && d, kInvalidValue, "null");
  CHECK((d->flags & ~(kLayered | kSurfaces | kGather)) == 0, kNotSupported,
        "flags {:#x}: cubes, sparse or depth arrays", d->flags);
  const bool layered = d->flags & kLayered;
  CHECK(d->width > 0 && (layered || d->depth == 0 || d->height > 0) && (!layered || d->depth > 0), kInvalidValue,
        "an array of {} x {} x {}", d->width, d->height, d->depth);
  constexpr size_t kMost = size_t{1} << 20;  // above all limits of CUDA's, which depend on the kind of array
  CHECK(std::max({d->width, d->height, d->depth}) <= kMost, kInvalidValue, "an array of {} x {} x {}", d->width,
        d->height, d->depth);
  auto array = std::make_unique<Array>();
  array->shape = *d;
  Image image = array->image();
  image.is_surface = true;
  if (const std::string why = image.fault(); !why.empty()) return s.refuse(call, kInvalidValue, why);
  const size_t bytes = image.slice * std::max<size_t>(d->depth, 1);
  const Status status = s.allocate(bytes, &array->at);
  CHECK(status == kSuccess, status, "{} bytes, {} are in use", bytes, s.allocated);
  *out = s.arrays.add(std::move(array));
  return kSuccess;
}

Status find_array(State& s, const char* call, Handle handle, Array** out) {
  *out = s.arrays.find(handle);
  CHECK(*out, kInvalidHandle, "no such array");
  return kSuccess;
}

/// The image of a resource of a texture.
Status image_of(State& s, const char* call, const Resource& r, Image* out) {
  CHECK(r.flags == 0, kInvalidValue, "flags {}", r.flags);
  if (r.type == ResourceType::kArray) {
    Array* array = nullptr;
    if (Status status = find_array(s, call, r.of.array, &array); status != kSuccess) return status;
    *out = array->image();
    return kSuccess;
  }
  CHECK(r.type == ResourceType::kLinear || r.type == ResourceType::kPitch2d, kNotSupported, "mipmapped arrays");
  const bool linear = r.type == ResourceType::kLinear;
  const auto& memory = r.of.memory;
  Image image;
  image.address = memory.at;
  image.format = static_cast<roofgen::sim::TexelFormat>(memory.format);
  image.channels = memory.channels;
  const uint32_t texel = image.texel_bytes();
  CHECK(texel, kInvalidValue, "elements of format {} with {} channels", memory.format, memory.channels);
  image.is_memory = linear;
  image.rank = linear ? 1 : 2;
  const size_t width = linear ? memory.size / texel : memory.size, height = linear ? 1 : memory.height;
  CHECK(width > 0 && width <= 1u << 28 && height > 0 && height <= 1u << 17, kInvalidValue, "{} x {} elements", width,
        height);
  image.dims[0] = static_cast<uint32_t>(width);
  image.dims[1] = static_cast<uint32_t>(height);
  image.pitch = linear ? width * texel : memory.pitch;
  image.slice = image.pitch * height;
  CHECK(linear || (image.pitch >= width * texel && image.pitch % kPitchAlignment == 0), kInvalidValue,
        "rows of {} bytes, {} apart; multiples of {} are possible", width * texel, image.pitch, kPitchAlignment);
  CHECK(s.holds(memory.at, image.pitch * (height - 1) + width * texel), kInvalidValue,
        "{} rows of {} bytes at {:#x} are in no allocation", height, image.pitch, memory.at);
  *out = image;
  return kSuccess;
}

/// An object for kernels: the address of its description.
Status add_object(State& s, const char* call, ImageObject object, const Image& image, unsigned long long* out) {
  if (const std::string why = image.fault(); !why.empty()) return s.refuse(call, kInvalidValue, why);
  std::byte description[roofgen::sim::kImageBytes];
  image.encode(description);
  Address at = 0;
  Status status = s.allocate(sizeof description, &at);
  if (status == kSuccess) status = s.write(at, description, sizeof description);
  if (status == kSuccess) s.image_objects[*out = at] = object;
  return status;
}

Status remove_object(State& s, const char* call, unsigned long long object, bool is_surface) {
  const auto at = s.image_objects.find(object);
  CHECK(at != s.image_objects.end() && at->second.is_surface == is_surface, kInvalidHandle, "no such object");
  s.image_objects.erase(at);
  return s.free(object);
}

template <class T>
Status get(State& s, const char* call, T* out, unsigned long long object, bool is_surface, T ImageObject::*what) {
  const auto at = s.image_objects.find(object);
  CHECK(out && at != s.image_objects.end() && at->second.is_surface == is_surface, kInvalidHandle, "no such object");
  *out = at->second.*what;
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuArrayCreate_v2, kContext, (Handle * out, const ArrayDescriptor* d), {
  CHECK(d, kInvalidValue, "null");
  const Array3dDescriptor shape = {d->width, d->height, 0, d->format, d->channels, 0};
  return make_array(s, call, out, &shape);
})
ROOFGEN_CU(cuArray3DCreate_v2, kContext, (Handle * out, const Array3dDescriptor* d),
           { return make_array(s, call, out, d); })
ROOFGEN_CU(cuArrayGetDescriptor_v2, kContext, (ArrayDescriptor * out, Handle handle), {
  Array* array = nullptr;
  if (Status status = find_array(s, call, handle, &array); status != kSuccess) return status;
  CHECK(out, kInvalidValue, "null");
  *out = {array->shape.width, array->shape.height, array->shape.format, array->shape.channels};
  return kSuccess;
})
ROOFGEN_CU(cuArray3DGetDescriptor_v2, kContext, (Array3dDescriptor * out, Handle handle), {
  Array* array = nullptr;
  if (Status status = find_array(s, call, handle, &array); status != kSuccess) return status;
  CHECK(out, kInvalidValue, "null");
  *out = array->shape;
  return kSuccess;
})
ROOFGEN_CU(cuArrayDestroy, kContext, (Handle handle), {
  Array* array = nullptr;
  if (Status status = find_array(s, call, handle, &array); status != kSuccess) return status;
  const Status status = s.free(array->at);
  s.arrays.remove(handle);
  return status;
})

ROOFGEN_CU(cuTexObjectCreate, kContext,
           (unsigned long long* out, const Resource* resource, const TextureDescription* how, const void* view), {
             CHECK(out && resource && how, kInvalidValue, "null");
             CHECK(!view, kNotSupported, "resource views");
             constexpr unsigned kKnown = kAsIntegers | kNormalisedCoordinates | kTrilinear | kSeamless;
             CHECK((how->flags & ~kKnown) == 0, kNotSupported, "flags {:#x}: sRGB", how->flags);
             Image image;
             if (Status status = image_of(s, call, *resource, &image); status != kSuccess) return status;
             CHECK(how->filter <= 1, kInvalidValue, "filter {}", how->filter);
             // Plain memory has neither, whatever is asked for.
             image.linear = how->filter == 1 && !image.is_memory;
             image.unit_coordinates = (how->flags & kNormalisedCoordinates) && !image.is_memory;
             image.unit_values = !(how->flags & kAsIntegers) && !is_float(image.format) && bytes_of(image.format) < 4;
             for (uint32_t axis = 0; axis < 3; ++axis)
               image.mode[axis] = static_cast<roofgen::sim::AddressMode>(std::min(how->mode[axis], 255u));
             std::copy_n(how->border, 4, image.border);
             return add_object(s, call, {false, *resource, *how}, image, out);
           })
ROOFGEN_CU(cuTexObjectDestroy, kContext, (unsigned long long object), { return remove_object(s, call, object, false); })
ROOFGEN_CU(cuTexObjectGetResourceDesc, kContext, (Resource * out, unsigned long long object),
           { return get(s, call, out, object, false, &ImageObject::resource); })
ROOFGEN_CU(cuTexObjectGetTextureDesc, kContext, (TextureDescription * out, unsigned long long object),
           { return get(s, call, out, object, false, &ImageObject::how); })
ROOFGEN_CU(cuSurfObjectCreate, kContext, (unsigned long long* out, const Resource* resource), {
  CHECK(out && resource, kInvalidValue, "null");
  CHECK(resource->type == ResourceType::kArray, kInvalidValue, "a surface needs an array");
  Array* array = nullptr;
  if (Status status = find_array(s, call, resource->of.array, &array); status != kSuccess) return status;
  CHECK(array->shape.flags & kSurfaces, kInvalidValue, "the array was made without SURFACE_LDST");
  Image image = array->image();
  image.is_surface = true;
  return add_object(s, call, {true, *resource, {}}, image, out);
})
ROOFGEN_CU(cuSurfObjectDestroy, kContext, (unsigned long long object), { return remove_object(s, call, object, true); })
ROOFGEN_CU(cuSurfObjectGetResourceDesc, kContext, (Resource * out, unsigned long long object),
           { return get(s, call, out, object, true, &ImageObject::resource); })

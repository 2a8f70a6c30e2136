// The runtime API: arrays, texture objects and surface objects.
#include <cstring>

#include "runtime/shim/cudart/runtime.h"

using namespace roofgen::shim::cudart;

namespace {

// cudaChannelFormatKind, and the first of CUarray_format for each; the others are for 16 and 32 bits.
enum ChannelKind { kSigned = 0, kUnsigned = 1, kFloat = 2 };
constexpr int kUnsignedFormat = 1, kSignedFormat = 8, kHalfFormat = 16, kFloatFormat = 32;

constexpr unsigned kNormalisedFloat = 1;                         // cudaReadModeNormalizedFloat
constexpr unsigned kAsIntegers = 1, kNormalisedCoordinates = 2;  // CU_TRSF_...

Error format_of(const char* call, const ChannelFormat& c, int* format, unsigned* channels) {
  const int bits[] = {c.x, c.y, c.z, c.w};
  *channels = 0;
  while (*channels < 4 && bits[*channels]) {
    NEED(bits[*channels] == c.x, kInvalidChannelDescriptor, "channels of {} and {} bits", c.x, bits[*channels]);
    ++*channels;
  }
  const int step = c.x == 8 ? 0 : c.x == 16 ? 1 : 2;
  NEED(*channels > 0 && (c.x == 8 || c.x == 16 || c.x == 32) && c.kind >= kSigned && c.kind <= kFloat &&
           (c.kind != kFloat || step > 0),
       kInvalidChannelDescriptor, "channels of {} bits and kind {}", c.x, c.kind);
  *format = c.kind == kFloat ? (step == 1 ? kHalfFormat : kFloatFormat)
                             : (c.kind == kSigned ? kSignedFormat : kUnsignedFormat) + step;
  return kSuccess;
}

ChannelFormat channels_of(int format, unsigned channels) {
  const int bits = 8 * static_cast<int>(bytes_of_format(format));
  return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0,
          format >= kHalfFormat     ? kFloat
          : format >= kSignedFormat ? kSigned
                                    : kUnsigned};
}

Error make_array(const char* call, Handle* out, const ChannelFormat* channels, Volume extent, unsigned flags) {
  NEED(out && channels, kInvalidValue, "null");
  Array3dDescriptor shape = {extent.width, extent.height, extent.depth, 0, 0, flags};
  TRY(format_of(call, *channels, &shape.format, &shape.channels));
  return cuArray3DCreate_v2(out, &shape);
}

Error driver_form(const char* call, const RuntimeResource& r, Resource* out) {
  out->type = static_cast<ResourceType>(r.type);
  out->flags = r.flags;
  if (out->type == ResourceType::kLinear || out->type == ResourceType::kPitch2d) {
    auto& memory = out->of.memory;
    memory = {};
    std::memcpy(&memory.at, &r.of.memory.at, sizeof memory.at);
    TRY(format_of(call, r.of.memory.channels, &memory.format, &memory.channels));
    memory.size = r.of.memory.size;
    if (out->type == ResourceType::kPitch2d) memory.height = r.of.memory.height, memory.pitch = r.of.memory.pitch;
  } else {
    out->of.array = r.of.array;
  }
  return kSuccess;
}

void runtime_form(const Resource& r, RuntimeResource* out) {
  std::memset(out, 0, sizeof *out);
  out->type = static_cast<int>(r.type);
  out->flags = r.flags;
  if (r.type == ResourceType::kLinear || r.type == ResourceType::kPitch2d) {
    const auto& memory = r.of.memory;
    std::memcpy(&out->of.memory.at, &memory.at, sizeof memory.at);
    out->of.memory.channels = channels_of(memory.format, memory.channels);
    out->of.memory.size = memory.size;
    if (r.type == ResourceType::kPitch2d) out->of.memory.height = memory.height, out->of.memory.pitch = memory.pitch;
  } else {
    out->of.array = r.of.array;
  }
}

}  // namespace

ROOFGEN_CUDART(cudaMallocArray,
               (Handle * out, const ChannelFormat* channels, size_t width, size_t height, unsigned flags), {
                 return make_array(call, out, channels, {width, height, 0}, flags);
               })
ROOFGEN_CUDART(cudaMalloc3DArray, (Handle * out, const ChannelFormat* channels, Volume extent, unsigned flags),
               { return make_array(call, out, channels, extent, flags); })
ROOFGEN_CUDART(cudaFreeArray, (Handle array), { return array ? cuArrayDestroy(array) : kSuccess; })
ROOFGEN_CUDART(cudaGetChannelDesc, (ChannelFormat * out, Handle array), {
  NEED(out, kInvalidValue, "null");
  Array3dDescriptor shape;
  TRY(cuArray3DGetDescriptor_v2(&shape, array));
  *out = channels_of(shape.format, shape.channels);
  return kSuccess;
})
ROOFGEN_CUDART(cudaArrayGetInfo, (ChannelFormat * channels, Volume* extent, unsigned* flags, Handle array), {
  Array3dDescriptor shape;
  TRY(cuArray3DGetDescriptor_v2(&shape, array));
  if (channels) *channels = channels_of(shape.format, shape.channels);
  if (extent) *extent = {shape.width, shape.height, shape.depth};
  if (flags) *flags = shape.flags;
  return kSuccess;
})

ROOFGEN_CUDART(cudaCreateTextureObject,
               (unsigned long long* out, const RuntimeResource* resource, const RuntimeTexture* how, const void* view),
               {
                 NEED(out && resource && how, kInvalidValue, "null");
                 NEED(!how->srgb, kNotSupported, "sRGB");
                 Resource of;
                 TRY(driver_form(call, *resource, &of));
                 TextureDescription d;
                 std::memcpy(d.mode, how->mode, sizeof d.mode);
                 std::memcpy(d.border, how->border, sizeof d.border);
                 d.filter = how->filter;
                 d.flags = (how->read_mode == kNormalisedFloat ? 0 : kAsIntegers) |
                           (how->normalised_coordinates ? kNormalisedCoordinates : 0);
                 d.anisotropy = how->anisotropy;
                 d.level_filter = how->level_filter;
                 d.level_bias = how->level_bias;
                 d.least_level = how->least_level;
                 d.most_level = how->most_level;
                 return cuTexObjectCreate(out, &of, &d, view);
               })
PASS(cudaDestroyTextureObject, (unsigned long long object), cuTexObjectDestroy(object))
ROOFGEN_CUDART(cudaGetTextureObjectResourceDesc, (RuntimeResource * out, unsigned long long object), {
  Resource of;
  TRY(cuTexObjectGetResourceDesc(&of, object));
  NEED(out, kInvalidValue, "null");
  return runtime_form(of, out), kSuccess;
})
ROOFGEN_CUDART(cudaGetTextureObjectTextureDesc, (RuntimeTexture * out, unsigned long long object), {
  TextureDescription d;
  TRY(cuTexObjectGetTextureDesc(&d, object));
  NEED(out, kInvalidValue, "null");
  std::memset(out, 0, sizeof *out);
  std::memcpy(out->mode, d.mode, sizeof d.mode);
  std::memcpy(out->border, d.border, sizeof d.border);
  out->filter = d.filter;
  out->read_mode = d.flags & kAsIntegers ? 0 : kNormalisedFloat;
  out->normalised_coordinates = (d.flags & kNormalisedCoordinates) != 0;
  out->anisotropy = d.anisotropy;
  out->level_filter = d.level_filter;
  out->level_bias = d.level_bias;
  out->least_level = d.least_level;
  out->most_level = d.most_level;
  return kSuccess;
})
ROOFGEN_CUDART(cudaCreateSurfaceObject, (unsigned long long* out, const RuntimeResource* resource), {
  NEED(out && resource, kInvalidValue, "null");
  Resource of;
  TRY(driver_form(call, *resource, &of));
  return cuSurfObjectCreate(out, &of);
})
PASS(cudaDestroySurfaceObject, (unsigned long long object), cuSurfObjectDestroy(object))
ROOFGEN_CUDART(cudaGetSurfaceObjectResourceDesc, (RuntimeResource * out, unsigned long long object), {
  Resource of;
  TRY(cuSurfObjectGetResourceDesc(&of, object));
  NEED(out, kInvalidValue, "null");
  return runtime_form(of, out), kSuccess;
})

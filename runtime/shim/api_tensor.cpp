// The driver API: tensor maps.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/shim/state.h"
#include "runtime/sim/tensor_map.h"

using namespace roofgen::shim;

namespace {

using roofgen::sim::TensorData;
using roofgen::sim::TensorView;

/// CUtensorMapDataType: bytes, what out-of-bounds elements are that may be NaN, and elements in a byte.
struct Element {
  uint32_t bytes;
  uint64_t nan;
  TensorData data;
  uint32_t per_byte = 1;
  bool to_tf32 = false;
};
constexpr Element kFloat = {4, 0x7fffffff, TensorData::kF32};
constexpr Element kElements[] = {{1, 0, TensorData::kU8},
                                 {2, 0, TensorData::kU16},
                                 {4, 0, TensorData::kU32},
                                 {4, 0, TensorData::kS32},
                                 {8, 0, TensorData::kU64},
                                 {8, 0, TensorData::kS64},
                                 {2, 0x7fff, TensorData::kF16},
                                 kFloat,
                                 {8, 0x7fffffffffffffff, TensorData::kF64},
                                 {2, 0x7fff, TensorData::kBf16},
                                 kFloat,  // flushes subnormal numbers in reductions
                                 {4, 0x7fffffff, TensorData::kF32, 1, true},
                                 {4, 0x7fffffff, TensorData::kF32, 1, true},
                                 {1, 0, TensorData::kU8, 2}};

/// The rules of cuda.h. Interleaved layouts and elements that are padded in shared memory are not supported.
Status make_view(State& s, const char* call, int type, uint32_t rank, Address address, const uint64_t* dims,
                 const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave, int swizzle,
                 int fill, TensorView* out) {
  CHECK(s.attribute(127), kNotSupported, "the device has no tensor maps; sm_90 and newer have");
  CHECK(rank >= 1 && rank <= roofgen::sim::kMaxTensorRank, kInvalidValue, "{} dimensions; 1 to 5 are possible", rank);
  CHECK(dims && box && steps && (strides || rank == 1), kInvalidValue, "null");
  CHECK(type >= 0 && type < static_cast<int>(std::size(kElements)), kNotSupported, "elements of type {}", type);
  CHECK(interleave == 0, kNotSupported, "interleaved layouts");
  CHECK(swizzle >= 0 && swizzle <= 6 && swizzle != 5, kNotSupported, "swizzle {}", swizzle);
  const Element element = kElements[type];
  CHECK(fill == 0 || (fill == 1 && element.nan), kInvalidValue, "NaN outside of a tensor of integers, or no such fill");
  CHECK(address % 16 == 0, kInvalidValue, "address {:#x} is not a multiple of 16", address);
  TensorView view;
  view.address = address;
  view.rank = rank;
  view.element_bytes = element.bytes;
  view.data = element.data;
  view.per_byte = element.per_byte;
  view.to_tf32 = element.to_tf32;
  view.swizzle_bytes = swizzle > 3 ? 128 : swizzle ? 16u << swizzle : 0;
  view.atom = swizzle == 4 ? 32 : swizzle == 6 ? 64 : 16;
  view.fill = fill ? element.nan : 0;
  for (uint32_t i = 0; i < rank; ++i) {
    CHECK(dims[i] >= 1 && dims[i] <= uint64_t{1} << 32, kInvalidValue, "dimension {} is {}", i, dims[i]);
    CHECK(box[i] >= 1 && box[i] <= 256, kInvalidValue, "side {} of the box is {}; 1 to 256 are possible", i, box[i]);
    CHECK(steps[i] >= 1 && steps[i] <= 8, kInvalidValue, "an element stride of {}", steps[i]);
    const uint32_t unit = i == 0 ? element.per_byte : 1;
    CHECK(dims[i] % unit == 0 && box[i] % unit == 0, kInvalidValue,
          "dimension 0 has {} elements of 4 bits, the box {}; even numbers are possible", dims[i], box[i]);
    view.dims[i] = dims[i] / unit;
    view.box[i] = box[i] / unit;
    if (i) view.steps[i] = steps[i];
    if (i == 0) continue;
    CHECK(strides[i - 1] % 16 == 0 && strides[i - 1] < uint64_t{1} << 40, kInvalidValue,
          "a stride of {} bytes is not a multiple of 16 below 2^40", strides[i - 1]);
    view.strides[i] = strides[i - 1];
  }
  const uint32_t inner = view.box[0] * element.bytes;
  CHECK(inner % 16 == 0, kInvalidValue, "a box {} bytes wide is not a multiple of 16", inner);
  CHECK(swizzle == 0 || inner <= view.swizzle_bytes, kInvalidValue, "a box {} bytes wide does not fit a swizzle of {}",
        inner, view.swizzle_bytes);
  *out = view;
  return kSuccess;
}

Address number(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

ROOFGEN_CU(cuTensorMapEncodeTiled, kDriver,
           (void* out, int type, unsigned rank, void* address, const uint64_t* dims, const uint64_t* strides,
            const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int promotion, int fill),
           {
             CHECK(out && number(out) % 64 == 0, kInvalidValue, "the map is not aligned to 64 bytes");
             CHECK(promotion >= 0 && promotion <= 3, kInvalidValue, "no such L2 promotion");
             TensorView view;
             if (Status status = make_view(s, call, type, rank, number(address), dims, strides, box, steps, interleave,
                                           swizzle, fill, &view);
                 status != kSuccess)
               return status;
             view.encode(static_cast<std::byte*>(out));
             return kSuccess;
           })
ROOFGEN_CU(cuTensorMapEncodeIm2col, kDriver,
           (void* out, int type, unsigned rank, void* address, const uint64_t* dims, const uint64_t* strides,
            const int* lower, const int* upper, unsigned channels, unsigned pixels, const uint32_t* steps,
            int interleave, int swizzle, int promotion, int fill),
           {
             CHECK(out && number(out) % 64 == 0, kInvalidValue, "the map is not aligned to 64 bytes");
             CHECK(promotion >= 0 && promotion <= 3, kInvalidValue, "no such L2 promotion");
             CHECK(rank >= 3 && lower && upper, kInvalidValue, "{} dimensions; 3 to 5 are possible", rank);
             CHECK(pixels >= 1 && pixels <= 1024, kInvalidValue, "{} pixels in a column; 1 to 1024 are possible",
                   pixels);
             const uint32_t box[] = {channels, 1, 1, 1, 1};
             TensorView view;
             if (Status status = make_view(s, call, type, rank, number(address), dims, strides, box, steps, interleave,
                                           swizzle, fill, &view);
                 status != kSuccess)
               return status;
             view.im2col = true;
             view.box[1] = pixels;
             const int limit = rank == 3 ? 32768 : rank == 4 ? 128 : 16;
             for (uint32_t i = 0; i + 2 < rank; ++i) {
               CHECK(std::min(lower[i], upper[i]) >= -limit && std::max(lower[i], upper[i]) < limit, kInvalidValue,
                     "corners {} and {} of dimension {}; {} to {} are possible", lower[i], upper[i], i + 1, -limit,
                     limit - 1);
               CHECK(static_cast<int64_t>(dims[i + 1]) + upper[i] > lower[i], kInvalidValue,
                     "no place between the corners {} and {} of dimension {}", lower[i], upper[i], i + 1);
               view.lower[i] = lower[i];
               view.upper[i] = upper[i];
             }
             view.encode(static_cast<std::byte*>(out));
             return kSuccess;
           })
ROOFGEN_CU(cuTensorMapReplaceAddress, kDriver, (void* map, void* address), {
  CHECK(map && number(map) % 64 == 0 && number(address) % 16 == 0, kInvalidValue, "a misaligned map or address");
  TensorView view;
  CHECK(view.decode(static_cast<const std::byte*>(map)), kInvalidValue, "no tensor map");
  view.address = number(address);
  view.encode(static_cast<std::byte*>(map));
  return kSuccess;
})

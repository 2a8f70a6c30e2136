// The runtime API: memory. All copies become copies in three dimensions of the driver, with unified addresses.
#include <algorithm>
#include <cstring>

#include "runtime/shim/cudart/runtime.h"

using namespace roofgen::shim::cudart;

namespace {

enum Kind { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kByAddress = 4 };

Address address(const void* at) { return reinterpret_cast<uintptr_t>(at); }

Error on_device(const void* at, bool* out) {
  unsigned type = 0, managed = 0;
  int attributes[] = {2, 8};  // MEMORY_TYPE, IS_MANAGED
  void* values[] = {&type, &managed};
  TRY(cuPointerGetAttributes(2, attributes, values, address(at)));
  *out = type == kDeviceMemory || managed;
  return kSuccess;
}

/// Where the kind names device memory, the address must be of device memory.
Error check(const char* call, const void* to, const void* from, int kind) {
  NEED(kind >= kHostToHost && kind <= kByAddress, kInvalidDirection, "kind {}", kind);
  bool there = true;
  if (kind == kHostToDevice || kind == kDeviceToDevice) TRY(on_device(to, &there));
  NEED(there, kInvalidValue, "the destination {} is in no allocation of the device", to);
  if (kind == kDeviceToHost || kind == kDeviceToDevice) TRY(on_device(from, &there));
  NEED(there, kInvalidValue, "the source {} is in no allocation of the device", from);
  return kSuccess;
}

Side3d side(const void* at, size_t pitch, size_t height = 0) {
  Side3d out;
  out.type = kUnifiedMemory;
  out.device = address(at);
  out.pitch = pitch;
  out.height = height;
  return out;
}

Side3d in_array(Handle array) {
  Side3d out;
  out.type = kArrayMemory;
  out.array = array;
  return out;
}
/// From a byte of a row on.
Side3d in_array(Handle array, size_t x, size_t y) {
  Side3d out = in_array(array);
  out.x = x;
  out.y = y;
  return out;
}

Error element_bytes(Handle array, size_t* out) {
  Array3dDescriptor shape;
  TRY(cuArray3DGetDescriptor_v2(&shape, array));
  *out = bytes_of_format(shape.format) * shape.channels;
  return kSuccess;
}

Error copy(const char* call, const Copy3d& c, int kind, Handle stream, bool async) {
  if (c.width == 0 || c.height == 0 || c.depth == 0) return kSuccess;
  void *to = nullptr, *from = nullptr;
  std::memcpy(&to, &c.to.device, sizeof to);
  std::memcpy(&from, &c.from.device, sizeof from);
  const bool to_array = c.to.type == kArrayMemory, from_array = c.from.type == kArrayMemory;
  const bool to_host = kind == kHostToHost || kind == kDeviceToHost,
             of_host = kind == kHostToHost || kind == kHostToDevice;
  NEED(!(to_array && to_host) && !(from_array && of_host), kInvalidDirection, "an array is device memory; kind {}",
       kind);
  if (!to_array && !from_array) TRY(check(call, to, from, kind));
  return async ? cuMemcpy3DAsync_v2(&c, stream) : cuMemcpy3D_v2(&c);
}
Error copy(const char* call, void* to, const void* from, size_t bytes, int kind, Handle stream, bool async) {
  return copy(call, {side(from, bytes), side(to, bytes), bytes, 1, 1}, kind, stream, async);
}
Error copy_2d(const char* call, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
              size_t height, int kind, Handle stream, bool async) {
  return copy(call, {side(from, from_pitch), side(to, to_pitch), width, height, 1}, kind, stream, async);
}

Error driver_form(const char* call, const Copy* c, Copy3d* out) {
  NEED(c, kInvalidValue, "null");
  // Where an array takes part, widths count its elements; so do positions in arrays.
  size_t from_element = 1, to_element = 1;
  if (c->from_array) TRY(element_bytes(c->from_array, &from_element));
  if (c->to_array) TRY(element_bytes(c->to_array, &to_element));
  *out = {c->from_array ? in_array(c->from_array) : side(c->from.at, c->from.pitch, c->from.height),
          c->to_array ? in_array(c->to_array) : side(c->to.at, c->to.pitch, c->to.height),
          c->extent.width * std::max(from_element, to_element), c->extent.height, c->extent.depth};
  out->from.x = c->from_at[0] * from_element, out->from.y = c->from_at[1], out->from.z = c->from_at[2];
  out->to.x = c->to_at[0] * to_element, out->to.y = c->to_at[1], out->to.z = c->to_at[2];
  return kSuccess;
}
Error copy_3d(const char* call, const Copy* c, Handle stream, bool async) {
  Copy3d form;
  TRY(driver_form(call, c, &form));
  return copy(call, form, c->kind, stream, async);
}

/// Part of a variable of the program.
Error part(Runtime& r, const char* call, const void* symbol, size_t bytes, size_t offset, std::byte** out) {
  Address at = 0;
  size_t size = 0;
  TRY(r.variable(call, symbol, &at, &size));
  NEED(offset <= size && bytes <= size - offset, kInvalidValue, "{} bytes at {} of a variable of {}", bytes, offset,
       size);
  at += offset;
  std::memcpy(out, &at, sizeof at);
  return kSuccess;
}

/// `height` rows of each of `depth` slices.
Error fill(Pitched at, int value, Volume extent, Handle stream, bool async) {
  for (size_t z = 0; z < extent.depth; ++z) {
    const Address slice = address(at.at) + z * at.pitch * at.height;
    const auto byte = static_cast<unsigned char>(value);
    TRY(async ? cuMemsetD2D8Async(slice, at.pitch, byte, extent.width, extent.height, stream)
              : cuMemsetD2D8_v2(slice, at.pitch, byte, extent.width, extent.height));
  }
  return kSuccess;
}

}  // namespace

// ---- Allocation ----------------------------------------------------------------------------------------

ROOFGEN_CUDART(cudaMalloc, (Address * out, size_t bytes), {
  NEED(out, kInvalidValue, "null");
  if (bytes == 0) return *out = 0, kSuccess;
  return cuMemAlloc_v2(out, bytes);
})
ROOFGEN_CUDART(cudaMallocPitch, (Address * out, size_t* pitch, size_t width, size_t height),
               { return cuMemAllocPitch_v2(out, pitch, width, height, 4); })
ROOFGEN_CUDART(cudaMalloc3D, (Pitched * out, Volume extent), {
  NEED(out, kInvalidValue, "null");
  Address at = 0;
  size_t pitch = 0;
  TRY(cuMemAllocPitch_v2(&at, &pitch, extent.width, extent.height * extent.depth, 4));
  *out = {nullptr, pitch, extent.width, extent.height};
  std::memcpy(&out->at, &at, sizeof at);
  return kSuccess;
})
PASS(cudaMallocManaged, (Address * out, size_t bytes, unsigned flags), cuMemAllocManaged(out, bytes, flags))
PASS_PTSZ(cudaMallocAsync, (Address * out, size_t bytes, Handle stream), cuMemAllocAsync(out, bytes, stream))
PASS_PTSZ(cudaMallocFromPoolAsync, (Address * out, size_t bytes, Handle pool, Handle stream),
          cuMemAllocFromPoolAsync(out, bytes, pool, stream))
PASS(cudaFree, (void* at), cuMemFree_v2(address(at)))
PASS_PTSZ(cudaFreeAsync, (void* at, Handle stream), cuMemFreeAsync(address(at), stream))
PASS(cudaMallocHost, (void** out, size_t bytes), cuMemHostAlloc(out, bytes, 0))
PASS(cudaHostAlloc, (void** out, size_t bytes, unsigned flags), cuMemHostAlloc(out, bytes, flags))
ROOFGEN_CUDART(cudaFreeHost, (void* at), { return at ? cuMemFreeHost(at) : kSuccess; })
PASS(cudaHostGetDevicePointer, (Address * out, void* at, unsigned flags), cuMemHostGetDevicePointer_v2(out, at, flags))
PASS(cudaHostGetFlags, (unsigned* flags, void* at), cuMemHostGetFlags(flags, at))
PASS(cudaHostRegister, (void* at, size_t bytes, unsigned flags), cuMemHostRegister_v2(at, bytes, flags))
PASS(cudaHostUnregister, (void* at), cuMemHostUnregister(at))
PASS(cudaMemGetInfo, (size_t * free, size_t* total), cuMemGetInfo_v2(free, total))
ROOFGEN_CUDART(cudaPointerGetAttributes, (PointerAttributes * out, const void* at), {
  NEED(out, kInvalidValue, "null");
  unsigned type = 0, managed = 0;
  int attributes[] = {2, 8};  // MEMORY_TYPE, IS_MANAGED
  void* values[] = {&type, &managed};
  TRY(cuPointerGetAttributes(2, attributes, values, address(at)));
  void* const same = const_cast<void*>(at);
  const bool device = type == kDeviceMemory || managed, host = type == kHostMemory || managed || type == 0;
  *out = {managed ? 3 : static_cast<int>(type), type || managed ? 0 : -2, device ? same : nullptr,
          host ? same : nullptr};
  return kSuccess;
})

// Managed memory stays where it is: hints have no effect. The last arguments differ between versions of CUDA.
ROOFGEN_CUDART(cudaMemAdvise, (const void* at, size_t, int, Location), {
  bool there = false;
  TRY(on_device(at, &there));
  NEED(there, kInvalidValue, "no managed memory");
  return kSuccess;
})
ROOFGEN_CUDART_PTSZ(cudaMemPrefetchAsync, (const void* at, size_t, Location, unsigned, Handle), {
  bool there = false;
  TRY(on_device(at, &there));
  NEED(there, kInvalidValue, "no managed memory");
  return kSuccess;
})
PASS_PTSZ(cudaStreamAttachMemAsync, (Handle, void*, size_t, unsigned), kSuccess)

PASS(cudaMemPoolCreate, (Handle * out, const PoolProps* props), cuMemPoolCreate(out, props))
PASS(cudaMemPoolDestroy, (Handle pool), cuMemPoolDestroy(pool))
PASS(cudaMemPoolTrimTo, (Handle pool, size_t bytes), cuMemPoolTrimTo(pool, bytes))
PASS(cudaMemPoolGetAttribute, (Handle pool, int attribute, void* out), cuMemPoolGetAttribute(pool, attribute, out))
PASS(cudaMemPoolSetAttribute, (Handle pool, int attribute, void* value), cuMemPoolSetAttribute(pool, attribute, value))
PASS(cudaMemPoolSetAccess, (Handle pool, const AccessDesc* map, size_t count), cuMemPoolSetAccess(pool, map, count))
PASS(cudaMemPoolGetAccess, (int* flags, Handle pool, Location* at), cuMemPoolGetAccess(flags, pool, at))

// ---- Copies --------------------------------------------------------------------------------------------

ROOFGEN_CUDART_PTDS(cudaMemcpy, (void* to, const void* from, size_t bytes, int kind),
                    { return copy(call, to, from, bytes, kind, nullptr, false); })
ROOFGEN_CUDART_PTSZ(cudaMemcpyAsync, (void* to, const void* from, size_t bytes, int kind, Handle stream),
                    { return copy(call, to, from, bytes, kind, stream, true); })
ROOFGEN_CUDART_PTDS(cudaMemcpy2D,
                    (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                     int kind),
                    { return copy_2d(call, to, to_pitch, from, from_pitch, width, height, kind, nullptr, false); })
ROOFGEN_CUDART_PTSZ(cudaMemcpy2DAsync,
                    (void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                     int kind, Handle stream),
                    { return copy_2d(call, to, to_pitch, from, from_pitch, width, height, kind, stream, true); })
ROOFGEN_CUDART_PTDS(cudaMemcpy3D, (const Copy* c), { return copy_3d(call, c, nullptr, false); })
ROOFGEN_CUDART_PTSZ(cudaMemcpy3DAsync, (const Copy* c, Handle stream), { return copy_3d(call, c, stream, true); })
ROOFGEN_CUDART(cudaMemcpyPeer, (void* to, int to_device, const void* from, int from_device, size_t bytes), {
  NEED(to_device == 0 && from_device == 0, kInvalidDevice, "there is one device");
  return copy(call, to, from, bytes, kDeviceToDevice, nullptr, false);
})
ROOFGEN_CUDART(cudaMemcpyPeerAsync,
               (void* to, int to_device, const void* from, int from_device, size_t bytes, Handle stream), {
                 NEED(to_device == 0 && from_device == 0, kInvalidDevice, "there is one device");
                 return copy(call, to, from, bytes, kDeviceToDevice, stream, true);
               })

/// Bytes that follow each other in an array, from one of a row on: one row, or several whole ones.
Error rows_of(const char* call, Handle array, size_t x, size_t bytes, size_t* width, size_t* height) {
  Array3dDescriptor shape;
  TRY(cuArray3DGetDescriptor_v2(&shape, array));
  const size_t row = shape.width * bytes_of_format(shape.format) * shape.channels;
  NEED(x + bytes <= row || (x == 0 && bytes % row == 0), kInvalidValue, "{} bytes at {} of rows of {}", bytes, x, row);
  *width = std::min(bytes, row);
  *height = bytes / *width;
  return kSuccess;
}

#define COPY_2D_ARRAY(form, suffix, stream, async, ...)                                                             \
  form(cudaMemcpy2DToArray##suffix,                                                                                 \
       (Handle to, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,                 \
        int kind __VA_ARGS__),                                                                                      \
       {                                                                                                            \
         return copy(call, {side(from, pitch), in_array(to, x, y), width, height, 1}, kind, stream, async);         \
       }) form(cudaMemcpy2DFromArray##suffix,                                                                       \
               (void* to, size_t pitch, Handle from, size_t x, size_t y, size_t width, size_t height,               \
                int kind __VA_ARGS__),                                                                              \
               {                                                                                                    \
                 return copy(call, {in_array(from, x, y), side(to, pitch), width, height, 1}, kind, stream, async); \
               })                                                                                                   \
      form(cudaMemcpyToArray##suffix,                                                                               \
           (Handle to, size_t x, size_t y, const void* from, size_t bytes, int kind __VA_ARGS__),                   \
           {                                                                                                        \
             size_t width = 0, height = 0;                                                                          \
             if (bytes == 0) return kSuccess;                                                                       \
             TRY(rows_of(call, to, x, bytes, &width, &height));                                                     \
             return copy(call, {side(from, width), in_array(to, x, y), width, height, 1}, kind, stream, async);     \
           })                                                                                                       \
          form(cudaMemcpyFromArray##suffix,                                                                         \
               (void* to, Handle from, size_t x, size_t y, size_t bytes, int kind __VA_ARGS__), {                   \
                 size_t width = 0, height = 0;                                                                      \
                 if (bytes == 0) return kSuccess;                                                                   \
                 TRY(rows_of(call, from, x, bytes, &width, &height));                                               \
                 return copy(call, {in_array(from, x, y), side(to, width), width, height, 1}, kind, stream, async); \
               })
COPY_2D_ARRAY(ROOFGEN_CUDART_PTDS, , nullptr, false, )
#define WITH_STREAM , Handle stream
COPY_2D_ARRAY(ROOFGEN_CUDART_PTSZ, Async, stream, true, WITH_STREAM)
#undef WITH_STREAM
#undef COPY_2D_ARRAY
ROOFGEN_CUDART_PTDS(cudaMemcpy2DArrayToArray,
                    (Handle to, size_t to_x, size_t to_y, Handle from, size_t from_x, size_t from_y, size_t width,
                     size_t height, int kind),
                    {
                      return copy(call, {in_array(from, from_x, from_y), in_array(to, to_x, to_y), width, height, 1},
                                  kind, nullptr, false);
                    })

#define TO_SYMBOL(name, form, parameters, stream, async)                                                              \
  form(name, parameters, {                                                                                            \
    std::byte* to = nullptr;                                                                                          \
    TRY(part(r, call, symbol, bytes, offset, &to));                                                                   \
    NEED(kind == kHostToDevice || kind == kDeviceToDevice || kind == kByAddress, kInvalidDirection, "kind {}", kind); \
    return copy(call, to, from, bytes, kind, stream, async);                                                          \
  })
#define FROM_SYMBOL(name, form, parameters, stream, async)                                                            \
  form(name, parameters, {                                                                                            \
    std::byte* from = nullptr;                                                                                        \
    TRY(part(r, call, symbol, bytes, offset, &from));                                                                 \
    NEED(kind == kDeviceToHost || kind == kDeviceToDevice || kind == kByAddress, kInvalidDirection, "kind {}", kind); \
    return copy(call, to, from, bytes, kind, stream, async);                                                          \
  })
TO_SYMBOL(cudaMemcpyToSymbol, ROOFGEN_CUDART_PTDS,
          (const void* symbol, const void* from, size_t bytes, size_t offset, int kind), nullptr, false)
TO_SYMBOL(cudaMemcpyToSymbolAsync, ROOFGEN_CUDART_PTSZ,
          (const void* symbol, const void* from, size_t bytes, size_t offset, int kind, Handle stream), stream, true)
FROM_SYMBOL(cudaMemcpyFromSymbol, ROOFGEN_CUDART_PTDS,
            (void* to, const void* symbol, size_t bytes, size_t offset, int kind), nullptr, false)
FROM_SYMBOL(cudaMemcpyFromSymbolAsync, ROOFGEN_CUDART_PTSZ,
            (void* to, const void* symbol, size_t bytes, size_t offset, int kind, Handle stream), stream, true)
ROOFGEN_CUDART(cudaGetSymbolAddress, (Address * out, const void* symbol), {
  NEED(out, kInvalidValue, "null");
  return r.variable(call, symbol, out, nullptr);
})
ROOFGEN_CUDART(cudaGetSymbolSize, (size_t * out, const void* symbol), {
  NEED(out, kInvalidValue, "null");
  return r.variable(call, symbol, nullptr, out);
})

// ---- Memset --------------------------------------------------------------------------------------------

ROOFGEN_CUDART_PTDS(cudaMemset, (void* at, int value, size_t bytes), {
  return fill({at, bytes, 0, 1}, value, {bytes, 1, 1}, nullptr, false);
})
ROOFGEN_CUDART_PTSZ(cudaMemsetAsync, (void* at, int value, size_t bytes, Handle stream), {
  return fill({at, bytes, 0, 1}, value, {bytes, 1, 1}, stream, true);
})
ROOFGEN_CUDART_PTDS(cudaMemset2D, (void* at, size_t pitch, int value, size_t width, size_t height), {
  return fill({at, pitch, 0, height}, value, {width, height, 1}, nullptr, false);
})
ROOFGEN_CUDART_PTSZ(cudaMemset2DAsync, (void* at, size_t pitch, int value, size_t width, size_t height, Handle stream),
                    {
                      return fill({at, pitch, 0, height}, value, {width, height, 1}, stream, true);
                    })
ROOFGEN_CUDART_PTDS(cudaMemset3D, (Pitched at, int value, Volume extent),
                    { return fill(at, value, extent, nullptr, false); })
ROOFGEN_CUDART_PTSZ(cudaMemset3DAsync, (Pitched at, int value, Volume extent, Handle stream),
                    { return fill(at, value, extent, stream, true); })

// ---- Copies and memsets as nodes of graphs -------------------------------------------------------------

ROOFGEN_CUDART(cudaGraphAddMemcpyNode, (Handle * out, Handle graph, const Handle* after, size_t count, const Copy* c), {
  Copy3d form;
  TRY(driver_form(call, c, &form));
  return cuGraphAddMemcpyNode(out, graph, after, count, &form, nullptr);
})
ROOFGEN_CUDART(cudaGraphAddMemcpyNode1D,
               (Handle * out, Handle graph, const Handle* after, size_t count, void* to, const void* from, size_t bytes,
                int kind),
               {
                 TRY(check(call, to, from, kind));
                 const Copy3d form = {side(from, bytes), side(to, bytes), bytes, 1, 1};
                 return cuGraphAddMemcpyNode(out, graph, after, count, &form, nullptr);
               })
ROOFGEN_CUDART(cudaGraphExecMemcpyNodeSetParams, (Handle exec, Handle node, const Copy* c), {
  Copy3d form;
  TRY(driver_form(call, c, &form));
  return cuGraphExecMemcpyNodeSetParams(exec, node, &form, nullptr);
})
ROOFGEN_CUDART(cudaGraphExecMemcpyNodeSetParams1D,
               (Handle exec, Handle node, void* to, const void* from, size_t bytes, int kind), {
                 TRY(check(call, to, from, kind));
                 const Copy3d form = {side(from, bytes), side(to, bytes), bytes, 1, 1};
                 return cuGraphExecMemcpyNodeSetParams(exec, node, &form, nullptr);
               })
PASS(cudaGraphAddMemsetNode, (Handle * out, Handle graph, const Handle* after, size_t count, const MemsetNodeParams* p),
     cuGraphAddMemsetNode(out, graph, after, count, p, nullptr))
PASS(cudaGraphExecMemsetNodeSetParams, (Handle exec, Handle node, const MemsetNodeParams* p),
     cuGraphExecMemsetNodeSetParams(exec, node, p, nullptr))

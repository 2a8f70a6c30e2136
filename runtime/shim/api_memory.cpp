// The driver API: memory. Copies from the host read its memory in the call; copies to the host wait for all queued
// work. These are the guarantees for pageable memory, and also satisfy those for page-locked memory. What a program may
// rely on for the order of its work is less: calls without a stream wait if they copy from or to the host or managed
// memory, copies to pageable memory wait, and all else goes on beside the host.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "runtime/shim/work.h"

using namespace roofgen::shim;

namespace {

std::string span(Address at, size_t bytes) { return fmt::format("{} bytes at {:#x} are in no allocation", bytes, at); }

/// The allocation of an address; 0 bytes if there is none.
struct Pointer {
  bool on_device = false;
  uint64_t base = 0;
  size_t bytes = 0;
};
Pointer look_at(const State& s, Address at) {
  auto after = s.allocations.upper_bound(at);
  if (after != s.allocations.begin() && at - std::prev(after)->first < std::prev(after)->second)
    return {true, std::prev(after)->first, std::prev(after)->second};
  for (const auto& [host, bytes] : s.host_allocations)
    if (const auto base = reinterpret_cast<uintptr_t>(host); at >= base && at - base < bytes)
      return {false, base, bytes};
  if (s.holds(at, 1)) return {true, at, 1};  // a module's variable
  return {};
}
bool is_managed(const State& s, Address at) { return s.managed.count(look_at(s, at).base); }

/// `waits`: a call without a stream.
Status copy(State& s, const char* call, const Copy3d& asked, Handle stream, bool waits = false) {
  Box box;
  if (Status status = make_box(s, call, asked, &box); status != kSuccess) return status;
  Stream* on = s.stream(stream);
  CHECK(on, kInvalidHandle, "no such stream");
  if (box.empty()) return kSuccess;
  const auto queue = [&](Work work) {
    const Status status = s.queue(call, stream, std::move(work));
    if (waits && status == kSuccess) s.races.order().host_waits(s.number_of(stream));
    return status;
  };
  if (on->capture) return s.queue(call, stream, move_later(s, box));
  if (box.from.on_device && box.to.on_device) {
    waits = waits && (is_managed(s, box.from.device) || is_managed(s, box.to.device));
    return queue(move_later(s, box));
  }
  if (!box.to.on_device) {
    const Item item = s.races.submit(s.number_of(stream));
    const bool is_pageable = look_at(s, reinterpret_cast<uintptr_t>(box.to.host)).bytes == 0;
    if (waits || is_pageable) s.races.order().host_waits(s.number_of(stream));
    if (Status status = s.drain(); status != kSuccess) return status;
    s.look_for_races(item, {"a copy", ""}, areas_of(box));
    return move(s, box);
  }
  auto bytes = std::make_shared<std::vector<std::byte>>(box.width * box.height * box.depth);
  Box taken = box;
  taken.to = {false, bytes->data(), 0, box.width, box.width * box.height};
  if (Status status = move(s, taken); status != kSuccess) return status;
  box.from = taken.to;
  return queue({WorkType::kMemcpy, [&s, box, bytes] { return move(s, box); }, nullptr, nullptr, false, areas_of(box)});
}

Copy3d line(Side3d from, Side3d to, size_t bytes) { return {from, to, bytes, 1, 1}; }
Side3d host(const void* at) {
  Side3d side;
  side.type = kHostMemory;
  side.host = const_cast<void*>(at);
  return side;
}
Side3d device(Address at, unsigned type = kDeviceMemory) {
  Side3d side;
  side.type = type;
  side.device = at;
  return side;
}
/// Bytes of an array of one dimension.
Side3d array(Handle handle, size_t at) {
  Side3d side;
  side.type = kArrayMemory;
  side.array = handle;
  side.x = at;
  return side;
}

/// A side by its unified address.
Copy3d any(Address to, Address from, size_t bytes) {
  return line(device(from, kUnifiedMemory), device(to, kUnifiedMemory), bytes);
}

Side3d in_space(const Side2d& side) {
  return {side.x, side.y, 0, 0, side.type, side.host, side.device, side.array, nullptr, side.pitch, 0};
}
Status copy_2d(State& s, const char* call, const Copy2d* c, Handle stream, bool waits = false) {
  CHECK(c, kInvalidValue, "null");
  return copy(s, call, {in_space(c->from), in_space(c->to), c->width, c->height, 1}, stream, waits);
}
Status copy_3d(State& s, const char* call, const Copy3d* c, Handle stream, bool waits = false) {
  CHECK(c, kInvalidValue, "null");
  return copy(s, call, *c, stream, waits);
}

Status fill(State& s, const char* call, const MemsetNodeParams& params, Handle stream) {
  if (params.width == 0 || params.height == 0) return kSuccess;
  Work work;
  if (Status status = make_memset(s, call, params, &work); status != kSuccess) return status;
  return s.queue(call, stream, std::move(work));
}
template <class T>
Status fill(State& s, const char* call, Address at, T value, size_t count, Handle stream) {
  return fill(s, call, {at, 0, value, sizeof value, count, 1}, stream);
}

/// A call without a stream.
Status wait(State& s, Status queued) { return queued == kSuccess ? s.drain() : queued; }
Status wait_for_fill(State& s, Address at, Status queued) {
  if (queued == kSuccess && is_managed(s, at)) s.races.order().host_waits(StreamOrder::kLegacyStream);
  return wait(s, queued);
}

Status host_memory(State& s, const char* call, void** out, size_t bytes) {
  CHECK(out && bytes > 0, kInvalidValue, "nothing to allocate");
  constexpr size_t kPage = 4096;  // as the driver aligns it
  if (bytes > SIZE_MAX - kPage) return kOutOfMemory;
  void* made = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (!made) return kOutOfMemory;
  s.host_allocations[made] = bytes;
  *out = made;
  return kSuccess;
}

Status managed(State& s, const char* call, void* out, size_t bytes) {
  CHECK(out && bytes > 0, kInvalidValue, "nothing to allocate");
  Address at = 0;
  const Status status = s.allocate_managed(bytes, &at);
  CHECK(status == kSuccess, status, "{} bytes, {} are in use", bytes, s.allocated);
  std::memcpy(out, &at, sizeof at);
  return kSuccess;
}

size_t pointer_attribute_bytes(int attribute) {
  switch (attribute) {
    case 2:
    case 8:
    case 9:
    case 13: return 4;
    case 1:
    case 3:
    case 4:
    case 11:
    case 12:
    case 17: return 8;
    default: return 0;
  }
}

Status pointer_attribute(State& s, const char* call, void* out, int attribute, Address at) {
  CHECK(out, kInvalidValue, "null");
  const size_t size = pointer_attribute_bytes(attribute);
  CHECK(size, kNotSupported, "pointer attribute {}", attribute);
  const Pointer p = look_at(s, at);
  CHECK(p.bytes, kInvalidValue, "{}", span(at, 1));
  const bool shared = s.managed.count(p.base);
  CHECK(shared || attribute != (p.on_device ? 4 : 3), kInvalidValue,
        "the pointer is of the other memory (host, device)");
  uint64_t value = 0;
  switch (attribute) {
    case 1: value = reinterpret_cast<uintptr_t>(current.back()); break;  // CONTEXT
    case 2: value = p.on_device ? kDeviceMemory : kHostMemory; break;    // MEMORY_TYPE
    case 3:
    case 4: value = at; break;        // DEVICE_POINTER, HOST_POINTER
    case 8: value = shared; break;    // IS_MANAGED
    case 11: value = p.base; break;   // RANGE_START_ADDR
    case 12: value = p.bytes; break;  // RANGE_SIZE
    case 13: value = 1; break;        // MAPPED
    case 17:                          // MEMPOOL_HANDLE
      if (const auto pool = s.pooled.find(p.base); pool != s.pooled.end())
        value = reinterpret_cast<uintptr_t>(pool->second);
      break;
    default: break;  // DEVICE_ORDINAL: 0
  }
  std::memcpy(out, &value, size);
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuMemAlloc_v2, kContext, (Address * out, size_t bytes), {
  CHECK(out, kInvalidValue, "null");
  const Status status = s.allocate(bytes, out);
  return status == kSuccess ? status
                            : s.refuse(call, status, fmt::format("{} bytes, {} are in use", bytes, s.allocated));
})
ROOFGEN_CU(cuMemAllocPitch_v2, kContext,
           (Address * out, size_t* pitch, size_t width, size_t height, unsigned element_bytes), {
             CHECK(out && pitch && width > 0 && height > 0, kInvalidValue, "nothing to allocate");
             CHECK(element_bytes == 4 || element_bytes == 8 || element_bytes == 16, kInvalidValue,
                   "elements of {} bytes", element_bytes);
             CHECK(width <= SIZE_MAX / 2 && height <= (SIZE_MAX >> 1) / width, kOutOfMemory, "too large");
             *pitch = (width + 511) / 512 *
                      512;  // CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT is 32, allocations are aligned to 512
             const Status status = s.allocate(*pitch * height, out);
             return status == kSuccess
                        ? status
                        : s.refuse(call, status,
                                   fmt::format("{} rows of {} bytes, {} are in use", height, *pitch, s.allocated));
           })
ROOFGEN_CU(cuMemFree_v2, kContext, (Address at), {
  if (at == 0) return kSuccess;
  const Status status = s.free(at);
  return status == kInvalidValue ? s.refuse(call, status, fmt::format("{:#x} is not an allocation", at)) : status;
})
ROOFGEN_CU(cuMemGetInfo_v2, kContext, (size_t * free, size_t* total), {
  CHECK(free && total, kInvalidValue, "null");
  *total = static_cast<size_t>(s.device.at("memory_bytes"));
  *free = *total - s.allocated;
  return kSuccess;
})
ROOFGEN_CU(cuMemGetAddressRange_v2, kContext, (Address * base, size_t* bytes, Address at), {
  auto after = s.allocations.upper_bound(at);
  CHECK(after != s.allocations.begin() && at - std::prev(after)->first < std::prev(after)->second, kNotFound, "{}",
        span(at, 1));
  if (base) *base = std::prev(after)->first;
  if (bytes) *bytes = std::prev(after)->second;
  return kSuccess;
})
ROOFGEN_CU(cuPointerGetAttribute, kContext, (void* out, int attribute, Address at),
           { return pointer_attribute(s, call, out, attribute, at); })
ROOFGEN_CU(cuPointerGetAttributes, kContext, (unsigned count, int* attributes, void** out, Address at), {
  CHECK(count > 0 && attributes && out, kInvalidValue, "null");
  for (unsigned i = 0; i < count; ++i) {
    CHECK(out[i], kInvalidValue, "null");
    const Pointer known = look_at(s, at);
    // For unknown addresses this call succeeds with zeros.
    if (known.bytes == 0 && pointer_attribute_bytes(attributes[i]))
      std::memset(out[i], 0, pointer_attribute_bytes(attributes[i]));
    else if (Status status = pointer_attribute(s, call, out[i], attributes[i], at); status != kSuccess)
      return status;
  }
  return kSuccess;
})
ROOFGEN_CU(cuMemAllocHost_v2, kContext, (void** out, size_t bytes), { return host_memory(s, call, out, bytes); })
ROOFGEN_CU(cuMemHostAlloc, kContext, (void** out, size_t bytes, unsigned flags), {
  if ((flags & 2) == 0) return host_memory(s, call, out, bytes);
  return managed(s, call, out, bytes);  // DEVICEMAP: the host and the device share it
})
ROOFGEN_CU(cuMemFreeHost, kContext, (void* at), {
  if (const auto shared = reinterpret_cast<uintptr_t>(at); s.managed.count(shared)) return s.free(shared);
  CHECK(!s.registered.count(at) && s.host_allocations.count(at), kInvalidValue, "no allocation of cuMemAllocHost");
  if (Status status = s.stop_sharing(at); status != kSuccess) return status;
  s.host_allocations.erase(at);
  std::free(at);
  return kSuccess;
})
ROOFGEN_CU(cuMemHostRegister_v2, kContext, (void* at, size_t bytes, unsigned flags), {
  CHECK(at && bytes > 0, kInvalidValue, "nothing to register");
  CHECK((flags & ~11u) == 0, kNotSupported, "flags {}", flags);  // 4: IOMEMORY
  if (flags & 2 && reinterpret_cast<uintptr_t>(at) % roofgen::sim::kLineBytes)
    s.log(fmt::format(
        "{}: DEVICEMAP without effect: kernels cannot use memory that does not begin at a multiple of 128 bytes",
        call));
  CHECK(look_at(s, reinterpret_cast<uintptr_t>(at)).bytes == 0, 712, "the memory is page-locked already");
  s.host_allocations[at] = bytes;
  s.registered.insert(at);
  return kSuccess;
})
ROOFGEN_CU(cuMemHostUnregister, kContext, (void* at), {
  CHECK(s.registered.count(at), 713, "the memory is not registered");
  if (Status status = s.stop_sharing(at); status != kSuccess) return status;
  s.registered.erase(at);
  s.host_allocations.erase(at);
  return kSuccess;
})
ROOFGEN_CU(cuMemHostGetFlags, kContext, (unsigned* flags, void* at), {
  CHECK(flags && look_at(s, reinterpret_cast<uintptr_t>(at)).bytes && !s.registered.count(at), kInvalidValue,
        "no allocation of cuMemHostAlloc");
  *flags = 1;  // PORTABLE: all contexts share the device
  return kSuccess;
})
ROOFGEN_CU(cuMemHostGetDevicePointer_v2, kContext, (Address * out, void* at, unsigned flags), {
  const auto same = reinterpret_cast<uintptr_t>(at);
  const Pointer p = look_at(s, same);
  CHECK(out && flags == 0, kInvalidValue, "null, or flags");
  CHECK(p.bytes, kInvalidValue, "no allocation of cuMemHostAlloc");
  s.share_page_locked(std::as_bytes(std::span(&same, 1)));
  CHECK(s.managed.count(p.base) || s.shared_host.count(p.base), kNotSupported,
        "registered memory that does not begin at a multiple of 128 bytes");
  *out = same;
  return kSuccess;
})
ROOFGEN_CU(cuMemAllocManaged, kContext, (Address * out, size_t bytes, unsigned flags), {
  CHECK(flags == 1 || flags == 2, kInvalidValue, "flags {}", flags);  // ATTACH_GLOBAL, ATTACH_HOST
  return managed(s, call, out, bytes);
})

ROOFGEN_CU_PTDS(cuMemcpyHtoD_v2, kContext, (Address to, const void* from, size_t bytes),
                { return wait(s, copy(s, call, line(host(from), device(to), bytes), nullptr, true)); })
ROOFGEN_CU_PTSZ(cuMemcpyHtoDAsync_v2, kContext, (Address to, const void* from, size_t bytes, Handle stream),
                { return copy(s, call, line(host(from), device(to), bytes), stream); })
ROOFGEN_CU_PTDS(cuMemcpyDtoH_v2, kContext, (void* to, Address from, size_t bytes),
                { return wait(s, copy(s, call, line(device(from), host(to), bytes), nullptr, true)); })
ROOFGEN_CU_PTSZ(cuMemcpyDtoHAsync_v2, kContext, (void* to, Address from, size_t bytes, Handle stream),
                { return copy(s, call, line(device(from), host(to), bytes), stream); })
ROOFGEN_CU_PTDS(cuMemcpyDtoD_v2, kContext, (Address to, Address from, size_t bytes),
                { return copy(s, call, line(device(from), device(to), bytes), nullptr, true); })
ROOFGEN_CU_PTSZ(cuMemcpyDtoDAsync_v2, kContext, (Address to, Address from, size_t bytes, Handle stream),
                { return copy(s, call, line(device(from), device(to), bytes), stream); })
ROOFGEN_CU_PTDS(cuMemcpy, kContext, (Address to, Address from, size_t bytes),
                { return wait(s, copy(s, call, any(to, from, bytes), nullptr, true)); })
ROOFGEN_CU_PTSZ(cuMemcpyAsync, kContext, (Address to, Address from, size_t bytes, Handle stream),
                { return copy(s, call, any(to, from, bytes), stream); })

ROOFGEN_CU_PTDS(cuMemcpyHtoA_v2, kContext, (Handle to, size_t at, const void* from, size_t bytes),
                { return wait(s, copy(s, call, line(host(from), array(to, at), bytes), nullptr, true)); })
ROOFGEN_CU_PTSZ(cuMemcpyHtoAAsync_v2, kContext, (Handle to, size_t at, const void* from, size_t bytes, Handle stream),
                { return copy(s, call, line(host(from), array(to, at), bytes), stream); })
ROOFGEN_CU_PTDS(cuMemcpyAtoH_v2, kContext, (void* to, Handle from, size_t at, size_t bytes),
                { return wait(s, copy(s, call, line(array(from, at), host(to), bytes), nullptr, true)); })
ROOFGEN_CU_PTSZ(cuMemcpyAtoHAsync_v2, kContext, (void* to, Handle from, size_t at, size_t bytes, Handle stream),
                { return copy(s, call, line(array(from, at), host(to), bytes), stream); })
ROOFGEN_CU_PTDS(cuMemcpyDtoA_v2, kContext, (Handle to, size_t at, Address from, size_t bytes),
                { return copy(s, call, line(device(from), array(to, at), bytes), nullptr, true); })
ROOFGEN_CU_PTDS(cuMemcpyAtoD_v2, kContext, (Address to, Handle from, size_t at, size_t bytes),
                { return copy(s, call, line(array(from, at), device(to), bytes), nullptr, true); })
ROOFGEN_CU_PTDS(cuMemcpyAtoA_v2, kContext, (Handle to, size_t to_at, Handle from, size_t from_at, size_t bytes),
                { return copy(s, call, line(array(from, from_at), array(to, to_at), bytes), nullptr, true); })

#define MEMSET(bits, T)                                                                                       \
  ROOFGEN_CU_PTDS(cuMemsetD##bits##_v2, kContext, (Address at, T value, size_t count),                        \
                  { return wait_for_fill(s, at, fill(s, call, at, value, count, nullptr)); })                 \
  ROOFGEN_CU_PTSZ(cuMemsetD##bits##Async, kContext, (Address at, T value, size_t count, Handle stream),       \
                  { return fill(s, call, at, value, count, stream); })                                        \
  ROOFGEN_CU_PTDS(                                                                                            \
      cuMemsetD2D##bits##_v2, kContext, (Address at, size_t pitch, T value, size_t width, size_t height), {   \
        return wait_for_fill(s, at, fill(s, call, {at, pitch, value, sizeof value, width, height}, nullptr)); \
      })                                                                                                      \
  ROOFGEN_CU_PTSZ(cuMemsetD2D##bits##Async, kContext,                                                         \
                  (Address at, size_t pitch, T value, size_t width, size_t height, Handle stream), {          \
                    return fill(s, call, {at, pitch, value, sizeof value, width, height}, stream);            \
                  })
MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned)
#undef MEMSET

ROOFGEN_CU_PTDS(cuMemcpy2D_v2, kContext, (const Copy2d* c), { return wait(s, copy_2d(s, call, c, nullptr, true)); })
ROOFGEN_CU_PTDS(cuMemcpy2DUnaligned_v2, kContext, (const Copy2d* c),
                { return wait(s, copy_2d(s, call, c, nullptr, true)); })
ROOFGEN_CU_PTSZ(cuMemcpy2DAsync_v2, kContext, (const Copy2d* c, Handle stream), { return copy_2d(s, call, c, stream); })
ROOFGEN_CU_PTDS(cuMemcpy3D_v2, kContext, (const Copy3d* c), { return wait(s, copy_3d(s, call, c, nullptr, true)); })
ROOFGEN_CU_PTSZ(cuMemcpy3DAsync_v2, kContext, (const Copy3d* c, Handle stream), { return copy_3d(s, call, c, stream); })

// The driver API: memory. Copies from the host take its bytes when they are called, copies to it wait for
// all that is queued: what the documentation says of pageable memory, and never less.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "runtime/shim/state.h"

using namespace roofgen::shim;

#define CHECK(condition, status, why) \
  if (!(condition)) return s.refuse(call, status, why)

namespace {

std::string span(Address at, size_t bytes) { return fmt::format("{} bytes at {:#x} are in no allocation", bytes, at); }

Status copy_in(State& s, const char* call, Address to, const void* from, size_t bytes, Handle stream) {
  if (bytes == 0) return kSuccess;
  CHECK(from, kInvalidValue, "null");
  CHECK(s.holds(to, bytes), kInvalidValue, span(to, bytes));
  const auto* begin = static_cast<const std::byte*>(from);
  auto data = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
  return s.queue(call, stream, [&s, to, data] { return s.write(to, data->data(), data->size()); });
}

Status copy_out(State& s, const char* call, void* to, Address from, size_t bytes, Handle stream) {
  if (bytes == 0) return kSuccess;
  CHECK(to, kInvalidValue, "null");
  CHECK(s.holds(from, bytes), kInvalidValue, span(from, bytes));
  Stream* on = s.stream(stream);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kNotSupported, "a copy to the host inside a graph");
  if (Status status = s.drain(); status != kSuccess) return status;
  return s.read(to, from, bytes);
}

Status copy(State& s, const char* call, Address to, Address from, size_t bytes, Handle stream) {
  if (bytes == 0) return kSuccess;
  CHECK(s.holds(to, bytes), kInvalidValue, span(to, bytes));
  CHECK(s.holds(from, bytes), kInvalidValue, span(from, bytes));
  return s.queue(call, stream, [&s, to, from, bytes] {
    std::vector<std::byte> data(bytes);
    const Status status = s.read(data.data(), from, bytes);
    return status == kSuccess ? s.write(to, data.data(), bytes) : status;
  });
}

/// Unified addresses: what is no allocation of the device is the host's.
Status copy_any(State& s, const char* call, Address to, Address from, size_t bytes, Handle stream) {
  const bool device_to = s.holds(to, 1), device_from = s.holds(from, 1);
  void *host_to = nullptr, *host_from = nullptr;
  std::memcpy(&host_to, &to, sizeof to);
  std::memcpy(&host_from, &from, sizeof from);
  if (device_to && device_from) return copy(s, call, to, from, bytes, stream);
  if (device_to) return copy_in(s, call, to, host_from, bytes, stream);
  if (device_from) return copy_out(s, call, host_to, from, bytes, stream);
  return s.refuse(call, kNotSupported, "a copy from host to host");
}

template <class T>
Status fill(State& s, const char* call, Address at, T value, size_t count, Handle stream) {
  if (count == 0) return kSuccess;
  CHECK(count <= SIZE_MAX / sizeof value && s.holds(at, count * sizeof value), kInvalidValue, span(at, count * sizeof value));
  CHECK(at % sizeof value == 0, kInvalidValue, "the address is misaligned");
  return s.queue(call, stream, [&s, at, value, count] { return s.fill(at, &value, sizeof value, count); });
}

/// A call without a stream is done when it returns.
Status wait(State& s, Status queued) { return queued == kSuccess ? s.drain() : queued; }

Status host_memory(State& s, const char* call, void** out, size_t bytes) {
  CHECK(out && bytes > 0, kInvalidValue, "nothing to allocate");
  void* made = std::malloc(bytes);
  if (!made) return kOutOfMemory;
  s.host_allocations[made] = bytes;
  *out = made;
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuMemAlloc_v2, kContext, (Address * out, size_t bytes), {
  CHECK(out, kInvalidValue, "null");
  const Status status = s.allocate(bytes, out);
  return status == kSuccess ? status : s.refuse(call, status, fmt::format("{} bytes, {} are in use", bytes, s.allocated));
})
ROOFGEN_CU(cuMemFree_v2, kContext, (Address at), {
  if (at == 0) return kSuccess;
  const Status status = s.free(at);
  return status == kInvalidValue ? s.refuse(call, status, fmt::format("{:#x} is no allocation", at)) : status;
})
ROOFGEN_CU(cuMemGetInfo_v2, kContext, (size_t* free, size_t* total), {
  CHECK(free && total, kInvalidValue, "null");
  *total = static_cast<size_t>(s.device.at("memory_bytes"));
  *free = *total - s.allocated;
  return kSuccess;
})
ROOFGEN_CU(cuMemGetAddressRange_v2, kContext, (Address * base, size_t* bytes, Address at), {
  auto after = s.allocations.upper_bound(at);
  CHECK(after != s.allocations.begin() && at - std::prev(after)->first < std::prev(after)->second, kNotFound, span(at, 1));
  if (base) *base = std::prev(after)->first;
  if (bytes) *bytes = std::prev(after)->second;
  return kSuccess;
})
ROOFGEN_CU(cuPointerGetAttribute, kContext, (void* out, int attribute, Address at), {
  CHECK(out, kInvalidValue, "null");
  CHECK(attribute == 2, kNotSupported, fmt::format("pointer attribute {}", attribute));  // MEMORY_TYPE
  CHECK(s.holds(at, 1), kInvalidValue, span(at, 1));
  const unsigned device = 2;  // CU_MEMORYTYPE_DEVICE
  std::memcpy(out, &device, sizeof device);
  return kSuccess;
})
ROOFGEN_CU(cuMemAllocHost_v2, kContext, (void** out, size_t bytes), { return host_memory(s, call, out, bytes); })
ROOFGEN_CU(cuMemHostAlloc, kContext, (void** out, size_t bytes, unsigned flags), {
  CHECK((flags & 2) == 0, kNotSupported, "host memory that the device sees");  // DEVICEMAP
  return host_memory(s, call, out, bytes);
})
ROOFGEN_CU(cuMemFreeHost, kContext, (void* at), {
  CHECK(s.host_allocations.erase(at), kInvalidValue, "no allocation of cuMemAllocHost");
  std::free(at);
  return kSuccess;
})
ROOFGEN_CU(cuMemAllocManaged, kContext, (Address*, size_t, unsigned), { return s.refuse(call, kNotSupported, "managed memory"); })

ROOFGEN_CU(cuMemcpyHtoD_v2, kContext, (Address to, const void* from, size_t bytes), { return wait(s, copy_in(s, call, to, from, bytes, nullptr)); })
ROOFGEN_CU(cuMemcpyHtoDAsync_v2, kContext, (Address to, const void* from, size_t bytes, Handle stream), { return copy_in(s, call, to, from, bytes, stream); })
ROOFGEN_CU(cuMemcpyDtoH_v2, kContext, (void* to, Address from, size_t bytes), { return copy_out(s, call, to, from, bytes, nullptr); })
ROOFGEN_CU(cuMemcpyDtoHAsync_v2, kContext, (void* to, Address from, size_t bytes, Handle stream), { return copy_out(s, call, to, from, bytes, stream); })
ROOFGEN_CU(cuMemcpyDtoD_v2, kContext, (Address to, Address from, size_t bytes), { return copy(s, call, to, from, bytes, nullptr); })
ROOFGEN_CU(cuMemcpyDtoDAsync_v2, kContext, (Address to, Address from, size_t bytes, Handle stream), { return copy(s, call, to, from, bytes, stream); })
ROOFGEN_CU(cuMemcpy, kContext, (Address to, Address from, size_t bytes), { return wait(s, copy_any(s, call, to, from, bytes, nullptr)); })
ROOFGEN_CU(cuMemcpyAsync, kContext, (Address to, Address from, size_t bytes, Handle stream), { return copy_any(s, call, to, from, bytes, stream); })
ROOFGEN_CU(cuMemsetD8_v2, kContext, (Address at, unsigned char value, size_t count), { return wait(s, fill(s, call, at, value, count, nullptr)); })
ROOFGEN_CU(cuMemsetD8Async, kContext, (Address at, unsigned char value, size_t count, Handle stream), { return fill(s, call, at, value, count, stream); })
ROOFGEN_CU(cuMemsetD16_v2, kContext, (Address at, unsigned short value, size_t count), { return wait(s, fill(s, call, at, value, count, nullptr)); })
ROOFGEN_CU(cuMemsetD16Async, kContext, (Address at, unsigned short value, size_t count, Handle stream), { return fill(s, call, at, value, count, stream); })
ROOFGEN_CU(cuMemsetD32_v2, kContext, (Address at, unsigned value, size_t count), { return wait(s, fill(s, call, at, value, count, nullptr)); })
ROOFGEN_CU(cuMemsetD32Async, kContext, (Address at, unsigned value, size_t count, Handle stream), { return fill(s, call, at, value, count, stream); })

ROOFGEN_CU_PER_THREAD(cuMemcpyHtoD_v2, _ptds);
ROOFGEN_CU_PER_THREAD(cuMemcpyHtoDAsync_v2, _ptsz);
ROOFGEN_CU_PER_THREAD(cuMemcpyDtoH_v2, _ptds);
ROOFGEN_CU_PER_THREAD(cuMemcpyDtoHAsync_v2, _ptsz);
ROOFGEN_CU_PER_THREAD(cuMemcpyDtoD_v2, _ptds);
ROOFGEN_CU_PER_THREAD(cuMemcpyDtoDAsync_v2, _ptsz);
ROOFGEN_CU_PER_THREAD(cuMemcpy, _ptds);
ROOFGEN_CU_PER_THREAD(cuMemcpyAsync, _ptsz);
ROOFGEN_CU_PER_THREAD(cuMemsetD8_v2, _ptds);
ROOFGEN_CU_PER_THREAD(cuMemsetD8Async, _ptsz);
ROOFGEN_CU_PER_THREAD(cuMemsetD16_v2, _ptds);
ROOFGEN_CU_PER_THREAD(cuMemsetD16Async, _ptsz);
ROOFGEN_CU_PER_THREAD(cuMemsetD32_v2, _ptds);
ROOFGEN_CU_PER_THREAD(cuMemsetD32Async, _ptsz);

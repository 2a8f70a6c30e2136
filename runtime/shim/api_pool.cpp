// The driver API: stream-ordered memory. Allocations take effect in the call, as all streams run in one order; frees
// take effect when the queue reaches them, so that a later kernel which uses the allocation is a finding.
#include <fmt/format.h>

#include <cstring>

#include "runtime/shim/layouts.h"
#include "runtime/shim/state.h"

using namespace roofgen::shim;

namespace {

constexpr int kPinned = 1;     // CU_MEM_ALLOCATION_TYPE_PINNED
constexpr int kReadWrite = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE

/// CUmemPool_attribute.
enum PoolAttribute {
  kFirstReuse = 1,
  kLastReuse = 3,
  kReleaseThreshold,
  kReservedNow,
  kReservedHigh,
  kUsedNow,
  kUsedHigh
};

Status allocate(State& s, const char* call, Address* out, size_t bytes, Pool* pool, Handle handle) {
  const Stream* on = s.stream(handle);
  CHECK(out && bytes > 0, kInvalidValue, "nothing to allocate");
  CHECK(pool, kInvalidValue, "no such pool");
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kNotSupported, "memory of a captured graph");
  if (pool->most_bytes && bytes > pool->most_bytes - pool->used && !s.leaving.empty())  // execute queued frees first
    if (Status ran = s.drain(); ran != kSuccess) return ran;
  CHECK(pool->most_bytes == 0 || bytes <= pool->most_bytes - pool->used, kOutOfMemory,
        "{} bytes, the pool has {} and {} are in use", bytes, pool->most_bytes, pool->used);
  Status status = s.allocate(bytes, out);
  if (status == kOutOfMemory && !s.leaving.empty()) {
    if (Status ran = s.drain(); ran != kSuccess) return ran;
    status = s.allocate(bytes, out);
  }
  CHECK(status == kSuccess, status, "{} bytes, {} are in use", bytes, s.allocated);
  s.pooled[*out] = pool;
  s.look_for_races(s.races.submit(s.number_of(handle)), {"cuMemAllocAsync", "", false, "allocates"},
                   {{*out, bytes, bytes, 1, 0, 1, true}});
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  pool->reserved_high = std::max(pool->reserved_high, pool->used);
  return kSuccess;
}

/// Checks that a pool is for memory of the device.
Status is_here(State& s, const char* call, const Location* at, int type) {
  CHECK(at, kInvalidValue, "null");
  CHECK(at->type == kOnDevice && type == kPinned, kNotSupported, "memory of kind {} at a place of kind {} in a pool",
        type, at->type);
  CHECK(at->id == 0, kInvalidDevice, "device {}", at->id);
  return kSuccess;
}

Status give(State& s, const char* call, Handle* out, Pool* pool) {
  CHECK(out, kInvalidValue, "null");
  *out = pool;
  return kSuccess;
}

Status choose(State& s, const char* call, Handle handle) {
  Pool* pool = s.pools.find(handle);
  CHECK(pool, kInvalidValue, "no such pool");
  s.current_pool = pool;
  return kSuccess;
}

}  // namespace

ROOFGEN_CU_PTSZ(cuMemAllocAsync, kContext, (Address * out, size_t bytes, Handle stream),
                { return allocate(s, call, out, bytes, s.current_pool, stream); })
ROOFGEN_CU_PTSZ(cuMemAllocFromPoolAsync, kContext, (Address * out, size_t bytes, Handle pool, Handle stream),
                { return allocate(s, call, out, bytes, s.pools.find(pool), stream); })
ROOFGEN_CU_PTSZ(cuMemFreeAsync, kContext, (Address at, Handle handle), {
  const Stream* on = s.stream(handle);
  CHECK(on, kInvalidHandle, "no such stream");
  CHECK(!on->capture, kNotSupported, "memory of a captured graph");
  CHECK(s.allocations.count(at) && s.leaving.insert(at).second, kInvalidValue,
        "{:#x} is not an allocation, or is freed already", at);
  const size_t bytes = s.allocations.at(at);
  return s.queue(call, handle,
                 {WorkType::kEmpty,
                  [&s, at] { return s.release(at), kSuccess; },
                  nullptr,
                  nullptr,
                  false,
                  {{at, bytes, bytes, 1, 0, 1, true}}});
})

ROOFGEN_CU(cuDeviceGetDefaultMemPool, kDriver, (Handle * out, int device), {
  CHECK(device == 0, kInvalidDevice, "there is one device");
  return give(s, call, out, s.default_pool);
})
ROOFGEN_CU(cuDeviceGetMemPool, kDriver, (Handle * out, int device), {
  CHECK(device == 0, kInvalidDevice, "there is one device");
  return give(s, call, out, s.current_pool);
})
ROOFGEN_CU(cuDeviceSetMemPool, kDriver, (int device, Handle pool), {
  CHECK(device == 0, kInvalidDevice, "there is one device");
  return choose(s, call, pool);
})
ROOFGEN_CU(cuMemGetDefaultMemPool, kDriver, (Handle * out, Location* at, int type), {
  const Status status = is_here(s, call, at, type);
  return status == kSuccess ? give(s, call, out, s.default_pool) : status;
})
ROOFGEN_CU(cuMemGetMemPool, kDriver, (Handle * out, Location* at, int type), {
  const Status status = is_here(s, call, at, type);
  return status == kSuccess ? give(s, call, out, s.current_pool) : status;
})
ROOFGEN_CU(cuMemSetMemPool, kDriver, (Location * at, int type, Handle pool), {
  const Status status = is_here(s, call, at, type);
  return status == kSuccess ? choose(s, call, pool) : status;
})

ROOFGEN_CU(cuMemPoolCreate, kDriver, (Handle * out, const PoolProps* props), {
  CHECK(out && props, kInvalidValue, "null");
  if (Status status = is_here(s, call, &props->location, props->allocation_type); status != kSuccess) return status;
  CHECK(props->handle_types == 0, kNotSupported, "memory shared with other processes");
  auto pool = std::make_unique<Pool>();
  pool->most_bytes = props->most_bytes;
  *out = s.pools.add(std::move(pool));
  return kSuccess;
})
ROOFGEN_CU(cuMemPoolDestroy, kDriver, (Handle handle), {
  Pool* pool = s.pools.find(handle);
  CHECK(pool && pool != s.default_pool, kInvalidValue, "no such pool, or the default one");
  std::erase_if(s.pooled, [&](const auto& entry) {
    return entry.second == pool;
  });  // its allocations stay valid until they are freed
  if (s.current_pool == pool) s.current_pool = s.default_pool;
  s.pools.remove(handle);
  return kSuccess;
})
ROOFGEN_CU(cuMemPoolTrimTo, kDriver, (Handle handle, size_t), {
  CHECK(s.pools.find(handle), kInvalidValue, "no such pool");
  return kSuccess;  // the pool keeps no freed memory
})
ROOFGEN_CU(cuMemPoolGetAttribute, kDriver, (Handle handle, int attribute, void* out), {
  const Pool* pool = s.pools.find(handle);
  CHECK(pool && out, kInvalidValue, "no such pool");
  CHECK(attribute >= kFirstReuse && attribute <= kUsedHigh, kInvalidValue, "attribute {}", attribute);
  if (attribute <= kLastReuse) {
    std::memcpy(out, &pool->reuse[attribute - kFirstReuse], sizeof(int));
    return kSuccess;
  }
  const uint64_t values[] = {pool->release_threshold, pool->used, pool->reserved_high, pool->used, pool->used_high};
  std::memcpy(out, &values[attribute - kReleaseThreshold], sizeof(uint64_t));
  return kSuccess;
})
ROOFGEN_CU(cuMemPoolSetAttribute, kDriver, (Handle handle, int attribute, void* value), {
  Pool* pool = s.pools.find(handle);
  CHECK(pool && value, kInvalidValue, "no such pool");
  CHECK(attribute >= kFirstReuse && attribute <= kUsedHigh && attribute != kReservedNow && attribute != kUsedNow,
        kInvalidValue, "attribute {}", attribute);
  if (attribute <= kLastReuse) {  // reuse policies have no effect: freed memory is always reused
    std::memcpy(&pool->reuse[attribute - kFirstReuse], value, sizeof(int));
    return kSuccess;
  }
  uint64_t number = 0;
  std::memcpy(&number, value, sizeof number);
  if (attribute == kReleaseThreshold) return pool->release_threshold = number, kSuccess;
  CHECK(number == 0, kInvalidValue, "a high-water mark can only be set to 0");
  (attribute == kUsedHigh ? pool->used_high : pool->reserved_high) = pool->used;  // reset the high-water mark
  return kSuccess;
})
ROOFGEN_CU(cuMemPoolSetAccess, kDriver, (Handle handle, const AccessDesc* map, size_t count), {
  CHECK(s.pools.find(handle) && (map || count == 0), kInvalidValue, "no such pool");
  for (size_t i = 0; i < count; ++i) {
    if (Status status = is_here(s, call, &map[i].location, kPinned); status != kSuccess) return status;
    CHECK(map[i].flags == kReadWrite, kNotSupported, "a device reads and writes its own pools");
  }
  return kSuccess;
})
ROOFGEN_CU(cuMemPoolGetAccess, kDriver, (int* flags, Handle handle, Location* at), {
  CHECK(flags && s.pools.find(handle), kInvalidValue, "no such pool");
  if (Status status = is_here(s, call, at, kPinned); status != kSuccess) return status;
  *flags = kReadWrite;
  return kSuccess;
})

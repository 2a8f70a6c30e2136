// The driver API: the driver itself, the device, contexts.
#include <fmt/format.h>

#include <cstring>

#include "runtime/shim/layouts.h"
#include "runtime/shim/state.h"

using namespace roofgen::shim;

/// Marker symbol: programs that measure times look it up and label them as simulated.
extern "C" {
__attribute__((visibility("default"))) extern const int roofgen_simulated_driver;
const int roofgen_simulated_driver = 1;
}

namespace {

constexpr int kMostAttribute = 147;  // of CUDA 13.0
constexpr int kLimits = 10;          // CU_LIMIT_MAX
constexpr int kKeptLimits = static_cast<int>(std::size(Context().limits));
constexpr char kBusId[] = "0000:00:00.0";
// Fixed: there is one simulated device.
constexpr unsigned char kUuid[16] = {'r', 'o', 'o', 'f', 'g', 'e', 'n', ' ', 's', 'i', 'm', 0, 0, 0, 0, 1};

Status uuid(State& s, const char* call, roofgen::cuda::Uuid* out, int device) {
  if (!out) return s.refuse(call, kInvalidValue, "null");
  if (device != 0) return s.refuse(call, kInvalidDevice, fmt::format("device {}", device));
  std::memcpy(out->bytes, kUuid, sizeof kUuid);
  return kSuccess;
}

void copy_text(char* out, int size, const std::string& text) {
  if (size > 0) out[text.copy(out, static_cast<size_t>(size) - 1)] = '\0';
}

void make_current(Context* context) {
  if (current.empty())
    current.push_back(context);
  else
    current.back() = context;
}

Status create(State& s, const char* call, Handle* out, unsigned flags, int device) {
  if (!out) return s.refuse(call, kInvalidValue, "null");
  if (device != 0) return s.refuse(call, kInvalidDevice, fmt::format("device {}", device));
  auto context = std::make_unique<Context>();
  context->flags = flags;
  Context* made = s.contexts.add(std::move(context));
  current.push_back(made);
  *out = made;
  return kSuccess;
}

void destroy(State& s, Context* context) {
  std::erase(current, context);
  s.contexts.remove(context);
  if (s.contexts.all().empty()) s.wipe();
}

}  // namespace

ROOFGEN_CU(cuInit, kNothing, (unsigned flags), {
  CHECK(flags == 0, kInvalidValue, "flags must be 0");
  return s.initialise();
})
ROOFGEN_CU(cuDriverGetVersion, kNothing, (int* version), {
  CHECK(version, kInvalidValue, "null");
  *version = kVersion;
  return kSuccess;
})
ROOFGEN_CU(cuGetErrorName, kNothing, (Status status, const char** out), {
  if (!out) return kInvalidValue;
  *out = error_name(status);
  return *out ? kSuccess : kInvalidValue;
})
ROOFGEN_CU(cuGetErrorString, kNothing, (Status status, const char** out), {
  if (!out) return kInvalidValue;
  *out = error_text(status);
  return *out ? kSuccess : kInvalidValue;
})
// Callbacks get no message: the log of this driver is a file (ROOFGEN_SIM_LOG).
ROOFGEN_CU(cuLogsRegisterCallback, kDriver, (void (*function)(void*, int, char*, size_t), void*, Handle* out), {
  CHECK(function, kInvalidValue, "null");
  static uintptr_t callbacks = 0;
  ++callbacks;
  if (out) *out = reinterpret_cast<Handle>(callbacks);
  return kSuccess;
})
ROOFGEN_CU(cuLogsUnregisterCallback, kDriver, (Handle callback), {
  CHECK(callback, kInvalidHandle, "null");
  return kSuccess;
})
ROOFGEN_CU(cuDeviceGetCount, kDriver, (int* count), {
  CHECK(count, kInvalidValue, "null");
  *count = 1;
  return kSuccess;
})
ROOFGEN_CU(cuDeviceGet, kDriver, (int* device, int ordinal), {
  CHECK(device, kInvalidValue, "null");
  CHECK(ordinal == 0, kInvalidDevice, "there is one device");
  *device = 0;
  return kSuccess;
})
ROOFGEN_CU(cuDeviceGetName, kDriver, (char* name, int size, int device), {
  CHECK(name && size > 0, kInvalidValue, "no room");
  CHECK(device == 0, kInvalidDevice, "there is one device");
  copy_text(name, size, s.device.driver_names.empty() ? s.device.title : s.device.driver_names.front());
  return kSuccess;
})
ROOFGEN_CU(cuDeviceTotalMem_v2, kDriver, (size_t * bytes, int device), {
  CHECK(bytes, kInvalidValue, "null");
  CHECK(device == 0, kInvalidDevice, "there is one device");
  *bytes = static_cast<size_t>(s.device.at("memory_bytes"));
  return kSuccess;
})
ROOFGEN_CU(cuDeviceGetAttribute, kDriver, (int* value, int attribute, int device), {
  CHECK(value && attribute >= 1 && attribute <= kMostAttribute, kInvalidValue, "attribute {}", attribute);
  CHECK(device == 0, kInvalidDevice, "there is one device");
  *value = s.attribute(attribute);
  return kSuccess;
})
ROOFGEN_CU(cuDeviceComputeCapability, kDriver, (int* major, int* minor, int device), {
  CHECK(major && minor, kInvalidValue, "null");
  CHECK(device == 0, kInvalidDevice, "there is one device");
  *major = s.attribute(75);
  *minor = s.attribute(76);
  return kSuccess;
})
ROOFGEN_CU(cuDeviceGetUuid, kDriver, (roofgen::cuda::Uuid * out, int device), { return uuid(s, call, out, device); })
ROOFGEN_CU(cuDeviceGetUuid_v2, kDriver, (roofgen::cuda::Uuid * out, int device), { return uuid(s, call, out, device); })
ROOFGEN_CU(cuDeviceGetPCIBusId, kDriver, (char* out, int size, int device), {
  CHECK(out && size > 0, kInvalidValue, "no room");
  CHECK(device == 0, kInvalidDevice, "there is one device");
  copy_text(out, size, kBusId);
  return kSuccess;
})

ROOFGEN_CU(cuDeviceCanAccessPeer, kDriver, (int* can, int device, int peer), {
  CHECK(can, kInvalidValue, "null");
  CHECK(device == 0 && peer == 0, kInvalidDevice, "there is one device");
  *can = 0;  // a device is not its own peer
  return kSuccess;
})
ROOFGEN_CU(cuDeviceGetByPCIBusId, kDriver, (int* device, const char* id), {
  CHECK(device && id, kInvalidValue, "null");
  CHECK(std::string_view(id) == kBusId, kInvalidDevice, "no device at {}", id);
  *device = 0;
  return kSuccess;
})

// ---- Contexts: all of them share the one device's memory -----------------------------------------------

ROOFGEN_CU(cuDevicePrimaryCtxRetain, kDriver, (Handle * out, int device), {
  CHECK(out, kInvalidValue, "null");
  CHECK(device == 0, kInvalidDevice, "there is one device");
  if (!s.primary) s.primary = s.contexts.add(std::make_unique<Context>());
  ++s.primary_count;
  *out = s.primary;
  return kSuccess;
})
ROOFGEN_CU(cuDevicePrimaryCtxRelease_v2, kDriver, (int device), {
  CHECK(device == 0, kInvalidDevice, "there is one device");
  CHECK(s.primary_count > 0, kInvalidContext, "the primary context is not retained");
  if (--s.primary_count == 0) {
    destroy(s, s.primary);
    s.primary = nullptr;
  }
  return kSuccess;
})
ROOFGEN_CU(cuDevicePrimaryCtxReset_v2, kDriver, (int device), {
  CHECK(device == 0, kInvalidDevice, "there is one device");
  s.wipe();
  return kSuccess;
})
ROOFGEN_CU(cuDevicePrimaryCtxSetFlags_v2, kDriver, (int device, unsigned), {
  CHECK(device == 0, kInvalidDevice, "there is one device");
  return kSuccess;  // the way in which the host waits has no effect
})
ROOFGEN_CU(cuDevicePrimaryCtxGetState, kDriver, (int device, unsigned* flags, int* active), {
  CHECK(flags && active, kInvalidValue, "null");
  CHECK(device == 0, kInvalidDevice, "there is one device");
  *flags = 0;
  *active = s.primary != nullptr;
  return kSuccess;
})
ROOFGEN_CU(cuCtxCreate_v2, kDriver, (Handle * out, unsigned flags, int device),
           { return create(s, call, out, flags, device); })
ROOFGEN_CU(cuCtxCreate_v3, kDriver, (Handle * out, void* affinity, int count, unsigned flags, int device), {
  CHECK(!affinity && count == 0, kNotSupported, "execution affinity");
  return create(s, call, out, flags, device);
})
ROOFGEN_CU(cuCtxCreate_v4, kDriver, (Handle * out, const ContextParams* p, unsigned flags, int device), {
  CHECK(!p || (!p->affinity && p->affinity_count == 0 && !p->graphics), kNotSupported,
        "execution affinity, or a context shared with graphics");
  return create(s, call, out, flags, device);
})
ROOFGEN_CU(cuCtxDestroy_v2, kDriver, (Handle context), {
  Context* gone = s.contexts.find(context);
  CHECK(gone && gone != s.primary, kInvalidContext, "no such context, or the primary one");
  destroy(s, gone);
  return kSuccess;
})
ROOFGEN_CU(cuCtxAttach, kContext, (Handle * out, unsigned flags), {
  CHECK(out && flags == 0, kInvalidValue, "flags must be 0");
  ++current.back()->uses;
  *out = current.back();
  return kSuccess;
})
ROOFGEN_CU(cuCtxDetach, kContext, (Handle context), {
  CHECK(context == current.back(), kInvalidContext, "the context is not current on this thread");
  CHECK(context != s.primary || current.back()->uses > 1, kInvalidContext, "the primary context was not attached");
  if (--current.back()->uses == 0) destroy(s, current.back());
  return kSuccess;
})
ROOFGEN_CU(cuCtxSetCurrent, kDriver, (Handle context), {
  CHECK(!context || s.contexts.find(context), kInvalidContext, "no such context");
  make_current(s.contexts.find(context));
  return kSuccess;
})
ROOFGEN_CU(cuCtxGetCurrent, kDriver, (Handle * context), {
  CHECK(context, kInvalidValue, "null");
  *context = current.empty() ? nullptr : current.back();
  return kSuccess;
})
ROOFGEN_CU(cuCtxPushCurrent_v2, kDriver, (Handle context), {
  CHECK(s.contexts.find(context), kInvalidContext, "no such context");
  current.push_back(s.contexts.find(context));
  return kSuccess;
})
ROOFGEN_CU(cuCtxPopCurrent_v2, kDriver, (Handle * context), {
  CHECK(!current.empty(), kInvalidContext, "no context is current");
  if (context) *context = current.back();
  current.pop_back();
  return kSuccess;
})
ROOFGEN_CU(cuCtxGetDevice, kContext, (int* device), {
  CHECK(device, kInvalidValue, "null");
  *device = 0;
  return kSuccess;
})
ROOFGEN_CU(cuCtxGetApiVersion, kDriver, (Handle, unsigned* version), {
  CHECK(version, kInvalidValue, "null");
  *version = kVersion;
  return kSuccess;
})
ROOFGEN_CU(cuCtxGetDevice_v2, kDriver, (int* device, Handle context), {
  CHECK(device, kInvalidValue, "null");
  CHECK(context ? s.contexts.find(context) != nullptr : !current.empty() && current.back(), kInvalidContext,
        "no such context");
  *device = 0;
  return kSuccess;
})
ROOFGEN_CU(cuCtxGetFlags, kContext, (unsigned* flags), {
  CHECK(flags, kInvalidValue, "null");
  *flags = current.back()->flags;
  return kSuccess;
})
ROOFGEN_CU(cuCtxSetFlags, kContext, (unsigned flags), {
  CHECK(flags < 0x100, kInvalidValue, "flags {}", flags);
  current.back()->flags = flags;  // the way in which the host waits has no effect
  return kSuccess;
})
ROOFGEN_CU(cuCtxGetId, kDriver, (Handle context, unsigned long long* id), {
  CHECK(id, kInvalidValue, "null");
  const Context* of = context ? s.contexts.find(context) : current.empty() ? nullptr : current.back();
  CHECK(of, kInvalidContext, "no such context");
  *id = reinterpret_cast<uintptr_t>(of);
  return kSuccess;
})
ROOFGEN_CU(cuCtxGetCacheConfig, kContext, (int* config), {
  CHECK(config, kInvalidValue, "null");
  *config = 0;  // no preference
  return kSuccess;
})
ROOFGEN_CU(cuCtxSetCacheConfig, kContext, (int config), {
  CHECK(config >= 0 && config <= 3, kInvalidValue, "no such preference");
  return kSuccess;  // there is no L1 to configure
})
ROOFGEN_CU(cuCtxGetSharedMemConfig, kContext, (int* config), {
  CHECK(config, kInvalidValue, "null");
  *config = 1;  // banks of four bytes
  return kSuccess;
})
ROOFGEN_CU(cuCtxSetSharedMemConfig, kContext, (int config), {
  CHECK(config >= 0 && config <= 2, kInvalidValue, "no such width of banks");
  return kSuccess;  // without effect since sm_50
})
ROOFGEN_CU(cuProfilerStart, kContext, (), { return kSuccess; })  // there is no profiler to control
ROOFGEN_CU(cuProfilerStop, kContext, (), { return kSuccess; })
// Limits are stored and returned, but not enforced: the stack has the size that the kernel needs, the printf buffer is
// unlimited, and kernels that call malloc are refused.
ROOFGEN_CU(cuCtxGetLimit, kContext, (size_t * value, int limit), {
  CHECK(value && limit >= 0 && limit < kLimits, kInvalidValue, "limit {}", limit);
  CHECK(limit < kKeptLimits, kUnsupportedLimit, "limit {}", limit);
  *value = current.back()->limits[limit];
  return kSuccess;
})
ROOFGEN_CU(cuCtxSetLimit, kContext, (int limit, size_t value), {
  CHECK(limit >= 0 && limit < kLimits, kInvalidValue, "limit {}", limit);
  CHECK(limit < kKeptLimits, kUnsupportedLimit, "limit {}", limit);
  current.back()->limits[limit] = value;
  return kSuccess;
})
ROOFGEN_CU(cuCtxSynchronize_v2, kContext, (Handle context), {
  CHECK(!context || s.contexts.find(context), kInvalidContext, "no such context");
  return s.synchronise();
})
ROOFGEN_CU(cuCtxSynchronize, kContext, (), { return s.synchronise(); })
ROOFGEN_CU(cuCtxResetPersistingL2Cache, kContext, (), { return s.refuse(call, kNotSupported, "there is no cache"); })
ROOFGEN_CU(cuCtxGetStreamPriorityRange, kContext, (int* least, int* greatest), {
  if (least) *least = 0;
  if (greatest) *greatest = 0;
  return kSuccess;
})

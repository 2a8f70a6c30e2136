// The CUDA driver by dlopen: its few entry points that roofgen uses, declared by hand so that
// nothing of CUDA is needed to build, and its errors in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "roofgen/result.h"
#include "runtime/executor.h"

namespace roofgen::cuda {

using Status = int;        // CUresult
using Device = int;        // CUdevice
using Address = uint64_t;  // CUdeviceptr; 64-bit on every host roofgen runs on
using Handle = void*;      // CUcontext, CUmodule, CUfunction, CUevent, CUstream

// Numbers from cuda.h, the same in every release since they appeared.
inline constexpr Status kStubLibrary = 34;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kNoBinaryForGpu = 209;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kSystemDriverMismatch = 803;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeMaxSmemOptIn = 97;
inline constexpr int kFunctionMaxDynamicSmem = 8;
inline constexpr int kJitErrorLogBuffer = 5;
inline constexpr int kJitErrorLogBufferSize = 6;

/// The oldest driver accepted, as cuDriverGetVersion counts: CUDA 12.0.
inline constexpr int kMinDriverVersion = 12000;

// member, exported symbol (the _v2 ones are what cuda.h renames to), parameters. cuEventElapsedTime
// is the unversioned one: _v2 exists only since 12.8 and differs in error codes alone.
#define ROOFGEN_CUDA_ENTRY_POINTS(X)                                                                        \
  X(init, "cuInit", unsigned)                                                                               \
  X(driver_version, "cuDriverGetVersion", int*)                                                             \
  X(error_name, "cuGetErrorName", Status, const char**)                                                     \
  X(error_string, "cuGetErrorString", Status, const char**)                                                 \
  X(device_count, "cuDeviceGetCount", int*)                                                                 \
  X(device, "cuDeviceGet", Device*, int)                                                                    \
  X(device_name, "cuDeviceGetName", char*, int, Device)                                                     \
  X(total_memory, "cuDeviceTotalMem_v2", size_t*, Device)                                                   \
  X(device_attribute, "cuDeviceGetAttribute", int*, int, Device)                                            \
  X(retain_context, "cuDevicePrimaryCtxRetain", Handle*, Device)                                            \
  X(release_context, "cuDevicePrimaryCtxRelease_v2", Device)                                                \
  X(set_context, "cuCtxSetCurrent", Handle)                                                                 \
  X(load_module, "cuModuleLoadDataEx", Handle*, const void*, unsigned, int*, void**)                        \
  X(unload_module, "cuModuleUnload", Handle)                                                                \
  X(function, "cuModuleGetFunction", Handle*, Handle, const char*)                                          \
  X(set_function_attribute, "cuFuncSetAttribute", Handle, int, int)                                         \
  X(launch, "cuLaunchKernel", Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    Handle, void**, void**)                                                                                 \
  X(allocate, "cuMemAlloc_v2", Address*, size_t)                                                            \
  X(free, "cuMemFree_v2", Address)                                                                          \
  X(copy_in, "cuMemcpyHtoD_v2", Address, const void*, size_t)                                               \
  X(copy_out, "cuMemcpyDtoH_v2", void*, Address, size_t)                                                    \
  X(fill, "cuMemsetD8_v2", Address, unsigned char, size_t)                                                  \
  X(create_event, "cuEventCreate", Handle*, unsigned)                                                       \
  X(destroy_event, "cuEventDestroy_v2", Handle)                                                             \
  X(record_event, "cuEventRecord", Handle, Handle)                                                          \
  X(wait_event, "cuEventSynchronize", Handle)                                                               \
  X(elapsed_ms, "cuEventElapsedTime", float*, Handle, Handle)

/// The entry points, bound. Loaded once and never unloaded: the driver does not survive that.
struct Driver {
#define ROOFGEN_DECLARE(member, symbol, ...) Status (*member)(__VA_ARGS__) = nullptr;
  ROOFGEN_CUDA_ENTRY_POINTS(ROOFGEN_DECLARE)
#undef ROOFGEN_DECLARE
  int version = 0;  ///< 13000 for CUDA 13.0

  /// Loads, initialises and checks the version. kUnavailable with a plain reason: no driver, only the
  /// toolkit's stub, no GPU, too old.
  static Result<std::unique_ptr<Driver>> open(const std::string& library);

  /// Ok for status 0; else an Error that says what was being done and what the driver calls it.
  Result<void> check(Status status, const std::string& doing) const;
};

/// "13.0" for 13000.
std::string version_text(int version);

/// make_cuda_executor with the driver library named, for tests and for simulated drivers.
Result<std::unique_ptr<GpuExecutor>> make_executor(const std::string& library, int ordinal);

}  // namespace roofgen::cuda

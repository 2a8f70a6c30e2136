// The CUDA driver by dlopen. Its entry points are declared by hand, so that building needs no CUDA files; driver errors
// are turned into messages. tests/runtime/driver_facts_test.cpp compares every number, layout and signature with cuda.h
// if a toolkit is installed.
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
using Address = uint64_t;  // CUdeviceptr; 64-bit on every supported host
using Handle = void*;      // CUcontext, CUmodule, CUfunction, CUevent, CUstream, CUgraph, CUgraphExec

// CUresult. Values from cuda.h, unchanged in every release that has them.
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kStubLibrary = 34;
inline constexpr Status kDeviceUnavailable = 46;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kNoBinaryForGpu = 209;
inline constexpr Status kUnsupportedPtxVersion = 222;
inline constexpr Status kNotReady = 600;
inline constexpr Status kNotSupported = 801;
inline constexpr Status kSystemDriverMismatch = 803;

// CUdevice_attribute
inline constexpr int kAttributeL2Bytes = 38;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeMaxSmemOptIn = 97;
inline constexpr int kAttributeMaxPersistingL2 = 108;
inline constexpr int kAttributeClusterLaunch = 120;
inline constexpr int kAttributeTensorMaps = 127;

// CUfunction_attribute, CUjit_option, flags
inline constexpr int kFunctionMaxDynamicSmem = 8;
inline constexpr int kFunctionBigClusters = 14;
inline constexpr int kJitErrorLogBuffer = 5;
inline constexpr int kJitErrorLogBufferSize = 6;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kCaptureThreadLocal = 1;

using CUstream = Handle;
#include "templates/bundle/driver_types.h"
using LaunchAttribute = CUlaunchAttribute;
using LaunchConfig = CUlaunchConfig;
using TensorMapBytes = CUtensorMap;

/// CUuuid
struct Uuid {
  unsigned char bytes[16] = {};
};

/// The oldest supported driver, in the units of cuDriverGetVersion: CUDA 12.0.
inline constexpr int kMinDriverVersion = 12000;

// Member, exported symbol (cuda.h renames calls to the _v2 symbols) and parameters. cuEventElapsedTime is the
// unversioned symbol: _v2 exists only since 12.8 and differs only in its error codes.
#define ROOFGEN_CUDA_ENTRY_POINTS(X)                                                                                \
  X(init, "cuInit", unsigned)                                                                                       \
  X(driver_version, "cuDriverGetVersion", int*)                                                                     \
  X(error_name, "cuGetErrorName", Status, const char**)                                                             \
  X(error_string, "cuGetErrorString", Status, const char**)                                                         \
  X(device_count, "cuDeviceGetCount", int*)                                                                         \
  X(device, "cuDeviceGet", Device*, int)                                                                            \
  X(device_name, "cuDeviceGetName", char*, int, Device)                                                             \
  X(total_memory, "cuDeviceTotalMem_v2", size_t*, Device)                                                           \
  X(device_attribute, "cuDeviceGetAttribute", int*, int, Device)                                                    \
  X(retain_context, "cuDevicePrimaryCtxRetain", Handle*, Device)                                                    \
  X(release_context, "cuDevicePrimaryCtxRelease_v2", Device)                                                        \
  X(set_context, "cuCtxSetCurrent", Handle)                                                                         \
  X(load_module, "cuModuleLoadDataEx", Handle*, const void*, unsigned, int*, void**)                                \
  X(unload_module, "cuModuleUnload", Handle)                                                                        \
  X(function, "cuModuleGetFunction", Handle*, Handle, const char*)                                                  \
  X(set_function_attribute, "cuFuncSetAttribute", Handle, int, int)                                                 \
  X(launch, "cuLaunchKernel", Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, \
    void**, void**)                                                                                                 \
  X(allocate, "cuMemAlloc_v2", Address*, size_t)                                                                    \
  X(free, "cuMemFree_v2", Address)                                                                                  \
  X(copy_in, "cuMemcpyHtoDAsync_v2", Address, const void*, size_t, Handle)                                          \
  X(copy_out, "cuMemcpyDtoHAsync_v2", void*, Address, size_t, Handle)                                               \
  X(fill, "cuMemsetD8Async", Address, unsigned char, size_t, Handle)                                                \
  X(create_stream, "cuStreamCreate", Handle*, unsigned)                                                             \
  X(destroy_stream, "cuStreamDestroy_v2", Handle)                                                                   \
  X(wait_stream, "cuStreamSynchronize", Handle)                                                                     \
  X(create_event, "cuEventCreate", Handle*, unsigned)                                                               \
  X(destroy_event, "cuEventDestroy_v2", Handle)                                                                     \
  X(record_event, "cuEventRecord", Handle, Handle)                                                                  \
  X(query_event, "cuEventQuery", Handle)                                                                            \
  X(elapsed_ms, "cuEventElapsedTime", float*, Handle, Handle)

// Entry points that a driver may lack. `have` returns an error that names the feature before any call.
#define ROOFGEN_CUDA_OPTIONAL_ENTRY_POINTS(X)                                                            \
  X(memory_info, "cuMemGetInfo_v2", size_t*, size_t*)                                                    \
  X(current_context, "cuCtxGetCurrent", Handle*)                                                         \
  X(push_context, "cuCtxPushCurrent_v2", Handle)                                                         \
  X(pop_context, "cuCtxPopCurrent_v2", Handle*)                                                          \
  X(current_device, "cuCtxGetDevice", Device*)                                                           \
  X(device_uuid, "cuDeviceGetUuid_v2", Uuid*, Device)                                                    \
  X(device_bus_id, "cuDeviceGetPCIBusId", char*, int, Device)                                            \
  X(reset_persisting_l2, "cuCtxResetPersistingL2Cache")                                                  \
  X(load_function, "cuFuncLoad", Handle)                                                                 \
  X(launch_ex, "cuLaunchKernelEx", const LaunchConfig*, Handle, void**, void**)                          \
  X(encode_tensor_map, "cuTensorMapEncodeTiled", TensorMapBytes*, int, uint32_t, void*, const uint64_t*, \
    const uint64_t*, const uint32_t*, const uint32_t*, int, int, int, int)                               \
  X(begin_capture, "cuStreamBeginCapture_v2", Handle, int)                                               \
  X(end_capture, "cuStreamEndCapture", Handle, Handle*)                                                  \
  X(instantiate_graph, "cuGraphInstantiateWithFlags", Handle*, Handle, unsigned long long)               \
  X(upload_graph, "cuGraphUpload", Handle, Handle)                                                       \
  X(launch_graph, "cuGraphLaunch", Handle, Handle)                                                       \
  X(destroy_graph, "cuGraphDestroy", Handle)                                                             \
  X(destroy_graph_exec, "cuGraphExecDestroy", Handle)

/// Exported, with any type, only by driver libraries without a GPU (docs/use/shim.md). Numbers from such a library are
/// never labelled as measured.
inline constexpr char kSimulatedMark[] = "roofgen_simulated_driver";

/// The bound entry points. Loaded once and never unloaded: the driver does not support unloading.
struct Driver {
#define ROOFGEN_DECLARE(member, symbol, ...) Status (*member)(__VA_ARGS__) = nullptr;
  ROOFGEN_CUDA_ENTRY_POINTS(ROOFGEN_DECLARE)
  ROOFGEN_CUDA_OPTIONAL_ENTRY_POINTS(ROOFGEN_DECLARE)
#undef ROOFGEN_DECLARE
  int version = 0;         ///< 13000 for CUDA 13.0
  bool simulated = false;  ///< the library exports kSimulatedMark

  /// Loads and initialises the driver and checks its version. kUnavailable with a reason: no driver, only the toolkit's
  /// stub library, no GPU, or too old.
  static Result<std::unique_ptr<Driver>> open(const std::string& library);

  /// Success for status 0; otherwise an Error with the operation and the driver's name for the status.
  Result<void> check(Status status, const std::string& doing) const;

  /// Success when an optional entry point exists; otherwise an Error with the feature that needs it.
  template <class F>
  Result<void> have(F* entry, const char* what) const {
    return entry ? Result<void>() : lacks(what);
  }

 private:
  Error lacks(const char* what) const;
};

/// The effect of a status on the context: kRefused and kMemory leave it intact, all others destroy it. kLost is only a
/// suspicion: a new process shows whether the GPU is gone.
Fault fault_of(Status status);

/// "13.0" for 13000.
std::string version_text(int version);
Error no_gpu();  ///< of a driver without one

/// "GPU-6f1c0a52-...", as NVML and nvidia-smi write it.
std::string uuid_text(const Uuid& uuid);

/// make_cuda_executor with an explicit driver library, for tests and for simulated drivers.
Result<std::unique_ptr<GpuExecutor>> make_executor(const std::string& library, int ordinal);

/// $ROOFGEN_LIBCUDA, else libcuda.so.1.
std::string default_library();

}  // namespace roofgen::cuda

// The hand-written declarations in runtime/cuda against NVIDIA's header: numbers, layouts, signatures. Compilation
// performs most checks; CMake builds the test only if it finds cuda.h.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#if __has_include(<nvml.h>)
#include <nvml.h>
#endif

#include "runtime/cuda/driver.h"
#include "runtime/cuda/nvml.h"
#include "tests/support/same.h"

namespace roofgen {
namespace {

/// Members of the table, and the functions as the header names them: its macros rename them to the exported symbols.
#define ROOFGEN_MEMBERS(X)                             \
  X(init, cuInit);                                     \
  X(driver_version, cuDriverGetVersion);               \
  X(error_name, cuGetErrorName);                       \
  X(error_string, cuGetErrorString);                   \
  X(device_count, cuDeviceGetCount);                   \
  X(device, cuDeviceGet);                              \
  X(device_name, cuDeviceGetName);                     \
  X(total_memory, cuDeviceTotalMem);                   \
  X(device_attribute, cuDeviceGetAttribute);           \
  X(retain_context, cuDevicePrimaryCtxRetain);         \
  X(release_context, cuDevicePrimaryCtxRelease);       \
  X(set_context, cuCtxSetCurrent);                     \
  X(load_module, cuModuleLoadDataEx);                  \
  X(unload_module, cuModuleUnload);                    \
  X(function, cuModuleGetFunction);                    \
  X(set_function_attribute, cuFuncSetAttribute);       \
  X(launch, cuLaunchKernel);                           \
  X(allocate, cuMemAlloc);                             \
  X(free, cuMemFree);                                  \
  X(copy_in, cuMemcpyHtoDAsync);                       \
  X(copy_out, cuMemcpyDtoHAsync);                      \
  X(fill, cuMemsetD8Async);                            \
  X(create_stream, cuStreamCreate);                    \
  X(destroy_stream, cuStreamDestroy);                  \
  X(wait_stream, cuStreamSynchronize);                 \
  X(create_event, cuEventCreate);                      \
  X(destroy_event, cuEventDestroy);                    \
  X(record_event, cuEventRecord);                      \
  X(query_event, cuEventQuery);                        \
  X(memory_info, cuMemGetInfo);                        \
  X(device_bus_id, cuDeviceGetPCIBusId);               \
  X(reset_persisting_l2, cuCtxResetPersistingL2Cache); \
  X(load_function, cuFuncLoad);                        \
  X(launch_ex, cuLaunchKernelEx);                      \
  X(encode_tensor_map, cuTensorMapEncodeTiled);        \
  X(begin_capture, cuStreamBeginCapture);              \
  X(end_capture, cuStreamEndCapture);                  \
  X(instantiate_graph, cuGraphInstantiateWithFlags);   \
  X(upload_graph, cuGraphUpload);                      \
  X(launch_graph, cuGraphLaunch);                      \
  X(destroy_graph, cuGraphDestroy);                    \
  X(destroy_graph_exec, cuGraphExecDestroy);           \
  X(current_context, cuCtxGetCurrent);                 \
  X(push_context, cuCtxPushCurrent);                   \
  X(pop_context, cuCtxPopCurrent);                     \
  X(current_device, cuCtxGetDevice)
// The header renames these only from 13.0 on; drivers export cuDeviceGetUuid_v2 since 11.4.
#define ROOFGEN_OTHER_MEMBERS(X)     \
  X(elapsed_ms, cuEventElapsedTime); \
  X(device_uuid, cuDeviceGetUuid)

TEST(DriverFacts, EveryEntryPointIsDeclaredAsInTheHeader) {
  int checked = 0;
#define ROOFGEN_SAME(member, function) \
  ++checked;                           \
  static_assert(Same<decltype(cuda::Driver::member), decltype(&::function)>::value, #member " is called wrongly")
  ROOFGEN_MEMBERS(ROOFGEN_SAME);
  ROOFGEN_OTHER_MEMBERS(ROOFGEN_SAME);
  int declared = 0;
#define ROOFGEN_COUNT(...) ++declared;
  ROOFGEN_CUDA_ENTRY_POINTS(ROOFGEN_COUNT)
  ROOFGEN_CUDA_OPTIONAL_ENTRY_POINTS(ROOFGEN_COUNT)
  EXPECT_EQ(checked, declared);
}

TEST(DriverFacts, SymbolsMatchTheHeadersRenaming) {
#define ROOFGEN_TEXT_(x) #x
#define ROOFGEN_TEXT(x) ROOFGEN_TEXT_(x)
  const std::pair<const char*, const char*> symbols[] = {
#define ROOFGEN_SYMBOL(member, symbol, ...) {#member, symbol},
      ROOFGEN_CUDA_ENTRY_POINTS(ROOFGEN_SYMBOL) ROOFGEN_CUDA_OPTIONAL_ENTRY_POINTS(ROOFGEN_SYMBOL)};
  auto symbol_of = [&](std::string_view member) -> std::string {
    for (const auto& [name, symbol] : symbols)
      if (member == name) return symbol;
    return "";
  };
#define ROOFGEN_RENAMED(member, function) EXPECT_EQ(symbol_of(#member), ROOFGEN_TEXT(function))
  ROOFGEN_MEMBERS(ROOFGEN_RENAMED);
}

// Statuses
static_assert(cuda::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(cuda::kStubLibrary == CUDA_ERROR_STUB_LIBRARY);
static_assert(cuda::kDeviceUnavailable == CUDA_ERROR_DEVICE_UNAVAILABLE);
static_assert(cuda::kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(cuda::kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(cuda::kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(cuda::kUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(cuda::kNotReady == CUDA_ERROR_NOT_READY);
static_assert(cuda::kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(cuda::kSystemDriverMismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
// Attributes, options, flags
static_assert(cuda::kAttributeL2Bytes == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
static_assert(cuda::kAttributeMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(cuda::kAttributeMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(cuda::kAttributeMaxSmemOptIn == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(cuda::kAttributeMaxPersistingL2 == CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
static_assert(cuda::kAttributeClusterLaunch == CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
static_assert(cuda::kAttributeTensorMaps == CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED);
static_assert(13 == CU_DEVICE_ATTRIBUTE_CLOCK_RATE && 16 == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(36 == CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE && 37 == CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
static_assert(39 == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
static_assert(81 == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
static_assert(82 == CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
static_assert(106 == CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
static_assert(111 == CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
static_assert(cuda::kFunctionMaxDynamicSmem == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(cuda::kFunctionBigClusters == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
static_assert(cuda::kJitErrorLogBuffer == CU_JIT_ERROR_LOG_BUFFER);
static_assert(cuda::kJitErrorLogBufferSize == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(cuda::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(cuda::kCaptureThreadLocal == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
// Tensor maps
#define SAME(number) static_assert(static_cast<int>(cuda::number) == static_cast<int>(::number))
SAME(CUDA_SUCCESS);
SAME(CUDA_ERROR_INVALID_VALUE);
SAME(CUDA_ERROR_INVALID_IMAGE);
SAME(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
SAME(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(CU_TENSOR_MAP_DATA_TYPE_INT32);
SAME(CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(0 == CU_TENSOR_MAP_INTERLEAVE_NONE && 0 == CU_TENSOR_MAP_SWIZZLE_NONE && 1 == CU_TENSOR_MAP_SWIZZLE_32B);
static_assert(2 == CU_TENSOR_MAP_SWIZZLE_64B && 3 == CU_TENSOR_MAP_SWIZZLE_128B);
static_assert(0 == CU_TENSOR_MAP_L2_PROMOTION_NONE && 1 == CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
static_assert(2 == CU_TENSOR_MAP_L2_PROMOTION_L2_128B && 3 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
static_assert(0 == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && 1 == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
static_assert(sizeof(cuda::TensorMapBytes) == sizeof(CUtensorMap) &&
              alignof(cuda::TensorMapBytes) >= alignof(CUtensorMap));
// Launches
static_assert(sizeof(cuda::LaunchAttribute) == sizeof(CUlaunchAttribute));
static_assert(offsetof(cuda::LaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
static_assert(sizeof(cuda::LaunchConfig) == sizeof(CUlaunchConfig));
static_assert(offsetof(cuda::LaunchConfig, gridDimZ) == offsetof(CUlaunchConfig, gridDimZ));
static_assert(offsetof(cuda::LaunchConfig, blockDimX) == offsetof(CUlaunchConfig, blockDimX));
static_assert(offsetof(cuda::LaunchConfig, sharedMemBytes) == offsetof(CUlaunchConfig, sharedMemBytes));
static_assert(offsetof(cuda::LaunchConfig, hStream) == offsetof(CUlaunchConfig, hStream));
static_assert(offsetof(cuda::LaunchConfig, attrs) == offsetof(CUlaunchConfig, attrs));
static_assert(offsetof(cuda::LaunchConfig, numAttrs) == offsetof(CUlaunchConfig, numAttrs));
static_assert(sizeof(cuda::Uuid) == sizeof(CUuuid) && sizeof(cuda::Address) == sizeof(CUdeviceptr));

#if __has_include(<nvml.h>)
namespace declared {  // declarations with the table's types, named after its members
#define ROOFGEN_TYPE(member, symbol, ...) using member = int (*)(__VA_ARGS__);
using cuda::nvml::ProcessInfo;
namespace nvml = cuda::nvml;
ROOFGEN_NVML_ENTRY_POINTS(ROOFGEN_TYPE)
}  // namespace declared
static_assert(Same<declared::init, decltype(&::nvmlInit)>::value);
static_assert(Same<declared::shutdown, decltype(&::nvmlShutdown)>::value);
static_assert(Same<declared::driver_version, decltype(&::nvmlSystemGetDriverVersion)>::value);
static_assert(Same<declared::by_uuid, decltype(&::nvmlDeviceGetHandleByUUID)>::value);
static_assert(Same<declared::by_bus_id, decltype(&::nvmlDeviceGetHandleByPciBusId)>::value);
static_assert(Same<declared::clock, decltype(&::nvmlDeviceGetClockInfo)>::value);
static_assert(Same<declared::max_clock, decltype(&::nvmlDeviceGetMaxClockInfo)>::value);
static_assert(Same<declared::default_clock, decltype(&::nvmlDeviceGetDefaultApplicationsClock)>::value);
static_assert(Same<declared::power, decltype(&::nvmlDeviceGetPowerUsage)>::value);
static_assert(Same<declared::power_limit, decltype(&::nvmlDeviceGetEnforcedPowerLimit)>::value);
static_assert(Same<declared::temperature, decltype(&::nvmlDeviceGetTemperature)>::value);
static_assert(Same<declared::event_reasons, decltype(&::nvmlDeviceGetCurrentClocksEventReasons)>::value);
static_assert(Same<declared::throttle_reasons, decltype(&::nvmlDeviceGetCurrentClocksThrottleReasons)>::value);
static_assert(Same<declared::processes_v3, decltype(&::nvmlDeviceGetComputeRunningProcesses)>::value);
static_assert(cuda::nvml::kInsufficientSize == NVML_ERROR_INSUFFICIENT_SIZE && 6 == NVML_ERROR_NOT_FOUND);
static_assert(cuda::nvml::kClockSm == NVML_CLOCK_SM && cuda::nvml::kClockMemory == NVML_CLOCK_MEM);
static_assert(cuda::nvml::kTemperatureGpu == NVML_TEMPERATURE_GPU);
static_assert(cuda::nvml::kDriverVersionBytes == NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
static_assert(sizeof(cuda::nvml::ProcessInfo) == sizeof(nvmlProcessInfo_t));
static_assert(offsetof(cuda::nvml::ProcessInfo, used_bytes) == offsetof(nvmlProcessInfo_t, usedGpuMemory));
static_assert(kLimitIdle == nvmlClocksThrottleReasonGpuIdle && kLimitPowerCap == nvmlClocksThrottleReasonSwPowerCap);
static_assert(kLimitHwSlowdown == nvmlClocksThrottleReasonHwSlowdown &&
              kLimitThermalSw == nvmlClocksThrottleReasonSwThermalSlowdown);
static_assert(kLimitThermalHw == nvmlClocksThrottleReasonHwThermalSlowdown &&
              kLimitPowerBrake == nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
#endif

TEST(DriverFacts, StatusesMatchTheHeader) {
  for (int status : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ASSERT, CUDA_ERROR_HARDWARE_STACK_ERROR,
                     CUDA_ERROR_ILLEGAL_INSTRUCTION, CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE,
                     CUDA_ERROR_INVALID_PC, CUDA_ERROR_LAUNCH_FAILED, CUDA_ERROR_CONTEXT_IS_DESTROYED})
    EXPECT_EQ(cuda::fault_of(status), Fault::kKernel) << status;
  for (int status :
       {CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_DEVICE_UNAVAILABLE, CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE,
        CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_NVLINK_UNCORRECTABLE, CUDA_ERROR_SYSTEM_NOT_READY,
        CUDA_ERROR_MPS_CLIENT_TERMINATED, CUDA_ERROR_OPERATING_SYSTEM, CUDA_ERROR_UNKNOWN})
    EXPECT_EQ(cuda::fault_of(status), Fault::kLost) << status;
  for (int status : {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, CUDA_ERROR_NOT_SUPPORTED,
                     CUDA_ERROR_INVALID_PTX, CUDA_ERROR_NOT_FOUND, CUDA_ERROR_INVALID_CLUSTER_SIZE})
    EXPECT_EQ(cuda::fault_of(status), Fault::kRefused) << status;
  EXPECT_EQ(cuda::fault_of(CUDA_SUCCESS), Fault::kNone);
  EXPECT_EQ(cuda::fault_of(CUDA_ERROR_OUT_OF_MEMORY), Fault::kMemory);
  EXPECT_EQ(cuda::fault_of(CUDA_ERROR_LAUNCH_TIMEOUT), Fault::kTimeout);
}

}  // namespace
}  // namespace roofgen

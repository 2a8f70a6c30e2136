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

#define ROOFGEN_SAME(table, member, function) \
  ++checked;                                  \
  static_assert(Same<decltype(table::member), decltype(&function)>::value, #function " is called wrongly")

TEST(DriverFacts, EveryEntryPointIsDeclaredAsInTheHeader) {
  int checked = 0;
  {
    ROOFGEN_SAME(cuda::Driver, init, ::cuInit);
    ROOFGEN_SAME(cuda::Driver, driver_version, ::cuDriverGetVersion);
    ROOFGEN_SAME(cuda::Driver, error_name, ::cuGetErrorName);
    ROOFGEN_SAME(cuda::Driver, error_string, ::cuGetErrorString);
    ROOFGEN_SAME(cuda::Driver, device_count, ::cuDeviceGetCount);
    ROOFGEN_SAME(cuda::Driver, device, ::cuDeviceGet);
    ROOFGEN_SAME(cuda::Driver, device_name, ::cuDeviceGetName);
    ROOFGEN_SAME(cuda::Driver, total_memory, ::cuDeviceTotalMem);
    ROOFGEN_SAME(cuda::Driver, device_attribute, ::cuDeviceGetAttribute);
    ROOFGEN_SAME(cuda::Driver, retain_context, ::cuDevicePrimaryCtxRetain);
    ROOFGEN_SAME(cuda::Driver, release_context, ::cuDevicePrimaryCtxRelease);
    ROOFGEN_SAME(cuda::Driver, set_context, ::cuCtxSetCurrent);
    ROOFGEN_SAME(cuda::Driver, load_module, ::cuModuleLoadDataEx);
    ROOFGEN_SAME(cuda::Driver, unload_module, ::cuModuleUnload);
    ROOFGEN_SAME(cuda::Driver, function, ::cuModuleGetFunction);
    ROOFGEN_SAME(cuda::Driver, set_function_attribute, ::cuFuncSetAttribute);
    ROOFGEN_SAME(cuda::Driver, launch, ::cuLaunchKernel);
    ROOFGEN_SAME(cuda::Driver, allocate, ::cuMemAlloc);
    ROOFGEN_SAME(cuda::Driver, free, ::cuMemFree);
    ROOFGEN_SAME(cuda::Driver, copy_in, ::cuMemcpyHtoDAsync);
    ROOFGEN_SAME(cuda::Driver, copy_out, ::cuMemcpyDtoHAsync);
    ROOFGEN_SAME(cuda::Driver, fill, ::cuMemsetD8Async);
    ROOFGEN_SAME(cuda::Driver, create_stream, ::cuStreamCreate);
    ROOFGEN_SAME(cuda::Driver, destroy_stream, ::cuStreamDestroy);
    ROOFGEN_SAME(cuda::Driver, wait_stream, ::cuStreamSynchronize);
    ROOFGEN_SAME(cuda::Driver, create_event, ::cuEventCreate);
    ROOFGEN_SAME(cuda::Driver, destroy_event, ::cuEventDestroy);
    ROOFGEN_SAME(cuda::Driver, record_event, ::cuEventRecord);
    ROOFGEN_SAME(cuda::Driver, query_event, ::cuEventQuery);
    ROOFGEN_SAME(cuda::Driver, elapsed_ms, ::cuEventElapsedTime);
    ROOFGEN_SAME(cuda::Driver, memory_info, ::cuMemGetInfo);
    ROOFGEN_SAME(cuda::Driver, current_context, ::cuCtxGetCurrent);
    ROOFGEN_SAME(cuda::Driver, push_context, ::cuCtxPushCurrent);
    ROOFGEN_SAME(cuda::Driver, pop_context, ::cuCtxPopCurrent);
    ROOFGEN_SAME(cuda::Driver, current_device, ::cuCtxGetDevice);
    ROOFGEN_SAME(cuda::Driver, device_uuid, ::cuDeviceGetUuid);
    ROOFGEN_SAME(cuda::Driver, device_bus_id, ::cuDeviceGetPCIBusId);
    ROOFGEN_SAME(cuda::Driver, reset_persisting_l2, ::cuCtxResetPersistingL2Cache);
    ROOFGEN_SAME(cuda::Driver, load_function, ::cuFuncLoad);
    ROOFGEN_SAME(cuda::Driver, launch_ex, ::cuLaunchKernelEx);
    ROOFGEN_SAME(cuda::Driver, encode_tensor_map, ::cuTensorMapEncodeTiled);
    ROOFGEN_SAME(cuda::Driver, begin_capture, ::cuStreamBeginCapture);
    ROOFGEN_SAME(cuda::Driver, end_capture, ::cuStreamEndCapture);
    ROOFGEN_SAME(cuda::Driver, instantiate_graph, ::cuGraphInstantiateWithFlags);
    ROOFGEN_SAME(cuda::Driver, upload_graph, ::cuGraphUpload);
    ROOFGEN_SAME(cuda::Driver, launch_graph, ::cuGraphLaunch);
    ROOFGEN_SAME(cuda::Driver, destroy_graph, ::cuGraphDestroy);
    ROOFGEN_SAME(cuda::Driver, destroy_graph_exec, ::cuGraphExecDestroy);
  }
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
  EXPECT_EQ(symbol_of("init"), ROOFGEN_TEXT(cuInit));
  EXPECT_EQ(symbol_of("driver_version"), ROOFGEN_TEXT(cuDriverGetVersion));
  EXPECT_EQ(symbol_of("error_name"), ROOFGEN_TEXT(cuGetErrorName));
  EXPECT_EQ(symbol_of("error_string"), ROOFGEN_TEXT(cuGetErrorString));
  EXPECT_EQ(symbol_of("device_count"), ROOFGEN_TEXT(cuDeviceGetCount));
  EXPECT_EQ(symbol_of("device"), ROOFGEN_TEXT(cuDeviceGet));
  EXPECT_EQ(symbol_of("device_name"), ROOFGEN_TEXT(cuDeviceGetName));
  EXPECT_EQ(symbol_of("total_memory"), ROOFGEN_TEXT(cuDeviceTotalMem));
  EXPECT_EQ(symbol_of("device_attribute"), ROOFGEN_TEXT(cuDeviceGetAttribute));
  EXPECT_EQ(symbol_of("retain_context"), ROOFGEN_TEXT(cuDevicePrimaryCtxRetain));
  EXPECT_EQ(symbol_of("release_context"), ROOFGEN_TEXT(cuDevicePrimaryCtxRelease));
  EXPECT_EQ(symbol_of("set_context"), ROOFGEN_TEXT(cuCtxSetCurrent));
  EXPECT_EQ(symbol_of("load_module"), ROOFGEN_TEXT(cuModuleLoadDataEx));
  EXPECT_EQ(symbol_of("unload_module"), ROOFGEN_TEXT(cuModuleUnload));
  EXPECT_EQ(symbol_of("function"), ROOFGEN_TEXT(cuModuleGetFunction));
  EXPECT_EQ(symbol_of("set_function_attribute"), ROOFGEN_TEXT(cuFuncSetAttribute));
  EXPECT_EQ(symbol_of("launch"), ROOFGEN_TEXT(cuLaunchKernel));
  EXPECT_EQ(symbol_of("allocate"), ROOFGEN_TEXT(cuMemAlloc));
  EXPECT_EQ(symbol_of("free"), ROOFGEN_TEXT(cuMemFree));
  EXPECT_EQ(symbol_of("copy_in"), ROOFGEN_TEXT(cuMemcpyHtoDAsync));
  EXPECT_EQ(symbol_of("copy_out"), ROOFGEN_TEXT(cuMemcpyDtoHAsync));
  EXPECT_EQ(symbol_of("fill"), ROOFGEN_TEXT(cuMemsetD8Async));
  EXPECT_EQ(symbol_of("create_stream"), ROOFGEN_TEXT(cuStreamCreate));
  EXPECT_EQ(symbol_of("destroy_stream"), ROOFGEN_TEXT(cuStreamDestroy));
  EXPECT_EQ(symbol_of("wait_stream"), ROOFGEN_TEXT(cuStreamSynchronize));
  EXPECT_EQ(symbol_of("create_event"), ROOFGEN_TEXT(cuEventCreate));
  EXPECT_EQ(symbol_of("destroy_event"), ROOFGEN_TEXT(cuEventDestroy));
  EXPECT_EQ(symbol_of("record_event"), ROOFGEN_TEXT(cuEventRecord));
  EXPECT_EQ(symbol_of("query_event"), ROOFGEN_TEXT(cuEventQuery));
  EXPECT_EQ(symbol_of("memory_info"), ROOFGEN_TEXT(cuMemGetInfo));
  // The header renames cuDeviceGetUuid only from 13.0 on; drivers export _v2 since 11.4.
  EXPECT_EQ(symbol_of("device_bus_id"), ROOFGEN_TEXT(cuDeviceGetPCIBusId));
  EXPECT_EQ(symbol_of("reset_persisting_l2"), ROOFGEN_TEXT(cuCtxResetPersistingL2Cache));
  EXPECT_EQ(symbol_of("load_function"), ROOFGEN_TEXT(cuFuncLoad));
  EXPECT_EQ(symbol_of("launch_ex"), ROOFGEN_TEXT(cuLaunchKernelEx));
  EXPECT_EQ(symbol_of("encode_tensor_map"), ROOFGEN_TEXT(cuTensorMapEncodeTiled));
  EXPECT_EQ(symbol_of("begin_capture"), ROOFGEN_TEXT(cuStreamBeginCapture));
  EXPECT_EQ(symbol_of("end_capture"), ROOFGEN_TEXT(cuStreamEndCapture));
  EXPECT_EQ(symbol_of("instantiate_graph"), ROOFGEN_TEXT(cuGraphInstantiateWithFlags));
  EXPECT_EQ(symbol_of("upload_graph"), ROOFGEN_TEXT(cuGraphUpload));
  EXPECT_EQ(symbol_of("launch_graph"), ROOFGEN_TEXT(cuGraphLaunch));
  EXPECT_EQ(symbol_of("destroy_graph"), ROOFGEN_TEXT(cuGraphDestroy));
  EXPECT_EQ(symbol_of("destroy_graph_exec"), ROOFGEN_TEXT(cuGraphExecDestroy));
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

// The driver API: entry points by name. A name without its suffix means the newest form that the asked
// version of CUDA knows.
#include <cstring>

// symbol, name, since
#define ROOFGEN_ENTRIES(X) \
  X(cuInit, "cuInit", 0)                                                       \
  X(cuDriverGetVersion, "cuDriverGetVersion", 0)                               \
  X(cuGetErrorName, "cuGetErrorName", 0)                                       \
  X(cuGetErrorString, "cuGetErrorString", 0)                                   \
  X(cuDeviceGetCount, "cuDeviceGetCount", 0)                                   \
  X(cuDeviceGet, "cuDeviceGet", 0)                                             \
  X(cuDeviceGetName, "cuDeviceGetName", 0)                                     \
  X(cuDeviceTotalMem_v2, "cuDeviceTotalMem", 0)                                \
  X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 0)                           \
  X(cuDeviceComputeCapability, "cuDeviceComputeCapability", 0)                 \
  X(cuDeviceGetUuid, "cuDeviceGetUuid", 0)                                     \
  X(cuDeviceGetUuid_v2, "cuDeviceGetUuid", 11040)                              \
  X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 0)                             \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 0)                   \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 0)              \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 0)                  \
  X(cuDevicePrimaryCtxSetFlags_v2, "cuDevicePrimaryCtxSetFlags", 0)            \
  X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 0)               \
  X(cuCtxCreate_v2, "cuCtxCreate", 0)                                          \
  X(cuCtxCreate_v3, "cuCtxCreate", 11040)                                      \
  X(cuCtxCreate_v4, "cuCtxCreate", 12050)                                      \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 0)                                        \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", 0)                                     \
  X(cuCtxGetCurrent, "cuCtxGetCurrent", 0)                                     \
  X(cuCtxPushCurrent_v2, "cuCtxPushCurrent", 0)                                \
  X(cuCtxPopCurrent_v2, "cuCtxPopCurrent", 0)                                  \
  X(cuCtxGetDevice, "cuCtxGetDevice", 0)                                       \
  X(cuCtxGetApiVersion, "cuCtxGetApiVersion", 0)                               \
  X(cuCtxSynchronize, "cuCtxSynchronize", 0)                                   \
  X(cuCtxResetPersistingL2Cache, "cuCtxResetPersistingL2Cache", 0)             \
  X(cuCtxGetStreamPriorityRange, "cuCtxGetStreamPriorityRange", 0)             \
  X(cuMemAlloc_v2, "cuMemAlloc", 0)                                            \
  X(cuMemFree_v2, "cuMemFree", 0)                                              \
  X(cuMemGetInfo_v2, "cuMemGetInfo", 0)                                        \
  X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 0)                        \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", 0)                         \
  X(cuMemAllocHost_v2, "cuMemAllocHost", 0)                                    \
  X(cuMemHostAlloc, "cuMemHostAlloc", 0)                                       \
  X(cuMemFreeHost, "cuMemFreeHost", 0)                                         \
  X(cuMemAllocManaged, "cuMemAllocManaged", 0)                                 \
  X(cuMemcpyHtoD_v2, "cuMemcpyHtoD", 0)                                        \
  X(cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync", 0)                              \
  X(cuMemcpyDtoH_v2, "cuMemcpyDtoH", 0)                                        \
  X(cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync", 0)                              \
  X(cuMemcpyDtoD_v2, "cuMemcpyDtoD", 0)                                        \
  X(cuMemcpyDtoDAsync_v2, "cuMemcpyDtoDAsync", 0)                              \
  X(cuMemcpy, "cuMemcpy", 0)                                                   \
  X(cuMemcpyAsync, "cuMemcpyAsync", 0)                                         \
  X(cuMemsetD8_v2, "cuMemsetD8", 0)                                            \
  X(cuMemsetD8Async, "cuMemsetD8Async", 0)                                     \
  X(cuMemsetD16_v2, "cuMemsetD16", 0)                                          \
  X(cuMemsetD16Async, "cuMemsetD16Async", 0)                                   \
  X(cuMemsetD32_v2, "cuMemsetD32", 0)                                          \
  X(cuMemsetD32Async, "cuMemsetD32Async", 0)                                   \
  X(cuModuleLoadData, "cuModuleLoadData", 0)                                   \
  X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 0)                               \
  X(cuModuleLoadFatBinary, "cuModuleLoadFatBinary", 0)                         \
  X(cuModuleLoad, "cuModuleLoad", 0)                                           \
  X(cuModuleUnload, "cuModuleUnload", 0)                                       \
  X(cuModuleGetFunction, "cuModuleGetFunction", 0)                             \
  X(cuModuleGetGlobal_v2, "cuModuleGetGlobal", 0)                              \
  X(cuModuleGetLoadingMode, "cuModuleGetLoadingMode", 0)                       \
  X(cuLibraryLoadData, "cuLibraryLoadData", 0)                                 \
  X(cuLibraryLoadFromFile, "cuLibraryLoadFromFile", 0)                         \
  X(cuLibraryUnload, "cuLibraryUnload", 0)                                     \
  X(cuLibraryGetKernel, "cuLibraryGetKernel", 0)                               \
  X(cuLibraryGetModule, "cuLibraryGetModule", 0)                               \
  X(cuLibraryGetGlobal, "cuLibraryGetGlobal", 0)                               \
  X(cuKernelGetFunction, "cuKernelGetFunction", 0)                             \
  X(cuKernelGetAttribute, "cuKernelGetAttribute", 0)                           \
  X(cuKernelSetAttribute, "cuKernelSetAttribute", 0)                           \
  X(cuFuncGetAttribute, "cuFuncGetAttribute", 0)                               \
  X(cuFuncSetAttribute, "cuFuncSetAttribute", 0)                               \
  X(cuFuncSetCacheConfig, "cuFuncSetCacheConfig", 0)                           \
  X(cuFuncLoad, "cuFuncLoad", 0)                                               \
  X(cuFuncGetModule, "cuFuncGetModule", 0)                                     \
  X(cuFuncGetName, "cuFuncGetName", 0)                                         \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, "cuOccupancyMaxActiveBlocksPerMultiprocessor", 0) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 0) \
  X(cuLaunchKernel, "cuLaunchKernel", 0)                                       \
  X(cuLaunchKernelEx, "cuLaunchKernelEx", 0)                                   \
  X(cuLaunchCooperativeKernel, "cuLaunchCooperativeKernel", 0)                 \
  X(cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled", 0)                       \
  X(cuStreamCreate, "cuStreamCreate", 0)                                       \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 0)               \
  X(cuStreamDestroy_v2, "cuStreamDestroy", 0)                                  \
  X(cuStreamSynchronize, "cuStreamSynchronize", 0)                             \
  X(cuStreamQuery, "cuStreamQuery", 0)                                         \
  X(cuStreamWaitEvent, "cuStreamWaitEvent", 0)                                 \
  X(cuStreamGetFlags, "cuStreamGetFlags", 0)                                   \
  X(cuStreamGetPriority, "cuStreamGetPriority", 0)                             \
  X(cuStreamIsCapturing, "cuStreamIsCapturing", 0)                             \
  X(cuEventCreate, "cuEventCreate", 0)                                         \
  X(cuEventDestroy_v2, "cuEventDestroy", 0)                                    \
  X(cuEventRecord, "cuEventRecord", 0)                                         \
  X(cuEventRecordWithFlags, "cuEventRecordWithFlags", 0)                       \
  X(cuEventQuery, "cuEventQuery", 0)                                           \
  X(cuEventSynchronize, "cuEventSynchronize", 0)                               \
  X(cuEventElapsedTime, "cuEventElapsedTime", 0)                               \
  X(cuEventElapsedTime_v2, "cuEventElapsedTime", 12080)                        \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 0)                        \
  X(cuStreamEndCapture, "cuStreamEndCapture", 0)                               \
  X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 0)             \
  X(cuGraphUpload, "cuGraphUpload", 0)                                         \
  X(cuGraphLaunch, "cuGraphLaunch", 0)                                         \
  X(cuGraphDestroy, "cuGraphDestroy", 0)                                       \
  X(cuGraphExecDestroy, "cuGraphExecDestroy", 0)

#define X(symbol, name, since) extern "C" void symbol();
// Only their addresses are used; the caller knows their types.
ROOFGEN_ENTRIES(X)
X(cuGetProcAddress, "", 0)
X(cuGetProcAddress_v2, "", 0)
#undef X

namespace {

struct Entry {
  const char *symbol, *name;
  int since;
  void (*address)();
};
constexpr int kFirstV2 = 12000;

const Entry kEntries[] = {
#define X(symbol, name, since) {#symbol, name, since, symbol},
    ROOFGEN_ENTRIES(X)
#undef X
    {"cuGetProcAddress", "cuGetProcAddress", 0, cuGetProcAddress},
    {"cuGetProcAddress_v2", "cuGetProcAddress", kFirstV2, cuGetProcAddress_v2},
};

}  // namespace

namespace roofgen::shim {

/// 0 found, 1 no such symbol, 2 newer than asked for.
int find_entry(const char* name, int version, void** out) {
  const Entry* found = nullptr;
  bool newer = false;
  for (const Entry& e : kEntries) {
    if (std::strcmp(name, e.symbol) != 0 && std::strcmp(name, e.name) != 0) continue;
    if (e.since > version) newer = true;
    else if (!found || e.since >= found->since) found = &e;
  }
  *out = nullptr;
  if (found) std::memcpy(out, &found->address, sizeof found->address);
  return found ? 0 : newer ? 2 : 1;
}

}  // namespace roofgen::shim

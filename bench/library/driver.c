/* The driver of bench/bundle, and the calls that roofgen's own client needs besides; it calls itself simulated. */
#include "bench/bundle/driver.c"

const int roofgen_simulated_driver = 1;

#define NOTHING(name) \
  int name(void) { return 0; }
NOTHING(cuDevicePrimaryCtxRetain)
NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuCtxSetCurrent)
NOTHING(cuMemAlloc_v2)
NOTHING(cuMemFree_v2)
NOTHING(cuMemcpyHtoDAsync_v2)
NOTHING(cuMemcpyDtoHAsync_v2)
NOTHING(cuStreamCreate)
NOTHING(cuStreamDestroy_v2)
NOTHING(cuStreamSynchronize)
NOTHING(cuEventCreate)
NOTHING(cuEventDestroy_v2)
NOTHING(cuEventRecord)
NOTHING(cuEventQuery)
NOTHING(cuEventElapsedTime)
NOTHING(cuDeviceTotalMem_v2)
NOTHING(cuLaunchKernel)
int cuGetErrorName(int status, const char** name) { return (void)status, *name = "no name", 0; }
int cuGetErrorString(int status, const char** text) { return (void)status, *text = "no text", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int size, int device) {
  (void)device, strncpy(name, "NVIDIA H200", (size_t)size);
  return 0;
}

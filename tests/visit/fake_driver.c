/* As much of a CUDA driver as bench/visit/machine.py asks for. With ROOFGEN_SIMULATED it says that it is no real one,
   the way simulated drivers must. */
#include <string.h>

#ifdef ROOFGEN_SIMULATED
int roofgen_simulated_driver = 1;
#endif

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int size, int device) { return strncpy(name, "Fake GPU 9000", (unsigned)size), device; }
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = (unsigned char)(0xf0 + i);
  return device;
}

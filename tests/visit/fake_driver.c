/* The functions of the CUDA driver and of NVML that bench/visit/machine.py calls. ROOFGEN_SIMULATED adds the symbol by
   which simulated drivers identify themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Appends the process that starts NVML to $FAKE_LOG.nvml. */
int nvmlInit_v2(void) {
  char path[4096];
  const char* log = getenv("FAKE_LOG");
  snprintf(path, sizeof path, "%s.nvml", log ? log : "");
  FILE* file = log ? fopen(path, "a") : NULL;
  if (!file) return 1;
  fprintf(file, "%d\n", (int)getpid());
  return fclose(file);
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  *device = device;
  return strcmp(uuid, "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff") == 0 ? 0 : 6;
}
int nvmlDeviceGetMinorNumber(void* device, unsigned* minor) { return *minor = 99999, device == NULL; }

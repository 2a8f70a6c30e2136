/* The driver calls of a bundle, which do nothing: what is left of a launch is the bundle's own work. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef VERSION
#define VERSION 13000
#endif
int cuDriverGetVersion(int* version) { return *version = VERSION, 0; }
int cuInit(unsigned flags) { return (void)flags, 0; }
int cuCtxGetCurrent(void** context) { return *context = (void*)8, 0; }
int cuCtxPushCurrent_v2(void* context) { return (void)context, 0; }
int cuCtxPopCurrent_v2(void** context) { return *context = NULL, 0; }
int cuCtxGetDevice(int* device) { return *device = 0; }
int cuDeviceGetAttribute(int* out, int which, int device) {
  return (void)device, *out = which == 75 ? 9 : 0, 0; /* 9.0 */
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned count, void* options, void** values) {
  return (void)image, (void)count, (void)options, (void)values, *module = (void*)8, 0;
}
int cuModuleUnload(void* module) { return (void)module, 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return (void)module, (void)name, *function = (void*)8, 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return (void)function, (void)attribute, (void)value, 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  return (void)to, (void)value, (void)bytes, (void)stream, 0;
}
int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address, const uint64_t* dims,
                           const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                           int swizzle, int promotion, int fill) {
  (void)type, (void)rank, (void)address, (void)dims, (void)strides, (void)box, (void)steps, (void)interleave;
  (void)swizzle, (void)promotion, (void)fill;
  memset(map, 0, 128);
  return 0;
}
int cuLaunchKernelEx(const void* config, void* function, void** arguments, void** extra) {
  return (void)config, (void)function, (void)arguments, (void)extra, 0;
}

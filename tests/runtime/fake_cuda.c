/* A driver library for the tests of the CUDA executor: device memory is host memory, kernels are the
   few functions below, and fake_cuda_script() makes calls fail the way real drivers do. It checks what
   a driver would: contexts, shared memory opt-in, addresses. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  STUB = 34,
  NO_DEVICE = 100,
  NO_BINARY = 209,
  INVALID_PTX = 218,
  INVALID_CONTEXT = 201,
  NOT_FOUND = 500,
  ILLEGAL_ADDRESS = 700,
  MISMATCH = 803
};

static char script[64];
static int context_token, current_context, retained, faulted, live_modules, live_allocations;
static int max_dynamic_smem = 48 << 10;
static int event_time[2];

void fake_cuda_script(const char* what) {
  snprintf(script, sizeof script, "%s", what);
  current_context = faulted = 0;
  max_dynamic_smem = 48 << 10;
}
int fake_cuda_live(void) { return live_modules + live_allocations + retained; }

static int is(const char* what) { return strcmp(script, what) == 0; }
static int ready(void) { return faulted ? faulted : current_context ? OK : INVALID_CONTEXT; }

int cuInit(unsigned flags) {
  if (is("no device")) return NO_DEVICE;
  if (is("stub")) return STUB;
  if (is("mismatch")) return MISMATCH;
  if (is("init fails")) return 999;
  return flags == 0 ? OK : INVALID_VALUE;
}
int cuDriverGetVersion(int* version) {
  *version = is("old") ? 11040 : 12080;
  return OK;
}
int cuGetErrorName(int status, const char** name) {
  switch (status) {
    case OUT_OF_MEMORY:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return OK;
    case ILLEGAL_ADDRESS:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return OK;
    case NO_BINARY:
      *name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
      return OK;
    case INVALID_PTX:
      *name = "CUDA_ERROR_INVALID_PTX";
      return OK;
    case NOT_FOUND:
      *name = "CUDA_ERROR_NOT_FOUND";
      return OK;
    default:
      *name = NULL;
      return INVALID_VALUE;
  }
}
int cuGetErrorString(int status, const char** text) {
  switch (status) {
    case OUT_OF_MEMORY:
      *text = "out of memory";
      return OK;
    case ILLEGAL_ADDRESS:
      *text = "an illegal memory access was encountered";
      return OK;
    case NO_BINARY:
      *text = "no kernel image is available for execution on the device";
      return OK;
    case INVALID_PTX:
      *text = "a PTX JIT compilation failed";
      return OK;
    case NOT_FOUND:
      *text = "named symbol not found";
      return OK;
    default:
      *text = NULL;
      return INVALID_VALUE;
  }
}
int cuDeviceGetCount(int* count) {
  *count = is("none") ? 0 : 2;
  return OK;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = 40 + ordinal;
  return OK;
}
int cuDeviceGetName(char* name, int size, int device) {
  snprintf(name, (size_t)size, "Fake GPU %d", device - 40);
  return OK;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device < 40) return INVALID_VALUE;
  if (attribute == 75)
    *value = 9;
  else if (attribute == 76)
    *value = 0;
  else if (attribute == 97)
    *value = 232448;
  else if (attribute == 16)
    *value = 64;
  else if (attribute == 13)
    *value = 1500000;
  else if (attribute == 36)
    *value = 2000000;
  else if (attribute == 37)
    *value = 4096;
  else
    return INVALID_VALUE;
  return OK;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = (size_t)32 << 30;
  return device >= 40 ? OK : INVALID_VALUE;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (is("context fails")) return OUT_OF_MEMORY;
  ++retained;
  *context = &context_token;
  return device >= 40 ? OK : INVALID_VALUE;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  --retained;
  return device >= 40 ? OK : INVALID_VALUE;
}
int cuCtxSetCurrent(void* context) {
  current_context = context == &context_token;
  return faulted ? faulted : OK;
}
int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  int failed = ready();
  if (failed) return failed;
  if (memcmp(image,
             "\x7f"
             "ELF",
             4) == 0 &&
      is("wants ptx"))
    return NO_BINARY;
  if (strstr(image, "broken")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5) strcpy(values[i], "ptxas says no");
    return INVALID_PTX;
  }
  ++live_modules;
  *module = (void*)image;
  return OK;
}
int cuModuleUnload(void* module) {
  --live_modules;
  return module ? OK : INVALID_VALUE;
}

/* fill(p, byte, n): writes. fault(): an illegal access, found when waited for. */
static const char* const kernels[] = {"fill", "fault"};
int cuModuleGetFunction(void** function, void* module, const char* name) {
  int failed = ready();
  if (failed) return failed;
  if (!module) return INVALID_VALUE;
  for (int i = 0; i < 2; ++i)
    if (strcmp(kernels[i], name) == 0) {
      *function = (void*)kernels[i];
      return OK;
    }
  return NOT_FOUND;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (!function || attribute != 8 || value > 232448) return INVALID_VALUE;
  max_dynamic_smem = value > (48 << 10) ? value : 48 << 10;
  return OK;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned smem, void* stream, void** arguments, void** extra) {
  int failed = ready();
  if (failed) return failed;
  if ((int)smem > max_dynamic_smem || stream || extra || gx * gy * gz == 0 || bx * by * bz > 1024)
    return INVALID_VALUE;
  if (strcmp(function, "fault") == 0) {
    faulted = ILLEGAL_ADDRESS;
    return OK;
  }
  memset((void*)(uintptr_t)(*(uint64_t*)arguments[0]), *(int32_t*)arguments[1], *(uint64_t*)arguments[2]);
  event_time[1] += 3 * (int)(gx * gy * gz);
  return OK;
}
int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  int failed = ready();
  if (failed) return failed;
  if (bytes > ((size_t)1 << 30)) return OUT_OF_MEMORY;
  void* memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory) return OUT_OF_MEMORY;
  *address = (uint64_t)(uintptr_t)memory;
  ++live_allocations;
  return OK;
}
int cuMemFree_v2(uint64_t address) {
  free((void*)(uintptr_t)address);
  --live_allocations;
  return OK;
}
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) {
  int failed = ready();
  if (!failed) memcpy((void*)(uintptr_t)to, from, bytes);
  return failed;
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  int failed = ready();
  if (!failed) memcpy(to, (void*)(uintptr_t)from, bytes);
  return failed;
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  int failed = ready();
  if (!failed) memset((void*)(uintptr_t)to, value, bytes);
  return failed;
}
int cuEventCreate(void** event, unsigned flags) {
  static int next;
  *event = &event_time[next++ % 2];
  return flags == 0 ? ready() : INVALID_VALUE;
}
int cuEventDestroy_v2(void* event) { return event ? OK : INVALID_VALUE; }
int cuEventRecord(void* event, void* stream) {
  if (event == &event_time[0]) event_time[1] = 0;
  return stream ? INVALID_VALUE : OK;
}
int cuEventSynchronize(void* event) { return event ? ready() : INVALID_VALUE; }
int cuEventElapsedTime(float* ms, void* start, void* stop) {
  if (start == stop) return INVALID_VALUE;
  *ms = (float)event_time[1] / 1000.0f;
  return OK;
}

/* RMSNorm of some rows by kernels in the program itself, on a stream, compared with a reference: bundle [ROWS] */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "norm.h"

enum { kCols = 1024, kUnavailable = 3 };
static const double kEps = 1e-6;

/* The calls of the CUDA driver that this program makes; most programs have cuda.h and link libcuda. */
typedef unsigned long long device_pointer;
static struct {
  int (*cuInit)(unsigned);
  int (*cuDevicePrimaryCtxRetain)(CUcontext*, int);
  int (*cuCtxSetCurrent)(CUcontext);
  int (*cuMemAlloc_v2)(device_pointer*, size_t);
  int (*cuMemcpyHtoD_v2)(device_pointer, const void*, size_t);
  int (*cuMemcpyDtoH_v2)(void*, device_pointer, size_t);
  int (*cuStreamCreate)(CUstream*, unsigned);
  int (*cuStreamSynchronize)(CUstream);
} cu;

static int find(void* library, const char* name, void* function) {
  void* symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol); /* C has no cast between pointers to objects and to functions */
  return symbol != NULL;
}
#define FIND(name) find(library, #name, &cu.name)

static int open_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return library && FIND(cuInit) && FIND(cuDevicePrimaryCtxRetain) && FIND(cuCtxSetCurrent) && FIND(cuMemAlloc_v2) &&
         FIND(cuMemcpyHtoD_v2) && FIND(cuMemcpyDtoH_v2) && FIND(cuStreamCreate) && FIND(cuStreamSynchronize);
}

static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* rounds to nearest even */
}
static float from_bf16(uint16_t half) {
  const uint32_t bits = (uint32_t)half << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static int fail(const char* reason, int status) {
  fprintf(stderr, "bundle: %s\n", reason);
  return status;
}

int main(int argc, char** argv) {
  const long rows = argc > 1 ? strtol(argv[1], NULL, 10) : 64;
  if (rows < 1 || rows > 65536) return fail("a number of rows from 1 to 65536 was expected", 2);
  const size_t count = (size_t)rows * kCols;

  CUcontext context;
  CUstream stream;
  if (!open_driver() || cu.cuInit(0) || cu.cuDevicePrimaryCtxRetain(&context, 0) || cu.cuCtxSetCurrent(context) ||
      cu.cuStreamCreate(&stream, 0))
    return fail("no CUDA driver, or no GPU", kUnavailable);
  norm_t* norm;
  int error = norm_create(&norm, NULL); /* in the current context */
  if (error) return fail(norm_error_string(error), kUnavailable);

  uint16_t* x = malloc(2 * count);
  uint16_t* y = malloc(2 * count);
  uint16_t weight[kCols];
  if (!x || !y) return fail("no memory", 1);
  uint32_t random = 1;
  for (size_t i = 0; i < count + kCols; ++i) {
    random = random * 1664525u + 1013904223u; /* Numerical Recipes, "Quick and Dirty" generators */
    *(i < count ? &x[i] : &weight[i - count]) = to_bf16((float)(random >> 8) / (float)(1 << 22) - 2);
  }

  const size_t workspace_bytes = norm_workspace_bytes(norm, rows, kCols);
  device_pointer device_x, device_weight, device_y, workspace = 0;
  if (cu.cuMemAlloc_v2(&device_x, 2 * count) || cu.cuMemAlloc_v2(&device_y, 2 * count) ||
      cu.cuMemAlloc_v2(&device_weight, sizeof weight) ||
      (workspace_bytes > 0 && cu.cuMemAlloc_v2(&workspace, workspace_bytes)) ||
      cu.cuMemcpyHtoD_v2(device_x, x, 2 * count) || cu.cuMemcpyHtoD_v2(device_weight, weight, sizeof weight))
    return fail("no device memory", 1);
  error = norm_launch(norm, stream, (const struct roofgen_bf16*)device_x, (const struct roofgen_bf16*)device_weight,
                      (struct roofgen_bf16*)device_y, (float)kEps, rows, kCols, (void*)workspace, workspace_bytes);
  if (error) return fail(norm_error_string(error), 1);
  if (cu.cuStreamSynchronize(stream) || cu.cuMemcpyDtoH_v2(y, device_y, 2 * count)) return fail("the kernel failed", 1);
  norm_destroy(norm);

  double worst = 0; /* in units of the largest relative error of one rounding to bf16 */
  for (long m = 0; m < rows; ++m) {
    double sum = 0;
    for (int n = 0; n < kCols; ++n) sum += pow(from_bf16(x[m * kCols + n]), 2);
    for (int n = 0; n < kCols; ++n) {
      const double expected = from_bf16(x[m * kCols + n]) / sqrt(sum / kCols + kEps) * from_bf16(weight[n]);
      const double error_here = fabs(from_bf16(y[m * kCols + n]) - expected) / (fabs(expected) * 0x1p-8 + 1e-30);
      if (!(error_here <= worst)) worst = error_here; /* also NaN */
    }
  }
  printf("%ld x %d elements, the largest error is %.3f of that of one rounding to bf16\n", rows, kCols, worst);
  free(x);
  free(y);
  /* Half an ulp, and the fp32 arithmetic before (docs/use/epilogues.md) in units of 2^-24: the root of a sum of 1024
   * squares, (64 / 2 + 10) / 2; rsqrt 2.2; three products. */
  return worst <= 1 + 27 * 0x1p-16 ? 0 : 1;
}

/* Helpers for programs around an emitted bundle: tensors on host and device, bf16. call.h, which the test writes from
 * the bundle's manifest, includes the header and defines BUNDLE, the parameters as ARGUMENTS with a macro ARG_x for
 * each x, and the sizes of the workspace. */
#pragma once

#include <cuda.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

static void must(CUresult r, const char* what) {
  if (r == CUDA_SUCCESS) return;
  printf("FAILED %s: error %d\n", what, r);
  exit(1);
}

static void launched(int error, const char* what) {
  if (!error) return;
  printf("FAILED %s: %s\n", what, BUNDLE(error_string)(error));
  exit(1);
}

static void start(void) {
  CUdevice device;
  CUcontext context;
  must(cuInit(0), "cuInit");
  must(cuDeviceGet(&device, 0), "cuDeviceGet");
  must(cuCtxCreate(&context, 0, device), "cuCtxCreate");
}

static float from_bf16(uint16_t b) {
  const uint32_t bits = (uint32_t)b << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

/* Values from -2 to 2 in steps of 1/8: exact in bf16, and the sums of their products are exact in fp32. */
static float value(unsigned seed, int64_t i) {
  return (float)((int)((seed * 7919u + (unsigned)i * 104729u) / 13u % 33u) - 16) / 8.0f;
}

typedef struct {
  CUdeviceptr device;
  float* host; /* contents of an input */
  int64_t count;
  int bytes; /* bytes per element: 2 is bf16, 4 is fp32 */
} Tensor;

static Tensor output(int64_t count, int bytes) {
  Tensor t = {0, NULL, count, bytes};
  must(cuMemAlloc(&t.device, (size_t)(count * bytes)), "cuMemAlloc");
  return t;
}

static Tensor input(unsigned seed, int64_t count, int bytes) {
  Tensor t = output(count, bytes);
  t.host = malloc((size_t)count * sizeof(float));
  char* image = malloc((size_t)(count * bytes));
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    t.host[i] = value(seed, i);
    memcpy(&bits, &t.host[i], 4);
    if (bytes == 4) memcpy(image + 4 * i, &bits, 4);
    const uint16_t half = (uint16_t)(bits >> 16);
    if (bytes == 2) memcpy(image + 2 * i, &half, 2);
  }
  must(cuMemcpyHtoD(t.device, image, (size_t)(count * bytes)), "cuMemcpyHtoD");
  free(image);
  return t;
}

static float* read_back(Tensor t) {
  char* image = malloc((size_t)(t.count * t.bytes));
  float* out = malloc((size_t)t.count * sizeof(float));
  must(cuCtxSynchronize(), "the kernels");
  must(cuMemcpyDtoH(image, t.device, (size_t)(t.count * t.bytes)), "cuMemcpyDtoH");
  for (int64_t i = 0; i < t.count; ++i) {
    if (t.bytes == 4) memcpy(&out[i], image + 4 * i, 4);
    uint16_t half;
    if (t.bytes == 2) memcpy(&half, image + 2 * i, 2), out[i] = from_bf16(half);
  }
  free(image);
  return out;
}

/* The largest |got - expected| / (1 + |expected|) so far; NaN counts as infinite. */
static double worst;
static void compare(float got, double expected) {
  const double error = fabs((double)got - expected) / (1 + fabs(expected));
  if (!(error <= worst)) worst = error == error ? error : INFINITY;
}

/* bf16 has 8 significant bits: 1/256 of the value, and the same again for intermediate values. */
static int report(const char* what) {
  printf("%s %s: %g\n", worst <= 1.0 / 128 ? "ok" : "FAILED", what, worst);
  const int failed = !(worst <= 1.0 / 128);
  worst = 0;
  return failed;
}

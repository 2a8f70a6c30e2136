/* grouped_gemm.h of `emit grouped_gemm`, at its tuned sizes and at others and other numbers of experts. SIZES: the sizes, in
 * the order of the header. */
#include "out/grouped_gemm.h"

#include "host.h"

static int run(int64_t N, int64_t K, const int32_t* sizes, int experts) {
  int32_t offsets[64] = {0};
  for (int e = 0; e < experts; ++e) offsets[e + 1] = offsets[e] + sizes[e];
  const int64_t M = offsets[experts];
  CUdeviceptr on_device;
  must(cuMemAlloc(&on_device, sizeof offsets), "cuMemAlloc");
  must(cuMemcpyHtoD(on_device, offsets, sizeof offsets), "cuMemcpyHtoD");
  Tensor a = input(1, M * K, 2), b = input(2, experts * N * K, 2), bias = input(3, experts * N, 2),
         c = output(M * N, 2);
  char what[64];
  snprintf(what, sizeof what, "%d rows of %d experts", (int)M, experts);
  CUfunction kernel = load("out/grouped_gemm.ptx", GROUPED_GEMM_ENTRY);
  must(grouped_gemm_prepare(kernel), "grouped_gemm_prepare");
  must(grouped_gemm_launch(kernel, 0, a.device, b.device, bias.device, c.device, on_device, SIZES), what);
  float* got = read_back(c);
  for (int e = 0; e < experts; ++e)
    for (int64_t m = offsets[e]; m < offsets[e + 1]; ++m)
      for (int64_t n = 0; n < N; ++n) {
        double sum = bias.host[e * N + n];
        for (int64_t k = 0; k < K; ++k) sum += (double)a.host[m * K + k] * b.host[(e * N + n) * K + k];
        compare(got[m * N + n], sum);
      }
  return report(what);
}

int main(void) {
  start();
  const int32_t tuned[] = {70, 0, 1, 29}, other[] = {0, 5, 0, 130, 1, 0, 64, 0, 0, 3};
  int failed = run(72, 80, tuned, 4);
  failed |= run(136, 40, other, 10);
  failed |= run(64, 8, tuned, 1);
  return failed;
}

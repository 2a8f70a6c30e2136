/* gemm.h of `emit gemm`, at its tuned sizes and at others. FORM: 0 an epilogue with tensors and a scalar, 1 the same in
 * split-K slabs, 2 a gate, 3 a gate in a separate kernel; A and B are bf16, everything else is fp32. */
#include "out/gemm.h"

#include "host.h"

enum { kGated = FORM >= 2, kOutBytes = FORM == 3 ? 4 : 2 };

static double silu(double x) { return x / (1 + exp(-x)); }

static int run(int64_t M, int64_t N, int64_t K) {
  const int64_t cols = kGated ? N / 2 : N;
  Tensor a = input(1, M * K, 2), b = input(2, N * K, 2), bias = input(3, N, kOutBytes), c = output(M * cols, kOutBytes);
  char what[64];
  snprintf(what, sizeof what, "%d x %d x %d", (int)M, (int)N, (int)K);
#if FORM == 0
  Tensor slope = input(4, M, 4), residual = input(5, M * N, 2);
  CUfunction gemm = load("out/gemm.ptx", GEMM_ENTRY);
  must(gemm_prepare(gemm), "gemm_prepare");
  must(gemm_launch(gemm, 0, a.device, b.device, bias.device, slope.device, residual.device, c.device, 0.25f, M, N, K, K,
                   K),
       what);
#elif FORM == 1
  CUfunction partial = load("out/gemm_partial.ptx", GEMM_PARTIAL_ENTRY), sum = load("out/gemm_sum.ptx", GEMM_SUM_ENTRY);
  CUdeviceptr slabs;
  must(cuMemAlloc(&slabs, (size_t)gemm_partial_bytes(M, N)), "the temporary");
  must(gemm_partial_prepare(partial), "gemm_partial_prepare");
  must(gemm_sum_prepare(sum), "gemm_sum_prepare");
  must(gemm_partial_launch(partial, 0, a.device, b.device, slabs, M, N, K, K, K), what);
  must(gemm_sum_launch(sum, 0, slabs, bias.device, c.device, M, N), what);
#elif FORM == 3
  CUfunction gemm = load("out/gemm.ptx", GEMM_ENTRY), epilogue = load("out/gemm_epilogue.ptx", GEMM_EPILOGUE_ENTRY);
  CUdeviceptr product;
  must(cuMemAlloc(&product, (size_t)gemm_T_bytes(M, N)), "the temporary");
  must(gemm_prepare(gemm), "gemm_prepare");
  must(gemm_epilogue_prepare(epilogue), "gemm_epilogue_prepare");
  must(gemm_launch(gemm, 0, a.device, b.device, product, M, N, K, K, K), what);
  must(gemm_epilogue_launch(epilogue, 0, product, bias.device, c.device, M, N), what);
#else
  CUfunction gemm = load("out/gemm.ptx", GEMM_ENTRY);
  must(gemm_prepare(gemm), "gemm_prepare");
  must(gemm_launch(gemm, 0, a.device, b.device, bias.device, c.device, M, N, K, K, K), what);
#endif
  float* got = read_back(c);
  for (int64_t m = 0; m < M; ++m)
    for (int64_t j = 0; j < cols; ++j) {
      double e[2];
      for (int h = 0; h < (kGated ? 2 : 1); ++h) {
        const int64_t n = kGated ? 2 * j + h : j;
        double acc = 0;
        for (int64_t k = 0; k < K; ++k) acc += (double)a.host[m * K + k] * b.host[n * K + k];
        e[h] = FORM == 0 ? acc * 0.25 + bias.host[n] : acc + bias.host[n];
#if FORM == 0
        e[h] = silu(e[h]) + slope.host[m] * residual.host[m * N + n];
#elif FORM == 1
        e[h] = e[h] > 0 ? e[h] : 0;
#endif
      }
      compare(got[m * cols + j], kGated ? silu(e[0]) * e[1] : e[0]);
    }
  return report(what);
}

int main(void) {
  start();
  int failed = run(TUNED);
  failed |= run(OTHER);
  CUdeviceptr p = output(1 << 20, 2).device;
#if FORM == 0
  CUfunction gemm = load("out/gemm.ptx", GEMM_ENTRY);
  failed |= refused(gemm_launch(gemm, 0, p, p, p, p, p, p, 1, 100, 72, 81, 81, 81),
                    "a row that begins at no multiple of 16 bytes");
  failed |=
      refused(gemm_launch(gemm, 0, p, p, p, p, p, p, 1, INT64_C(5000000000), 72, 80, 80, 80), "a size beyond 32 bits");
  failed |= refused(gemm_launch(gemm, 0, p, p, p, p, p, p, 1, 0, 72, 80, 80, 80), "no rows");
#elif FORM == 3
  failed |= refused(gemm_epilogue_launch(load("out/gemm_epilogue.ptx", GEMM_EPILOGUE_ENTRY), 0, p, p, p, 50, 67),
                    "a gate without its value");
#endif
  (void)p;
  return failed;
}

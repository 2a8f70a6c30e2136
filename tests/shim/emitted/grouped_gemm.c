/* grouped_gemm.h of `emit grouped_gemm`, at its tuned sizes and at others, and other numbers of experts. SIZES: the
 * sizes, in the order of the header. TOPK: with --gather and --scatter weighted, and so many experts for each token. */
#include "out/grouped_gemm.h"

#include "host.h"

static CUdeviceptr index_input(const int32_t* numbers, int64_t count) {
  CUdeviceptr p;
  must(cuMemAlloc(&p, (size_t)(4 * count)), "cuMemAlloc");
  must(cuMemcpyHtoD(p, numbers, (size_t)(4 * count)), "cuMemcpyHtoD");
  return p;
}

#ifdef TOPK
/* Products lie in memory as bf16, rounded to nearest even. */
static double stored(double x) {
  const float f = (float)x;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return from_bf16((uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}
#else
static double stored(double x) { return x; }
#endif

static int run(int64_t N, int64_t K, const int32_t* sizes, int experts) {
  int32_t offsets[64] = {0}, expert_of[1024];
  for (int e = 0; e < experts; ++e) {
    offsets[e + 1] = offsets[e] + sizes[e];
    for (int32_t row = offsets[e]; row < offsets[e + 1]; ++row) expert_of[row] = e;
  }
  const int64_t M = offsets[experts];
  const CUdeviceptr starts = index_input(offsets, experts + 1);
  Tensor b = input(2, experts * N * K, 2), bias = input(3, experts * N, 2);
  char what[64];
  snprintf(what, sizeof what, "%d rows of %d experts", (int)M, experts);
  CUfunction kernel = load("out/grouped_gemm.ptx", GROUPED_GEMM_ENTRY);
  must(grouped_gemm_prepare(kernel), "grouped_gemm_prepare");
#ifdef TOPK
  const int64_t tokens = M / TOPK, rows = tokens;
  int32_t row_tokens[1024], token_rows[1024];
  for (int64_t m = 0; m < M; ++m) {
    row_tokens[m] = (int32_t)((m * 11 + 1) % tokens);
    token_rows[row_tokens[m] * TOPK + m / tokens] = (int32_t)m;
  }
  const CUdeviceptr of_rows = index_input(row_tokens, M), of_tokens = index_input(token_rows, M);
  Tensor a = input(1, tokens * K, 2), weights = input(4, M, 4), out = output(tokens * N, 2);
  CUdeviceptr products;
  must(cuMemAlloc(&products, (size_t)grouped_gemm_T_bytes(M, N)), "the temporary");
  must(grouped_gemm_launch(kernel, 0, a.device, b.device, bias.device, products, starts, experts, of_rows, SIZES),
       what);
  CUfunction combine = load("out/grouped_gemm_combine.ptx", GROUPED_GEMM_COMBINE_ENTRY);
  must(grouped_gemm_combine_prepare(combine), "grouped_gemm_combine_prepare");
  must(grouped_gemm_combine_launch(combine, 0, products, of_tokens, weights.device, out.device, tokens, TOPK, N), what);
#else
  const int64_t rows = M;
  Tensor a = input(1, M * K, 2), out = output(M * N, 2);
  must(grouped_gemm_launch(kernel, 0, a.device, b.device, bias.device, out.device, starts, experts, SIZES), what);
#endif
  float* got = read_back(out);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t n = 0; n < N; ++n) {
      double total = 0;
#ifdef TOPK
      for (int i = 0; i < TOPK; ++i) {
        const int e = expert_of[token_rows[row * TOPK + i]];
        const double weight = weights.host[row * TOPK + i];
#else
      {
        const int e = expert_of[row];
        const double weight = 1;
#endif
        double sum = bias.host[e * N + n];
        for (int64_t k = 0; k < K; ++k) sum += (double)a.host[row * K + k] * b.host[(e * N + n) * K + k];
        total += weight * stored(sum);
      }
      compare(got[row * N + n], total);
    }
  return report(what);
}

int main(void) {
  start();
  const int32_t tuned[] = {70, 0, 1, 29}, other[] = {0, 5, 0, 130, 1, 0, 64, 0, 0, 4};
  int failed = run(72, 80, tuned, 4);
  failed |= run(136, 40, other, 10);
  failed |= run(64, 8, tuned, 1);
  return failed;
}

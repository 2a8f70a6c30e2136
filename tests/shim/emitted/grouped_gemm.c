/* A bundle of `emit grouped_gemm`, at its tuned sizes and at others, and other numbers of experts. TOPK: with --gather
 * and --scatter weighted, and so many experts for each token. */
#include "host.h"

static grouped_gemm_t* bundle;

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
#ifdef TOPK
  const int64_t tokens = M / TOPK, rows = tokens;
  int32_t row_tokens[1024], token_rows[1024];
  for (int64_t m = 0; m < M; ++m) {
    row_tokens[m] = (int32_t)((m * 11 + 1) % tokens);
    token_rows[row_tokens[m] * TOPK + m / tokens] = (int32_t)m;
  }
  const CUdeviceptr of_rows = index_input(row_tokens, M), of_tokens = index_input(token_rows, M);
  Tensor a = input(1, tokens * K, 2), weights = input(4, M, 4), out = output(tokens * N, 2);
#define ARG_row_tokens of_rows
#define ARG_token_rows of_tokens
#define ARG_weights weights.device
#define ARG_Y out.device
#define ARG_tokens tokens
#define ARG_topk TOPK
#else
  const int64_t rows = M;
  Tensor a = input(1, M * K, 2), out = output(M * N, 2);
#define ARG_C out.device
#endif
#define ARG_A a.device
#define ARG_B b.device
#define ARG_bias bias.device
#define ARG_offsets starts
#define ARG_experts experts
#define ARG_M M
#define ARG_N N
#define ARG_K K
#define ARG_a_stride K
#define ARG_b_stride K
  const size_t bytes = grouped_gemm_workspace_bytes(bundle, WORKSPACE_SIZES);
  CUdeviceptr memory;
  must(cuMemAlloc(&memory, bytes + 1), "the workspace");
  launched(grouped_gemm_launch(bundle, 0, ARGUMENTS, (void*)(uintptr_t)memory, bytes), what);
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
  launched(grouped_gemm_create(&bundle, NULL), "grouped_gemm_create");
  const int32_t tuned[] = {70, 0, 1, 29}, other[] = {0, 5, 0, 130, 1, 0, 64, 0, 0, 4};
  int failed = run(72, 80, tuned, 4);
  failed |= run(136, 40, other, 10);
  failed |= run(64, 8, tuned, 1);
  grouped_gemm_destroy(bundle);
  return failed;
}

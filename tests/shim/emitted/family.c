/* A bundle of `emit gemm` for the shapes M = 16 and M = 64 with N = 64, K = 64 and the epilogue relu(acc): each call
 * takes the pipeline of its M, and every element is right. argv[1]: this pipeline is damaged, its results are wrong. */
#include "host.h"

static gemm_t* bundle;

static int run(int64_t M, int expected, int damaged) {
  const int64_t N = 64, K = 64;
  const Tensor a = input(1, M * K, 2), b = input(2, N * K, 2), c = output(M * N, 2);
#define ARG_A a.device
#define ARG_B b.device
#define ARG_C c.device
#define ARG_M M
#define ARG_N N
#define ARG_K K
#define ARG_a_stride K
#define ARG_b_stride K
  const int selected = gemm_selected(bundle, WORKSPACE_SIZES);
  const size_t bytes = gemm_workspace_bytes(bundle, WORKSPACE_SIZES);
  CUdeviceptr memory;
  must(cuMemAlloc(&memory, bytes + 1), "the workspace");
  launched(gemm_launch(bundle, 0, ARGUMENTS, (void*)(uintptr_t)memory, bytes), "gemm_launch");
  float* got = read_back(c);
  int wrong = 0;
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < N; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < K; ++k) sum += (double)a.host[m * K + k] * b.host[n * K + k];
      wrong += fabs(got[m * N + n] - fmax(sum, 0)) > fabs(sum) / 256; /* half an ulp of bf16 */
    }
  const int good = selected == expected && (wrong > 0) == (selected == damaged);
  printf("%s M %d: pipeline %d of %d, %d elements are wrong\n", good ? "ok" : "FAILED", (int)M, selected, expected,
         wrong);
  return !good;
}

int main(int count, char** words) {
  const int damaged = count > 1 ? atoi(words[1]) : -1;
  start();
  launched(gemm_create(&bundle, NULL), "gemm_create");
  const int tails = FOR_16, whole = FOR_64; /* that of M = 64 takes whole tiles alone */
  int failed = run(1, tails, damaged) | run(16, tails, damaged) | run(20, tails, damaged);
  failed |= run(32, tails, damaged); /* as near to 64: the first shape */
  failed |= run(48, tails, damaged) | run(100, tails, damaged);
  failed |= run(64, whole, damaged) | run(128, whole, damaged) | run(640, whole, damaged);
  gemm_destroy(bundle);
  return failed;
}

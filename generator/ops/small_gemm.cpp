#include "generator/ops/small_gemm.h"

#include <cstring>

// One clone per vector width, selected when the program is loaded. Not with sanitizers, which crash in the early call
// of the selector, and not on other architectures.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ROOFGEN_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define ROOFGEN_VECTOR_CLONES
#endif

namespace roofgen {

typedef double Vector __attribute__((vector_size(64)));

ROOFGEN_VECTOR_CLONES
void gemm4(const double* a, int64_t a_stride, const double* b, int64_t b_stride, double* c, int64_t c_stride, int64_t n,
           int64_t k) {
  for (int64_t j = 0; j < n; j += 8) {
    Vector sum[4];
    for (int i = 0; i < 4; ++i) std::memcpy(&sum[i], c + i * c_stride + j, sizeof(Vector));
    for (int64_t x = 0; x < k; ++x) {
      Vector row;
      std::memcpy(&row, b + x * b_stride + j, sizeof row);
      for (int i = 0; i < 4; ++i) sum[i] += a[i * a_stride + x] * row;
    }
    for (int i = 0; i < 4; ++i) std::memcpy(c + i * c_stride + j, &sum[i], sizeof(Vector));
  }
}

}  // namespace roofgen

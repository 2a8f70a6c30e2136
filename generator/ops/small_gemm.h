// C += A B in double for the references: the one loop of roofgen's CPU side worth tuning.
#pragma once

#include <cstdint>

namespace roofgen {

inline constexpr int64_t kRowBlock = 4;  ///< rows of gemm4
inline int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

/// c[i][j] += sum over k of a[i][k] * b[k][j] for 4 rows. `n` is a multiple of 8; strides are in
/// elements. Runs on the widest vectors of the machine.
void gemm4(const double* a, int64_t a_stride, const double* b, int64_t b_stride, double* c, int64_t c_stride, int64_t n,
           int64_t k);

}  // namespace roofgen

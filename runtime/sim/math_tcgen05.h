// Products of tcgen05.mma, on columns of tensor memory (inst.h, TensorTable): 16 lanes of a column are rows of the
// sums, so a vector is rows of one column, and a step multiplies rows of A with one element of B, in the order of
// mma.h. Included by lanes.inc.

constexpr int kHalfVectors = 16 / int(sizeof(f32xn) / 4);  ///< of 16 lanes

/// Sums of kGroups groups of lanes and kColumns columns.
template <class Sum, bool kFused, int kGroups, int kColumns>
FN void multiply_columns(u32* const* groups, const float* a, int rows, const float* b, int column, int k,
                         const float* scale) {
  constexpr int kVectors = kGroups * kHalfVectors, kWide = int(sizeof(f32xn) / 4);
  f32xn c[kColumns][kVectors], sum[kColumns][kVectors];
  const auto at = [&](int i, int v) {
    return groups[v / kHalfVectors] + 128 * (column + i) + v % kHalfVectors * kWide;
  };
#pragma GCC unroll 4
  for (int i = 0; i < kColumns; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      c[i][v] = scale ? load_vector<f32xn>(at(i, v)) : f32xn{};
      // Integers are no floats, and have no scale.
      if (scale && *scale != 1) c[i][v] *= *scale;
      sum[i][v] = Sum::start(c[i][v]);
    }
  for (int kk = 0; kk < k; ++kk) {
    f32xn x[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) x[v] = load_vector<f32xn>(a + kk * rows + v * kWide);
#pragma GCC unroll 4
    for (int i = 0; i < kColumns; ++i) {
      const f32xn y = f32xn{} + b[(column + i) * k + kk];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[i][v] = kFused ? fma_vector(x[v], y, sum[i][v]) : sum[i][v] + x[v] * y;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kColumns; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const f32xn d = Sum::finish(sum[i][v], c[i][v]);
      __builtin_memcpy(at(i, v), &d, sizeof d);
    }
}

template <class Sum, bool kFused>
void multiply_groups(u32* const* groups, int count, const float* a, const float* b, int n, int k, const float* scale) {
  // As many sums as there are registers for.
  constexpr int kColumns = kHalfVectors == 1 ? 4 : 2;
  int g = 0;
  for (; kHalfVectors == 1 && g + 4 <= count; g += 4)
    for (int column = 0; column < n; column += kColumns)
      multiply_columns<Sum, kFused, 4, kColumns>(groups + g, a + 16 * g, 16 * count, b, column, k, scale);
  for (; g < count; g += 2)
    for (int column = 0; column < n; column += kColumns)
      multiply_columns<Sum, kFused, 2, kColumns>(groups + g, a + 16 * g, 16 * count, b, column, k, scale);
}

void tensor_multiply(WgmmaSum type, u32* const* groups, u32 count, const float* a, const float* b, u32 n, u32 k,
                     const float* scale) {
  const auto multiply = [&](u32* const* at) {
    type == WgmmaSum::kS32 ? multiply_groups<IntegerLanes, ROOFGEN_FUSED>(at, int(count), a, b, int(n), int(k), scale)
                           : multiply_groups<FloatLanes, true>(at, int(count), a, b, int(n), int(k), scale);
  };
  if (type != WgmmaSum::kF16) return multiply(groups);
  // Sums of halves are in the lower half of each cell; the upper half does not count.
  alignas(64) static thread_local u32 wide[256 * 128];
  u32* rows[8];
  for (u32 g = 0; g < count; ++g) {
    rows[g] = wide + 16 * g;
    for (u32 i = 0; i < n && scale; ++i)
      for (u32 l = 0; l < 16; ++l) rows[g][128 * i + l] = bits_of(Half::load(u16(groups[g][128 * i + l])));
  }
  multiply(rows);
  for (u32 g = 0; g < count; ++g)
    for (u32 i = 0; i < n; ++i)
      for (u32 l = 0; l < 16; ++l) groups[g][128 * i + l] = Half::store(f32_of(rows[g][128 * i + l]));
}

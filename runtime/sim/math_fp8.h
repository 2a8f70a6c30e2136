// Sums of e4m3 and e5m2 products as the tensor cores of sm_90 (wgmma) and sm_89 (mma.sync) add them.
//
// A step aligns its products and the sum before it to the greatest of their exponents, cuts each off towards zero at 13
// bits after the point, adds exactly, and cuts the result off at 13 fraction bits. The exponent of a product is the
// sum of the exponents of its factors, so its significand is in [1, 4); zeros have none. Sums of halves are rounded to
// nearest instead. The rule is that of Xie et al., "MMA-Sim" (arXiv 2511.10909), and of Khattak and Mikaitis, "Accurate
// Models of NVIDIA Tensor Cores" (arXiv 2512.07004).
//
// With the sums of the positive and of the negative products between 2^23 and 2^24 units, a multiplication with an
// addition that rounds towards zero cuts off exactly at the unit.

typedef s32 s32xn __attribute__((vector_size(sizeof(f32xn))));
typedef s8 s8xn __attribute__((vector_size(sizeof(f32xn))));  ///< exponents of four vectors of columns
constexpr int kWidth = sizeof(f32xn) / 4;
constexpr int kFp8Fraction = 13, kFp8Step = 32;
constexpr u32 kFp8Kept = ~u32{0} << (23 - kFp8Fraction);
constexpr int kNoExponent = -64;  ///< of zero: with any other exponent less than that of a product

/// sum + a b, rounded towards zero; nothing is negative.
FN f32xn add_down(f32xn sum, f32xn a, f32xn b) {
#if defined(ROOFGEN_WIDE_LANES)
  return __builtin_ia32_vfmaddps512_mask(a, b, sum, 0xffff, 11 /* towards zero, without exceptions */);
#else
  const f32xn product = a * b, nearest = sum + product;
  return (f32xn)((s32xn)nearest + (nearest - sum > product));
#endif
}

FN int fp8_exponent(float x, int smallest) {
  const u32 bits = bits_of(x);
  const int exponent = int(bits >> 23 & 255) - 127;
  return bits << 1 == 0 ? kNoExponent : exponent < smallest ? smallest : exponent;
}

/// 16 rows of A, and columns of B, as the sums need them.
struct Fp8Rows {
  u32 magnitude[16 * kFp8Step];
  u32 negative[16 * kFp8Step];
  s8 exponent[16 * kFp8Step];
};
template <int kVectors>
struct Fp8Columns {
  alignas(64) float magnitude[kFp8Step][2][kVectors * kWidth];  ///< of positive and of negative elements, 0 for others
  alignas(64) s8 exponent[kFp8Step][4 * kWidth];                ///< those of kVectors are filled
};

template <int kVectors>
FN void take_columns(Fp8Columns<kVectors>& out, const float* b, int columns, int k, int smallest) {
  for (int kk = 0; kk < k; ++kk)
    for (int block = 0; block < kVectors * kWidth / 8; ++block)
      for (int i = 0; i < 8; ++i) {
        const float x = 8 * block < columns ? b[(block * k + kk) * 8 + i] : 0;
        out.magnitude[kk][0][8 * block + i] = x > 0 ? x : 0;
        out.magnitude[kk][1][8 * block + i] = x < 0 ? -x : 0;
        out.exponent[kk][8 * block + i] = s8(fp8_exponent(x, smallest));
      }
}

/// A vector of fours.
template <class At>
FN f32xn fours(At at) {
  const f32x8 low = concat<f32x8>(load_vector<f32x4>(at(0)), load_vector<f32x4>(at(1)));
#if defined(ROOFGEN_WIDE_LANES)
  const f32x8 high = concat<f32x8>(load_vector<f32x4>(at(2)), load_vector<f32x4>(at(3)));
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  return low;
#endif
}

/// Adds the products of a row to the sums of the positive and of the negative ones. Local copies stay in registers.
template <int kVectors>
FN void add_products(const Fp8Rows& rows, int first, const Fp8Columns<kVectors>& columns, int k, f32xn* up_sums,
                     f32xn* down_sums) {
  f32xn up[kVectors], down[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) up[v] = up_sums[v], down[v] = down_sums[v];
  for (int kk = 0; kk < k; ++kk) {
    const f32xn x = (f32xn)(s32xn{} + s32(rows.magnitude[first + 8 * kk]));
    const u32 negative = rows.negative[first + 8 * kk];
    const float *same = columns.magnitude[kk][negative], *other = columns.magnitude[kk][1 - negative];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      up[v] = add_down(up[v], x, load_vector<f32xn>(same + kWidth * v));
      down[v] = add_down(down[v], x, load_vector<f32xn>(other + kWidth * v));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) up_sums[v] = up[v], down_sums[v] = down[v];
}

/// The greatest exponent of the products of a row, for each column.
template <int kVectors>
FN s8xn greatest_exponent(const Fp8Rows& rows, int first, const Fp8Columns<kVectors>& columns, int k) {
  s8xn products = s8xn{} + s8(2 * kNoExponent);
#pragma GCC unroll 8
  for (int kk = 0; kk < k; ++kk) {
    const s8xn e = load_vector<s8xn>(columns.exponent[kk]) + rows.exponent[first + 8 * kk];
    products = e > products ? e : products;
  }
  return products;
}

/// The sums of a row and kVectors vectors of columns. `at(i)`: the place of the i-th four of them.
template <int kVectors, class At>
FN void add_fp8(const Fp8Rows& rows, int row, const Fp8Columns<kVectors>& columns, int k, bool keeps, bool halves,
                At at) {
  const int first = row / 8 * 8 * k + row % 8;
  const s8xn products = greatest_exponent(rows, first, columns, k);
  f32xn before[kVectors], up[kVectors], down[kVectors];
  s32xn exponent[kVectors], alone[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    before[v] = keeps ? fours([&](int i) { return at(v * kWidth / 4 + i); }) : f32xn{};
    typedef s8 s8xw __attribute__((vector_size(kWidth)));
    const s32xn e = __builtin_convertvector(load_vector<s8xw>(reinterpret_cast<const s8*>(&products) + kWidth * v),
                                            s32xn),
                own = ((s32xn)before[v] >> 23 & 255) - 127;
    // Without a product, or with one far too small, only the sum before counts.
    alone[v] = (e < kNoExponent / 2) | (own > 100);
    exponent[v] = alone[v] ? s32xn{} : e > own ? e : own;
    up[v] = down[v] = (f32xn)((exponent[v] + (127 + 23 - kFp8Fraction)) << 23);
  }
  add_products<kVectors>(rows, first, columns, k, up, down);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const f32xn to_units = (f32xn)((127 + kFp8Fraction - exponent[v]) << 23),
                unit = (f32xn)((127 - kFp8Fraction + exponent[v]) << 23);
    const s32xn c = __builtin_convertvector((alone[v] ? f32xn{} : before[v]) * to_units, s32xn);
    const f32xn sum = __builtin_convertvector((s32xn)up[v] - (s32xn)down[v] + c, f32xn) * unit;
    s32xn d = (s32xn)(alone[v] ? before[v] : sum) & (halves ? -1 : s32(kFp8Kept));
    d = before[v] == before[v] ? d : s32xn{} + 0x7fffffff;
    for (int i = 0; i < kWidth / 4; ++i)
      __builtin_memcpy(at(v * kWidth / 4 + i), reinterpret_cast<const char*>(&d) + 16 * i, 16);
  }
}

constexpr int kMostFp8Warps = 4;

/// `columns` columns from `first` on, of all warps.
template <int kVectors>
void multiply_fp8_columns(const Fp8Rows* rows, u32* const* const* all_sums, int first, const float* b, int columns,
                          int k, int smallest, const bool* keeps, bool halves, int warps) {
  Fp8Columns<kVectors> taken;
  take_columns(taken, b, columns, k, smallest);
  u32 unused[4] = {};
  for (int w = 0; w < warps; ++w) {
    u32* const* const sums = all_sums[w] + first / 2;
    for (int row = 0; row < 16; ++row)
      add_fp8(rows[w], row, taken, k, keeps[w], halves, [&](int i) {
        return 4 * i < columns ? sums[4 * (i / 2) + 2 * (row / 8) + i % 2] + 4 * (row % 8) : unused;
      });
  }
}

int smallest_exponent(Multiplicand type) { return type == Multiplicand::kE4m3 ? -6 : -14; }

bool is_finite(const float* x, int count) {
  u32 most = 0;
  for (int i = 0; i < count; ++i) {
    const u32 magnitude = bits_of(x[i]) & 0x7fffffffu;
    most = magnitude > most ? magnitude : most;
  }
  return most < 0x7f800000u;
}

/// Of `warps` warps, each with 16 rows of A, its own sums, and whether it keeps them. They share what B needs.
void multiply_fp8_sums(Multiplicand a_type, Multiplicand b_type, bool halves, u32* const* const* all_sums,
                       const float* a, const float* b, int n, int k, const bool* keeps, int warps) {
  // Infinities and NaNs pass through sums of any width.
  const bool finite = is_finite(a, 16 * k * warps) && is_finite(b, n * k);
  if (!finite && warps > 1) {
    for (int w = 0; w < warps; ++w)
      multiply_fp8_sums(a_type, b_type, halves, all_sums + w, a + 16 * k * w, b, n, k, keeps + w, 1);
    return;
  }
  u32* const* const sums = all_sums[0];
  alignas(64) u32 other[128 * 32];
  if (!finite) {
    u32* rows[128];
    for (int r = 0; r < n / 2; ++r) {
      rows[r] = other + 32 * r;
      __builtin_memcpy(rows[r], sums[r], 128);
    }
    multiply_rows<FloatLanes, ROOFGEN_FUSED>(rows, a, b, n, k, keeps[0]);
  }
  Fp8Rows rows[kMostFp8Warps];
  for (int w = 0; w < warps; ++w)
    for (int i = 0; i < 16 * k; ++i) {
      const float x = a[16 * k * w + i];
      rows[w].magnitude[i] = bits_of(x) & 0x7fffffffu;
      rows[w].negative[i] = bits_of(x) >> 31;
      rows[w].exponent[i] = s8(fp8_exponent(x, smallest_exponent(a_type)));
    }
  const int smallest = smallest_exponent(b_type);
  int first = 0;
  for (; first + 4 * kWidth <= n; first += 4 * kWidth)
    multiply_fp8_columns<4>(rows, all_sums, first, b + first * k, 4 * kWidth, k, smallest, keeps, halves, warps);
  for (; first < n; first += kWidth)
    multiply_fp8_columns<1>(rows, all_sums, first, b + first * k, n - first, k, smallest, keeps, halves, warps);
  for (int r = 0; r < n / 2 && !finite; ++r)
    for (int l = 0; l < 32; ++l)
      if ((other[32 * r + l] >> 23 & 255) == 255) sums[r][l] = other[32 * r + l];
}

void wgmma_multiply_fp8(Multiplicand a_type, Multiplicand b_type, WgmmaSum type, u32* const* const* sums,
                        const float* a, const float* b, u32 n, u32 k, const bool* keeps, u32 warps) {
  if (type == WgmmaSum::kF32)
    return multiply_fp8_sums(a_type, b_type, false, sums, a, b, int(n), int(k), keeps, int(warps));
  for (u32 w = 0; w < warps; ++w)
    with_wide_sums(sums[w], int(n), keeps[w], [&](u32* const* wide) {
      multiply_fp8_sums(a_type, b_type, true, &wide, a + 16 * k * w, b, int(n), int(k), keeps + w, 1);
    });
}

/// D = A x B + C of m16n8k16 and m16n8k32 as in mma.h, in steps of 16.
template <Multiplicand kType, int K>
struct mma_fp8 {
  static constexpr int kSteps = K / 16;
  static void run(const WarpRegs& regs, const Inst& in, const u32* lists, u32) {
    const u32 *d = lists + in.list, *a = d + 4, *b = a + 2 * kSteps, *c = b + kSteps;
    const auto decode = [&](u32 reg, bool columns, float* out) {
      wgmma_decode(kType, false, columns, regs.rows + reg * 32, kRegisterPieces, 1, out);
    };
    alignas(64) float a_elements[kSteps][16 * 16], b_elements[kSteps][8 * 16];
    for (int step = 0; step < kSteps; ++step) {
      for (int half = 0; half < 2; ++half) decode(a[2 * step + half], false, a_elements[step] + half * 8 * 16);
      decode(b[step], true, b_elements[step]);
    }
    alignas(64) u32 sums[4][32];
    u32* rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = static_cast<u32*>(__builtin_memcpy(sums[i], regs.rows + c[i] * 32, 128));
    u32* const* const all = rows;
    const bool keeps = true;
    for (int step = 0; step < kSteps; ++step)
      multiply_fp8_sums(kType, kType, false, &all, a_elements[step], b_elements[step], 8, 16, &keeps, 1);
    for (int i = 0; i < 4; ++i) __builtin_memcpy(regs.rows + d[i] * 32, sums[i], 128);
  }
};

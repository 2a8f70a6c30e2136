// Products of wgmma, on whole registers of a warp (inst.h, WgmmaTable). A register of sums has rows g and columns t of
// a block of 8 x 8 at lane 4 g + t, either the even or the odd columns (PTX ISA, "Register Fragments and Shared Memory
// Matrix Layouts"), so a vector of lanes is some rows times four columns: a product of a vector that repeats elements
// of A with one that repeats four elements of B. Sums never change places.
//
// The order of the additions is that of mma.h.

#if defined(__AVX512F__) && (defined(__clang__) || __GNUC__ >= 12)
#define ROOFGEN_WIDE_LANES 1
typedef float f32xn __attribute__((vector_size(64)));
#else
typedef float f32xn __attribute__((vector_size(32)));
#endif
constexpr int kVectorRows = int(sizeof(f32xn) / 16);  ///< rows of four columns in a vector
constexpr int kGroups = 16 / kVectorRows;             ///< vectors for the rows of a warp
constexpr int kBlockVectors = 8 / kVectorRows;        ///< of one block of 8 rows, which a register has
constexpr int kMostK = 32;

/// A vector of four columns for each row.
FN f32xn repeat_columns(const float* four) {
  f32x4 x = load_vector<f32x4>(four);
#if defined(ROOFGEN_WIDE_LANES) && defined(__clang__)
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
#elif defined(ROOFGEN_WIDE_LANES)
  return __builtin_ia32_broadcastf32x4_512(x, f32xn{}, 0xffff);  // GCC makes a detour through memory of a shuffle
#else
  return concat<f32x8>(x, x);
#endif
}
/// Each of the rows' elements for four columns.
FN f32xn repeat_rows(const float* rows) {
#if defined(ROOFGEN_WIDE_LANES)
  f32xn x = repeat_columns(rows);
  return __builtin_shufflevector(x, x, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
#else
  return f32xn{rows[0], rows[0], rows[0], rows[0], rows[1], rows[1], rows[1], rows[1]};
#endif
}

FN f32xn fma_vector(f32xn a, f32xn b, f32xn c) {
#if defined(ROOFGEN_WIDE_LANES) && defined(__clang__)
  f32xn r;
  for (int i = 0; i < 16; ++i) r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return r;
#elif defined(ROOFGEN_WIDE_LANES)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, 0xffff, 4 /* the current rounding direction */);
#else
  return fma8(a, b, c);
#endif
}

/// Eight elements; of columns the even before the odd ones, as the registers of sums have them.
FN void put_elements(f32x8 v, bool columns, float* out) {
  if (columns) v = ROOFGEN_SHUFFLE(f32x8, u32x8, v, v, 0, 2, 4, 6, 1, 3, 5, 7);
  __builtin_memcpy(out, &v, sizeof v);
}
/// The pieces of a block of 8 rows, at these bytes from `base`.
FN void find_pieces(const void* base, const u32* places, const char* piece[8]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) piece[i] = static_cast<const char*>(base) + places[i];
}
template <class F>
FN void decode_words(bool columns, const void* base, const u32* places, u32 blocks, float* out) {
  for (u32 block = 0; block < blocks; ++block, places += 8) {
    const char* piece[8];
    find_pieces(base, places, piece);
    u32x8 pairs[4], words[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      pairs[i] = concat<u32x8>(load_vector<u32x4>(piece[i]), load_vector<u32x4>(piece[i + 4]));
    transpose_pairs(pairs, words);
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c)
#pragma GCC unroll 4
      for (int j = 0; j < F::kPerWord; ++j, out += 8) put_elements(F::expand(words[c], j), columns, out);
  }
}
template <class F>
FN void decode_turned(bool columns, const void* base, const u32* places, u32 blocks, float* out) {
  for (u32 block = 0; block < blocks; ++block, places += 8) {
    const char* piece[8];
    find_pieces(base, places, piece);
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k, out += 8)
      put_elements(F::expand(__builtin_convertvector(load_vector<u16x8>(piece[k]), u32x8), 0), columns, out);
  }
}

void wgmma_decode(Multiplicand type, bool turned, bool columns, const void* base, const u32* places, u32 blocks,
                  float* out) {
  const auto rows = [&](auto words) { decode_words<decltype(words)>(columns, base, places, blocks, out); };
  const auto halves = [&](auto words) {
    turned ? decode_turned<decltype(words)>(columns, base, places, blocks, out) : rows(words);
  };
  switch (type) {
    case Multiplicand::kF16: return halves(HalfWords{});
    case Multiplicand::kBf16: return halves(Bf16Words{});
    case Multiplicand::kTf32: return rows(Tf32Words{});
    case Multiplicand::kE4m3: return rows(E4m3Words{});
    case Multiplicand::kE5m2: return rows(E5m2Words{});
    case Multiplicand::kS8: return rows(S8Words{});
    case Multiplicand::kU8: return rows(U8Words{});
  }
}

/// The same as in mma.h, for vectors of lanes.
struct FloatLanes {
  static FN f32xn start(f32xn c) { return c; }
  static FN f32xn finish(f32xn sum, f32xn) {
    typedef s32 sn __attribute__((vector_size(sizeof(f32xn))));
    return sum == sum ? sum : (f32xn)(sn{} + 0x7fffffff);
  }
};
struct IntegerLanes {
  typedef s32 sn __attribute__((vector_size(sizeof(f32xn))));
  typedef u32 un __attribute__((vector_size(sizeof(f32xn))));
  static FN f32xn start(f32xn) { return f32xn{}; }
  static FN f32xn finish(f32xn sum, f32xn c) { return (f32xn)((un) __builtin_convertvector(sum, sn) + (un)c); }
};

/// kVectors vectors of rows from `first` on, and the even and the odd columns of kBlocks blocks. `a` has a vector for
/// each group of rows and each k.
template <class Sum, bool kFused, int kVectors, int kBlocks>
FN void multiply_blocks(u32* const* sums, const f32xn* a, const float* b, int first, int block, int k, bool keeps) {
  f32xn c[kBlocks][2][kVectors], sum[kBlocks][2][kVectors];
  auto at = [&](int i, int odd, int v) {
    const int group = first + v;
    return sums[4 * (block + i) + 2 * (group / kBlockVectors) + odd] + 4 * kVectorRows * (group % kBlockVectors);
  };
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i)
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        c[i][odd][v] = keeps ? load_vector<f32xn>(at(i, odd, v)) : f32xn{};
        sum[i][odd][v] = Sum::start(c[i][odd][v]);
      }
  for (int kk = 0; kk < k; ++kk) {
    f32xn rows[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) rows[v] = a[kk * kGroups + first + v];
#pragma GCC unroll 4
    for (int i = 0; i < kBlocks; ++i)
#pragma GCC unroll 2
      for (int odd = 0; odd < 2; ++odd) {
        f32xn columns = repeat_columns(b + ((block + i) * k + kk) * 8 + 4 * odd);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          f32xn& s = sum[i][odd][v];
          s = kFused ? fma_vector(rows[v], columns, s) : s + rows[v] * columns;
        }
      }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kBlocks; ++i)
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        f32xn d = Sum::finish(sum[i][odd][v], c[i][odd][v]);
        __builtin_memcpy(at(i, odd, v), &d, sizeof d);
      }
}

template <class Sum, bool kFused>
void multiply_rows(u32* const* sums, const float* a, const float* b, int n, int k, bool keeps) {
  f32xn rows[kMostK * kGroups];
  for (int kk = 0; kk < k; ++kk)
    for (int group = 0; group < kGroups; ++group)
      rows[kk * kGroups + group] =
          repeat_rows(a + ((group / kBlockVectors) * k + kk) * 8 + kVectorRows * (group % kBlockVectors));
  // As many sums as there are registers for.
  constexpr int kVectors = 4, kBlocks = kGroups == 4 ? 3 : 1;
  int block = 0;
  for (; block + kBlocks <= n / 8; block += kBlocks)
    for (int first = 0; first < kGroups; first += kVectors)
      multiply_blocks<Sum, kFused, kVectors, kBlocks>(sums, rows, b, first, block, k, keeps);
  for (; block < n / 8; ++block)
    for (int first = 0; first < kGroups; first += kVectors)
      multiply_blocks<Sum, kFused, kVectors, 1>(sums, rows, b, first, block, k, keeps);
}

/// Sums of two columns in a word: `multiply` gets them as floats, which are rounded at the end.
template <class Multiply>
FN void with_wide_sums(u32* const* sums, int columns, bool keeps, Multiply multiply) {
  alignas(64) u32 wide[128 * 32];
  u32* rows[128];
  for (int r = 0; r < columns / 4; ++r) {
    rows[2 * r] = wide + 64 * r, rows[2 * r + 1] = wide + 64 * r + 32;
    for (int l = 0; l < 32 && keeps; ++l) {
      wide[64 * r + l] = bits_of(Half::load(u16(sums[r][l])));
      wide[64 * r + 32 + l] = bits_of(Half::load(u16(sums[r][l] >> 16)));
    }
  }
  multiply(rows);
  for (int r = 0; r < columns / 4; ++r)
    for (int l = 0; l < 32; ++l)
      sums[r][l] = Half::store(f32_of(wide[64 * r + l])) | u32(Half::store(f32_of(wide[64 * r + 32 + l]))) << 16;
}

void wgmma_multiply(WgmmaSum type, u32* const* sums, const float* a, const float* b, u32 n, u32 k, bool keeps) {
  const int columns = int(n), depth = int(k);
  bool fused = ROOFGEN_FUSED || !is_exact(reinterpret_cast<const f32x8*>(a), 2 * depth,
                                          reinterpret_cast<const f32x8*>(b), columns / 8 * depth);
  if (type == WgmmaSum::kS32) return multiply_rows<IntegerLanes, ROOFGEN_FUSED>(sums, a, b, columns, depth, keeps);
  const auto multiply = [&](u32* const* rows) {
    fused ? multiply_rows<FloatLanes, true>(rows, a, b, columns, depth, keeps)
          : multiply_rows<FloatLanes, false>(rows, a, b, columns, depth, keeps);
  };
  type == WgmmaSum::kF32 ? multiply(sums) : with_wide_sums(sums, columns, keeps, multiply);
}

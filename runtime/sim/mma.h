// Warp-level matrix multiply-accumulate and the 8x8 transpose. Included by lanes.inc.
//
// With one row per register and one word per lane, an A fragment register *is* a row-major tile of 8 rows of four
// words: lane 4r+c holds word c of row r, that is elements E c .. E c + E - 1 where E fit a word. A second register has
// the eight rows below, a second pair the next four words. A B register is the same for B transposed. An accumulator
// pair c0, c1 holds the even and odd columns of an 8x8 tile, one row per four lanes. So it is for every type of
// multiplicand (PTX ISA, fragments of mma.m16n8k16 for 16-bit, .m16n8k32 for 8-bit, .m16n8k8 for tf32 elements).
//
// The sum runs over k in ascending order, one fused multiply-add per step; a tensor core's own order
// and width are not documented. A product of two elements is exact in float unless bf16 or tf32
// exponents leave its range, so hosts without a fused unit may multiply and add (see is_exact).

typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef u16 u16x8 __attribute__((vector_size(16)));
typedef u32 u32x4 __attribute__((vector_size(16)));
typedef u32 u32x8 __attribute__((vector_size(32)));
typedef s32 s32x8 __attribute__((vector_size(32)));

#if defined(__clang__) || __GNUC__ >= 12
#define ROOFGEN_SHUFFLE(V, I, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ROOFGEN_SHUFFLE(V, I, a, b, ...) __builtin_shuffle(a, b, (I){__VA_ARGS__})
#endif
FN u16x8 zip_low(u16x8 a, u16x8 b) { return ROOFGEN_SHUFFLE(u16x8, u16x8, a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
FN u16x8 zip_high(u16x8 a, u16x8 b) { return ROOFGEN_SHUFFLE(u16x8, u16x8, a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

template <class V>
FN V load_vector(const void* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

/// Three rounds of interleaving row i with row i+4 transpose an 8x8 tile. Vectors are loaded and
/// stored one by one: wider moves over them would wait for the store buffer.
FN void transpose_rows(u16x8 r[8]) {
  for (int round = 0; round < 3; ++round) {
    u16x8 a = r[0], b = r[1], c = r[2], d = r[3], e = r[4], f = r[5], g = r[6], h = r[7];
    r[0] = zip_low(a, e), r[1] = zip_high(a, e), r[2] = zip_low(b, f), r[3] = zip_high(b, f);
    r[4] = zip_low(c, g), r[5] = zip_high(c, g), r[6] = zip_low(d, h), r[7] = zip_high(d, h);
  }
}
__attribute__((unused)) void transpose8x8(const void* in, void* out) {
  u16x8 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = load_vector<u16x8>(static_cast<const char*>(in) + 16 * i);
  transpose_rows(r);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) __builtin_memcpy(static_cast<char*>(out) + 16 * i, &r[i], 16);
}

/// Two vectors of four side by side.
template <class V8, class V4>
FN V8 concat(V4 low, V4 high) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
  return V8{low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
#endif
}

// Types of multiplicands: how many elements a word holds, and element j of eight words as floats.
struct Bf16Words {
  static constexpr int kPerWord = 2;
  static FN f32x8 expand(u32x8 w, int j) { return (f32x8)(j ? w & 0xffff0000u : w << 16); }
};
struct HalfWords {
  static constexpr int kPerWord = 2;
  /// half_to_float on eight values; branch-free, all three cases are computed.
  static FN f32x8 expand(u32x8 w, int j) {
    w >>= 16 * j;
    u32x8 sign = (w & 0x8000u) << 16, body = (w & 0x7fffu) << 13, exponent = body & 0x0f800000u;
    u32x8 subnormal = (u32x8)((f32x8)(body + (113u << 23)) - f32_of(113u << 23));
    u32x8 r = exponent == 0x0f800000u ? body + (224u << 23) : exponent == 0 ? subnormal : body + (112u << 23);
    return (f32x8)(r | sign);
  }
};
/// The tensor cores ignore the lower 13 bits of an fp32 number given as tf32.
struct Tf32Words {
  static constexpr int kPerWord = 1;
  static FN f32x8 expand(u32x8 w, int) { return (f32x8)(w & 0xffffe000u); }
};
struct E4m3Words {
  static constexpr int kPerWord = 4;
  static FN f32x8 expand(u32x8 w, int j) {
    w >>= 8 * j;
    u32x8 sign = (w & 0x80u) << 24, body = w & 0x7fu;
    u32x8 subnormal = (u32x8)(__builtin_convertvector((s32x8)body, f32x8) * f32_of(118u << 23));
    u32x8 r = body == 0x7fu ? u32x8{} + 0x7fffffffu : body < 8u ? subnormal : (body << 20) + (120u << 23);
    return (f32x8)(r | sign);
  }
};
/// The upper byte of a half.
struct E5m2Words {
  static constexpr int kPerWord = 4;
  static FN f32x8 expand(u32x8 w, int j) { return HalfWords::expand((w >> (8 * j) & 0xffu) << 8, 0); }
};
struct S8Words {
  static constexpr int kPerWord = 4;
  static FN f32x8 expand(u32x8 w, int j) { return __builtin_convertvector((s32x8)(w << (24 - 8 * j)) >> 24, f32x8); }
};

struct U8Words {
  static constexpr int kPerWord = 4;
  static FN f32x8 expand(u32x8 w, int j) { return __builtin_convertvector((s32x8)(w >> (8 * j) & 0xffu), f32x8); }
};

/// Eight rows of four words, row i and row i + 4 in one vector, become four vectors over the rows.
FN void transpose_pairs(const u32x8 r[4], u32x8 out[4]) {
  u32x8 t[4];
  t[0] = ROOFGEN_SHUFFLE(u32x8, u32x8, r[0], r[1], 0, 8, 1, 9, 4, 12, 5, 13);
  t[1] = ROOFGEN_SHUFFLE(u32x8, u32x8, r[0], r[1], 2, 10, 3, 11, 6, 14, 7, 15);
  t[2] = ROOFGEN_SHUFFLE(u32x8, u32x8, r[2], r[3], 0, 8, 1, 9, 4, 12, 5, 13);
  t[3] = ROOFGEN_SHUFFLE(u32x8, u32x8, r[2], r[3], 2, 10, 3, 11, 6, 14, 7, 15);
  out[0] = ROOFGEN_SHUFFLE(u32x8, u32x8, t[0], t[2], 0, 1, 8, 9, 4, 5, 12, 13);
  out[1] = ROOFGEN_SHUFFLE(u32x8, u32x8, t[0], t[2], 2, 3, 10, 11, 6, 7, 14, 15);
  out[2] = ROOFGEN_SHUFFLE(u32x8, u32x8, t[1], t[3], 0, 1, 8, 9, 4, 5, 12, 13);
  out[3] = ROOFGEN_SHUFFLE(u32x8, u32x8, t[1], t[3], 2, 3, 10, 11, 6, 7, 14, 15);
}
/// Rows n of four words (k pairs) become four vectors over n.
FN void transpose_words(const u32* rows, u32x8 out[4]) {
  u32x8 r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    r[i] = concat<u32x8>(load_vector<u32x4>(rows + 4 * i), load_vector<u32x4>(rows + 4 * i + 16));
  transpose_pairs(r, out);
}

#if defined(__FMA__)
FN f32x8 fma8(f32x8 a, f32x8 b, f32x8 c) { return __builtin_ia32_vfmaddps256(a, b, c); }
#else
// Out of line: the emulation of fma is long, and every function of an mma shape has 64 or more calls.
__attribute__((noinline, unused)) static f32x8 fma8(f32x8 a, f32x8 b, f32x8 c) {
  f32x8 r;
  for (int i = 0; i < 8; ++i) r[i] = fma_single(float(a[i]), float(b[i]), float(c[i]));
  return r;
}
#endif

#if defined(__FMA__) || defined(__aarch64__)
#define ROOFGEN_FUSED 1
#else
#define ROOFGEN_FUSED 0
#endif

/// Whether every product of an element of a and one of b is a normal float or zero, so that it is
/// exact and multiplying then adding gives what a fused step gives.
FN bool is_exact(const f32x8* a, int na, const f32x8* b, int nb) {
  auto range = [](const f32x8* v, int n, u32& low, u32& high) {
    low = 255, high = 0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < 8; ++j) {
        u32 u = bits_of(float(v[i][j])), e = u >> 23 & 255;
        bool zero = (u << 1) == 0;
        low = !zero && e < low ? e : low;
        high = !zero && e > high ? e : high;
      }
  };
  u32 low_a, high_a, low_b, high_b;
  range(a, na, low_a, high_a);
  range(b, nb, low_b, high_b);
  // Biased exponents: the product's is at least low_a + low_b - 127 and at most one over the sum.
  return low_a > 0 && low_b > 0 && high_a < 255 && high_b < 255 && low_a + low_b > 127 && high_a + high_b < 127 + 253;
}

/// Two rows of an accumulator pair, columns interleaved, and back.
FN u32x8 load_columns(const u32* even, const u32* odd) {
  u32x8 both = concat<u32x8>(load_vector<u32x4>(even), load_vector<u32x4>(odd));
  return ROOFGEN_SHUFFLE(u32x8, u32x8, both, both, 0, 4, 1, 5, 2, 6, 3, 7);
}
FN void store_columns(u32x8 d, u32* even, u32* odd) {
  d = ROOFGEN_SHUFFLE(u32x8, u32x8, d, d, 0, 2, 4, 6, 1, 3, 5, 7);
  __builtin_memcpy(even, &d, 16);
  __builtin_memcpy(odd, reinterpret_cast<const char*>(&d) + 16, 16);
}

/// Accumulators: what the sum over k starts from, and what becomes of it.
struct FloatSum {
  static FN f32x8 start(u32x8 c) { return (f32x8)c; }
  static FN u32x8 finish(f32x8 sum, u32x8) { return sum == sum ? (u32x8)sum : u32x8{} + 0x7fffffffu; }
};
/// 32 products of 8-bit integers sum up to 2^19 at most, exactly in float; the accumulator wraps around.
struct IntegerSum {
  static FN f32x8 start(u32x8) { return f32x8{}; }
  static FN u32x8 finish(f32x8 sum, u32x8 c) { return (u32x8) __builtin_convertvector(sum, s32x8) + c; }
};

/// D = A x B + C for m16n8kK; list: 4 D rows, the A rows, the B rows, 4 C rows.
template <class F, class Sum, int K>
struct mma {
  static constexpr int kPer = F::kPerWord, kB = K / (4 * kPer), kA = 2 * kB;
  static void run(const WarpRegs& regs, const Inst& in, const u32* lists, u32) {
    const u32* list = lists + in.list;
    f32x8 a[kA][kPer][4];  // tile (bit 0: lower rows, bit 1: upper k), element of a word, two rows of four words each
    f32x8 bt[K];           // k, column
#pragma GCC unroll 4
    for (int i = 0; i < kA; ++i) {
      const u32* row = regs.rows + list[4 + i] * 32;
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        u32x8 words = load_vector<u32x8>(row + 8 * r);
#pragma GCC unroll 4
        for (int j = 0; j < kPer; ++j) a[i][j][r] = F::expand(words, j);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kB; ++i) {
      u32x8 words[4];
      transpose_words(regs.rows + list[4 + kA + i] * 32, words);
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c)
#pragma GCC unroll 4
        for (int j = 0; j < kPer; ++j) bt[(4 * i + c) * kPer + j] = F::expand(words[c], j);
    }
    bool fused = ROOFGEN_FUSED || !is_exact(a[0][0], kA * kPer * 4, bt, K);
    u32x8 before[2][8];  // all of C: a register of D may be another one of C
    for (int half = 0; half < 2; ++half) {
      const u32* even = regs.rows + list[4 + kA + kB + 2 * half] * 32;
      const u32* odd = regs.rows + list[5 + kA + kB + 2 * half] * 32;
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) before[half][r] = load_columns(even + 4 * r, odd + 4 * r);
    }
    for (int half = 0; half < 2; ++half) {
      const u32x8* c = before[half];
      f32x8 sum[8];
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) sum[r] = Sum::start(c[r]);
      for (int tile = half; tile < kA; tile += 2) {
        const f32x8* b = bt + 4 * kPer * (tile >> 1);
#pragma GCC unroll 8
        for (int k = 0; k < 4 * kPer; ++k) {
          const float* elements = reinterpret_cast<const float*>(a[tile][k % kPer]) + k / kPer;
#pragma GCC unroll 8
          for (int r = 0; r < 8; ++r) {
            float x = elements[4 * r];
            f32x8 scale = {x, x, x, x, x, x, x, x};
            sum[r] = fused ? fma8(scale, b[k], sum[r]) : sum[r] + scale * b[k];
          }
        }
      }
      u32* d_even = regs.rows + list[2 * half] * 32;
      u32* d_odd = regs.rows + list[2 * half + 1] * 32;
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) store_columns(Sum::finish(sum[r], c[r]), d_even + 4 * r, d_odd + 4 * r);
    }
  }
};

/// The same with accumulators of halves, two columns in a word: 2 D rows, the A rows, the B rows, 2 C rows. Summed up
/// in float and rounded at the end; what tensor cores do between is not documented.
template <class F, int K>
struct mma_half {
  static constexpr int kFactors = 3 * K / (4 * F::kPerWord);
  static void run(const WarpRegs& regs, const Inst& in, const u32* lists, u32 mask) {
    alignas(64) u32 rows[(8 + kFactors) * 32];
    u32 list[8 + kFactors];
    for (u32 i = 0; i < 8 + kFactors; ++i) list[i] = i;
    const u32* from = lists + in.list;
    for (int i = 0; i < kFactors; ++i) __builtin_memcpy(rows + (4 + i) * 32, regs.rows + from[2 + i] * 32, 128);
    for (int half = 0; half < 2; ++half) {
      const u32* c = regs.rows + from[2 + kFactors + half] * 32;
      u32* wide = rows + (4 + kFactors + 2 * half) * 32;
      for (int l = 0; l < 32; ++l)
        wide[l] = bits_of(Half::load(u16(c[l]))), wide[32 + l] = bits_of(Half::load(u16(c[l] >> 16)));
    }
    Inst whole = in;
    whole.list = 0;
    mma<F, FloatSum, K>::run({rows, regs.preds}, whole, list, mask);
    for (int half = 0; half < 2; ++half) {
      u32* d = regs.rows + from[half] * 32;
      const u32* wide = rows + 2 * half * 32;
      for (int l = 0; l < 32; ++l) d[l] = Half::store(f32_of(wide[l])) | u32(Half::store(f32_of(wide[32 + l]))) << 16;
    }
  }
};

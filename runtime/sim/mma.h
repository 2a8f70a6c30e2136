// Warp-level matrix multiply-accumulate and the 8x8 transpose. Included by lanes.inc.
//
// With one row per register and one element per lane, an A fragment register *is* a row-major 8x8
// tile of 16-bit elements: lane 4r+c holds elements 2c and 2c+1 of row r. A B register is the same
// for B transposed. An accumulator pair c0, c1 holds the even and odd columns of an 8x8 tile of
// floats, one row per four lanes (PTX ISA, fragments of mma.m16n8k16).
//
// Products of two 16-bit values are exact in float but for bf16 underflow, and the sum runs over k
// in ascending order with one rounding per step; a tensor core's own order is not documented.

typedef float f32x8 __attribute__((vector_size(32)));
typedef u16 u16x8 __attribute__((vector_size(16)));
typedef u32 u32x8 __attribute__((vector_size(32)));

#if defined(__clang__) || __GNUC__ >= 12
#define ROOFGEN_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ROOFGEN_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (u16x8){__VA_ARGS__})
#endif
FN u16x8 zip_low(u16x8 a, u16x8 b) { return ROOFGEN_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
FN u16x8 zip_high(u16x8 a, u16x8 b) { return ROOFGEN_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

/// Three rounds of interleaving row i with row i+4 transpose an 8x8 tile.
FN void transpose_tile(const void* in, void* out) {
  u16x8 r[8], t[8];
  __builtin_memcpy(r, in, sizeof r);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = zip_low(r[i], r[i + 4]);
      t[2 * i + 1] = zip_high(r[i], r[i + 4]);
    }
    __builtin_memcpy(r, t, sizeof r);
  }
  __builtin_memcpy(out, r, sizeof r);
}
void transpose8x8(const void* in, void* out) { transpose_tile(in, out); }

template <class F>
FN void expand(const u16* in, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = F::load(in[i]);
}

/// D = A x B + C for m16n8k16 (K = 16) and m16n8k8 (K = 8); list: 4 D rows, K/4 A rows, K/8 B rows, 4 C rows.
template <class F, int K>
struct mma_f32 {
  static void run(const WarpRegs& regs, const Inst& in, const u32* lists, u32) {
    const u32* list = lists + in.list;
    constexpr int kA = K / 4, kB = K / 8;
    alignas(64) float a[kA][64];   // tile (i & 1: lower rows, i >> 1: upper k), row, k
    alignas(64) float bt[K][8];    // k, column
    for (int i = 0; i < kA; ++i) expand<F>(reinterpret_cast<const u16*>(regs.rows + list[4 + i] * 32), a[i], 64);
    for (int i = 0; i < kB; ++i) {
      alignas(16) u16 tile[64];
      transpose_tile(regs.rows + list[4 + kA + i] * 32, tile);
      expand<F>(tile, bt[8 * i], 64);
    }
    for (int half = 0; half < 2; ++half) {
      const float* even = reinterpret_cast<const float*>(regs.rows + list[4 + kA + kB + 2 * half] * 32);
      const float* odd = reinterpret_cast<const float*>(regs.rows + list[5 + kA + kB + 2 * half] * 32);
      f32x8 sum[8];
      for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 4; ++c) {
          sum[r][2 * c] = even[4 * r + c];
          sum[r][2 * c + 1] = odd[4 * r + c];
        }
      for (int k = 0; k < K; ++k) {
        f32x8 b;
        __builtin_memcpy(&b, bt[k], sizeof b);
        const float* column = a[half + (k >> 3) * 2] + (k & 7);
        for (int r = 0; r < 8; ++r) sum[r] += column[8 * r] * b;
      }
      float* d_even = reinterpret_cast<float*>(regs.rows + list[2 * half] * 32);
      float* d_odd = reinterpret_cast<float*>(regs.rows + list[2 * half + 1] * 32);
      for (int r = 0; r < 8; ++r)
        for (int c = 0; c < 4; ++c) {
          d_even[4 * r + c] = canon(float(sum[r][2 * c]));
          d_odd[4 * r + c] = canon(float(sum[r][2 * c + 1]));
        }
    }
  }
};

// mma.sync on numbers of 4, 6 and 8 bits of any two formats, with scales of blocks of k: kind::f8f6f4, mxf8f6f4, mxf4
// and mxf4nvf4 of sm_120 (PTX ISA, mma; who gives the scales also as in CUTLASS, mma_traits_sm120.hpp). Fragments as in
// mma.h. Included by lanes.inc.

/// By Inst::type, of A in the lower and of B in the upper half. e2m1 of kind::f8f6f4 is in bits 2 to 5 of its byte; of
/// 4-bit kinds (14) in half a byte.
FN float small_value(u32 format, u32 bits) {
  switch (format) {
    case 0: return E4m3::load(bits & 255u);
    case 1: return E5m2::load(bits & 255u);
    case 2: return E2m3::load(bits & 63u);
    case 3: return E3m2::load(bits & 63u);
    case 4: return E2m1::load(bits >> 2 & 15u);
    default: return E2m1::load(bits & 15u);
  }
}
FN float scale_value(bool power, u32 bits) {
  if (!power) return E4m3::load(bits & 127u);
  return bits == 255 ? f32_of(0x7fffffffu) : bits ? f32_of(bits << 23) : f32_of(0x00400000u);
}

/// The list: 4 D, 4 A, 2 B, 4 C, and with scales the words of A's scales, their byte and
/// thread, and the same of B. Inst::size:
/// scales of a row; Inst::sub: K; kFlagSigned: scales are powers of two.
struct mma_small {
  static void run(const WarpRegs& regs, const Inst& in, const u32* lists, u32) {
    const u32* list = lists + in.list;
    const u32 k = in.sub, bits = k == 64 ? 4 : 8, per_word = 32 / bits, scales = in.size;
    const bool power = in.flags & kFlagSigned;
    const auto word = [&](u32 entry, u32 lane) { return regs.rows[list[entry] * 32 + lane]; };
    float a[16][64], b[8][64], of_a[16][4], of_b[8][4];
    for (u32 row = 0; row < 16; ++row)
      for (u32 i = 0; i < k; ++i) {
        u32 w = i / per_word;
        a[row][i] =
            small_value(in.type & 15, word(4 + row / 8 + 2 * (w / 4), row % 8 * 4 + w % 4) >> i % per_word * bits);
      }
    for (u32 column = 0; column < 8; ++column)
      for (u32 i = 0; i < k; ++i) {
        u32 w = i / per_word;
        b[column][i] = small_value(in.type >> 4, word(8 + w / 4, column * 4 + w % 4) >> i % per_word * bits);
      }
    // Of A the scales of rows g and g + 8 are in two threads of four, of B in one.
    for (u32 s = 0; s < scales; ++s) {
      for (u32 row = 0; row < 16; ++row)
        of_a[row][s] =
            scale_value(power, word(14, row % 8 * 4 + 2 * (word(16, 0) & 1) + row / 8) >> 8 * (word(15, 0) + s) & 255u);
      for (u32 column = 0; column < 8; ++column)
        of_b[column][s] = scale_value(power, word(17, column * 4 + (word(19, 0) & 3)) >> 8 * (word(18, 0) + s) & 255u);
    }
    float sum[16][8];
    for (u32 row = 0; row < 16; ++row)
      for (u32 column = 0; column < 8; ++column) {
        float x = f32_of(word(10 + 2 * (row / 8) + column % 2, row % 8 * 4 + column / 2));
        for (u32 i = 0; i < k; ++i) {
          float left = a[row][i], right = b[column][i];
          if (scales) left *= of_a[row][i * scales / k], right *= of_b[column][i * scales / k];
          x = fma_single(left, right, x);
        }
        sum[row][column] = canon(x);
      }
    for (u32 row = 0; row < 16; ++row)
      for (u32 column = 0; column < 8; ++column)
        regs.rows[list[2 * (row / 8) + column % 2] * 32 + row % 8 * 4 + column / 2] = bits_of(sum[row][column]);
  }
};

// mma.sync of any two types of multiplicands, dense or with a sparse A, with or without scales of blocks: what the fast
// functions of mma.h leave out (PTX ISA, mma and mma.sp; who gives the scales and the metadata also as in CUTLASS,
// mma_traits_sm120.hpp, mma_traits_sm120_sparse.hpp and mma_traits_sm90_gmma_sparse.hpp). Fragments as in mma.h.
// Included by lanes.inc.

/// e2m1 of kind::f8f6f4 is in bits 2 to 5 of its byte; of 4-bit kinds in half a byte.
FN float mma_value(MmaType type, u32 bits) {
  switch (type) {
    case MmaType::kE4m3: return E4m3::load(bits & 255u);
    case MmaType::kE5m2: return E5m2::load(bits & 255u);
    case MmaType::kE2m3: return E2m3::load(bits & 63u);
    case MmaType::kE3m2: return E3m2::load(bits & 63u);
    case MmaType::kE2m1: return E2m1::load(bits >> 2 & 15u);
    case MmaType::kE2m1Half: return E2m1::load(bits & 15u);
    case MmaType::kF16: return Half::load(u16(bits));
    case MmaType::kBf16: return Bf16::load(u16(bits));
    case MmaType::kTf32: return f32_of(bits & 0xffffe000u);
    case MmaType::kS8: return float(s8(bits));
    case MmaType::kU8: return float(bits & 255u);
    case MmaType::kS4: return float(s32(bits << 28) >> 28);
    case MmaType::kU4: return float(bits & 15u);
  }
  return 0;
}
FN float scale_value(bool power, u32 bits) {
  if (!power) return E4m3::load(bits & 127u);
  return bits == 255 ? f32_of(0x7fffffffu) : bits ? f32_of(bits << 23) : f32_of(0x00400000u);
}

/// The list: D, A, B, C, the metadata of a sparse A, and with scales the words of A's scales, their byte and thread,
/// and the same of B. MmaForm says how many; Inst::size: scales of a row.
struct mma_any {
  static void run(const WarpRegs& regs, const Inst& in, const u32* lists, u32) {
    const u32* list = lists + in.list;
    const MmaForm form = MmaForm::of(in);
    const u32 k = form.k, stored = form.sparse ? k / 2 : k, scales = in.size, bits = bits_of(form.a);
    const u32 per_word = 32 / bits, sums = form.sum_registers(), of_a = stored / per_word / 4 * (form.rows / 8);
    const u32 at_b = sums + of_a, at_c = at_b + k / per_word / 4, extra = at_c + sums;
    const auto word = [&](u32 entry, u32 lane) { return regs.rows[list[entry] * 32 + lane]; };
    float a[16][128] = {}, b[8][128], of_row[16][4], of_column[8][4];
    for (u32 row = 0; row < form.rows; ++row)
      for (u32 i = 0; i < stored; ++i) {
        const u32 w = i / per_word, reg = row / 8 + form.rows / 8 * (w / 4);
        const float x = mma_value(form.a, word(sums + reg, row % 8 * 4 + w % 4) >> i % per_word * bits);
        if (!form.sparse) {
          a[row][i] = x;
          continue;
        }
        const MmaForm::Code code = form.code_of(row, i / form.per_chunk());
        a[row][form.place_of(i, word(extra, code.lane) >> code.shift & 15)] = x;
      }
    for (u32 column = 0; column < 8; ++column)
      for (u32 i = 0; i < k; ++i) {
        const u32 w = i / per_word;
        b[column][i] = mma_value(form.b, word(at_b + w / 4, column * 4 + w % 4) >> i % per_word * bits);
      }
    // Of A the scales of rows g and g + 8 are in two threads of four, of B in one.
    const u32 at = extra + form.sparse;
    for (u32 s = 0; s < scales; ++s) {
      for (u32 row = 0; row < 16; ++row)
        of_row[row][s] = scale_value(
            form.powers,
            word(at, row % 8 * 4 + 2 * (word(at + 2, 0) & 1) + row / 8) >> 8 * (word(at + 1, 0) + s) & 255u);
      for (u32 column = 0; column < 8; ++column)
        of_column[column][s] = scale_value(
            form.powers, word(at + 3, column * 4 + (word(at + 5, 0) & 3)) >> 8 * (word(at + 4, 0) + s) & 255u);
    }
    u32 out[16][8];
    for (u32 row = 0; row < form.rows; ++row)
      for (u32 column = 0; column < 8; ++column) {
        const bool halves = form.sum == WgmmaSum::kF16;
        const u32 reg = halves ? row / 8 : 2 * (row / 8) + column % 2, lane = row % 8 * 4 + column / 2;
        const u32 c = word(at_c + reg, lane) >> (halves ? column % 2 * 16 : 0);
        if (form.sum == WgmmaSum::kS32) {
          s64 sum = s32(c);
          for (u32 i = 0; i < k; ++i) sum += s64(a[row][i]) * s64(b[column][i]);
          const s64 most = 0x7fffffff;
          if (form.saturates) sum = sum > most ? most : sum < -most - 1 ? -most - 1 : sum;
          out[row][column] = u32(sum);
          continue;
        }
        float x = halves ? Half::load(u16(c)) : f32_of(c);
        for (u32 i = 0; i < k; ++i) {
          float left = a[row][i], right = b[column][i];
          if (scales) left *= of_row[row][i * scales / k], right *= of_column[column][i * scales / k];
          x = fma_single(left, right, x);
        }
        out[row][column] = halves ? Half::store(x) : bits_of(canon(x));
      }
    for (u32 row = 0; row < form.rows; ++row)
      for (u32 column = 0; column < 8; ++column) {
        const u32 lane = row % 8 * 4 + column / 2;
        if (form.sum != WgmmaSum::kF16)
          regs.rows[list[2 * (row / 8) + column % 2] * 32 + lane] = out[row][column];
        else if (column % 2 == 0)
          regs.rows[list[row / 8] * 32 + lane] = out[row][column] | out[row][column + 1] << 16;
      }
  }
};

/// movmatrix: a warp transposes 8 x 8 elements of 16 bits; lane l holds two of row l / 4.
struct move_matrix {
  static void run(const WarpRegs& regs, const Inst& in, const u32*, u32) {
    u16 from[64], to[64];
    for (u32 l = 0; l < 32; ++l) {
      const u32 x = regs.rows[in.a * 32 + l];
      from[2 * l] = u16(x), from[2 * l + 1] = u16(x >> 16);
    }
    transpose8x8(from, to);
    for (u32 l = 0; l < 32; ++l) regs.rows[in.d * 32 + l] = to[2 * l] | u32(to[2 * l + 1]) << 16;
  }
};

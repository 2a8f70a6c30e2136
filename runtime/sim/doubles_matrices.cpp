// Products of matrices in double: mma and wgmma. Sums lie in registers as in mma.h: lane 4r+c holds columns 2c and 2c+1
// of row r of a block of 8 x 8, in two registers of floats or the halves of one.
#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/wgmma.h"

namespace roofgen::sim {

// ---- any product ---------------------------------------------------------------------------------------

CtaDoubles::Product::Product(uint32_t rows_, uint32_t columns_, uint32_t k_) : rows(rows_), columns(columns_), k(k_) {
  a.resize(size_t{rows} * k);
  b.resize(size_t{k} * columns);
  c.resize(size_t{rows} * columns);
  d.resize(c.size());
}

void CtaDoubles::Product::multiply() {
  std::vector<double> line(columns);
  for (uint32_t i = 0; i < rows; ++i) {
    for (uint32_t n = 0; n < columns; ++n) line[n] = c[i * columns + n].value;
    for (uint32_t kk = 0; kk < k; ++kk) {
      const double x = a[i * k + kk].value;
      const Element* const other = &b[kk * columns];
      for (uint32_t n = 0; n < columns; ++n) line[n] += x * other[n].value;
    }
    std::copy(line.begin(), line.end(), d.begin() + i * columns);
  }
}

uint32_t CtaDoubles::Product::origin(uint32_t row, uint32_t column) const {
  uint32_t out = c[row * columns + column].origin;
  for (uint32_t kk = 0; !out && kk < k; ++kk)
    out = a[row * k + kk].origin ? a[row * k + kk].origin : b[kk * columns + column].origin;
  return out;
}

double CtaDoubles::Product::largest_term(uint32_t row, uint32_t column) const {
  double out = std::fabs(c[row * columns + column].value);
  for (uint32_t kk = 0; kk < k; ++kk)
    out = std::max(out, std::fabs(a[row * k + kk].value * b[kk * columns + column].value));
  return out;
}

/// Calls `element(register, its unit, lane, row, column)` for the sums of a warp, whose 16 rows begin at `rows_from`.
template <class F>
void CtaDoubles::each_sum(Format format, uint32_t rows_from, uint32_t blocks, F&& element) {
  const bool halves = format == Format::kF16;
  for (uint32_t block = 0; block < blocks; ++block)
    for (uint32_t i = 0; i < 4; ++i)
      for (uint32_t l = 0; l < kWarpSize; ++l)
        element(halves ? 2 * block + i / 2 : 4 * block + i, halves ? i % 2 : 0, l, rows_from + 8 * (i / 2) + l / 4,
                8 * block + 2 * (l % 4) + i % 2);
}

void CtaDoubles::read_sums(const Warp& w, const uint32_t* list, Format format, uint32_t rows_from, uint32_t blocks) {
  each_sum(format, rows_from, blocks, [&](uint32_t i, uint32_t unit, uint32_t l, uint32_t row_, uint32_t column) {
    Product::Element& to = product_.c[row_ * product_.columns + column];
    const Row& r = row(w, list[i]);
    if (r.has[unit] >> l & 1 && r.format[unit][l] == format)
      to = {r.value[unit][l], r.origin[unit][l]};
    else
      to = {decoded(format, machine_.row(w, list[i])[l] >> 16 * unit & low_bytes(bytes_of(format))), 0};
  });
}

void CtaDoubles::write_sums(const Warp& w, const Inst& in, const uint32_t* list, Format format, uint32_t rows_from,
                            uint32_t blocks) {
  for (uint32_t i = 0; i < blocks * (format == Format::kF16 ? 2 : 4); ++i) forget(w, list[i], false, ~0u);
  each_sum(format, rows_from, blocks, [&](uint32_t i, uint32_t unit, uint32_t l, uint32_t row_, uint32_t column) {
    const double value = product_.d[row_ * product_.columns + column];
    const double own = decoded(format, machine_.row(w, list[i])[l] >> 16 * unit & low_bytes(bytes_of(format)));
    if (own == value) return;
    const bool apart = launch_.apart(own, value, format);
    write(w, in, list[i], unit, format, l, value, apart ? product_.origin(row_, column) : 0,
          apart ? product_.largest_term(row_, column) : 0);
  });
}

// ---- mma -----------------------------------------------------------------------------------------------

namespace {

/// Of multiplicands. Numbers of 8 bits are exact here.
double decoded_byte(bool e5m2, uint32_t bits) {
  if (e5m2) return decoded(Format::kF16, bits << 8);
  const auto exponent = static_cast<int>(bits >> 3 & 15), digits = static_cast<int>(bits & 7);
  const double size = (bits & 0x7f) == 0x7f ? std::nan("")
                      : exponent == 0       ? std::ldexp(digits, -9)
                                            : std::ldexp(digits + 8, exponent - 10);
  return bits & 0x80 ? -size : size;
}

}  // namespace

/// The list: the registers of D, A, B and C.
void CtaDoubles::before_mma(const Warp& w, const Inst& in, const DoubleRule& rule) {
  product_ = Product(16, 8, rule.k);
  const uint32_t* list = machine_.kernel_.lists.data() + in.list + (rule.to == Format::kF16 ? 2 : 4);
  const uint32_t bytes = rule.from == Format::kNone ? 1 : bytes_of(rule.from), per_word = 4 / bytes;
  const uint32_t of_b = rule.k / (4 * per_word), of_a = 2 * of_b;
  for (uint32_t i = 0; i < of_a + of_b; ++i) {
    const bool is_a = i < of_a;
    uint64_t own[kWarpSize];
    std::copy_n(machine_.row(w, list[i]), kWarpSize, own);
    for (uint32_t j = 0; j < per_word; ++j) {
      Numbers x{};
      if (bytes == 1)
        for (uint32_t l = 0; l < kWarpSize; ++l)
          x.value[l] = decoded_byte(rule.e5m2, static_cast<uint32_t>(own[l] >> 8 * j & 0xff));
      else
        read(w, list[i], j, rule.from, own, ~0u, x);
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        const uint32_t k = (is_a ? i / 2 : i - of_a) * 4 * per_word + l % 4 * per_word + j;
        Product::Element& to = is_a ? product_.a[(l / 4 + 8 * (i % 2)) * rule.k + k] : product_.b[k * 8 + l / 4];
        to = {x.value[l], x.has >> l & 1 ? x.origin[l] : 0};
      }
    }
  }
  read_sums(w, list + of_a + of_b, rule.to, 0, 1);
  product_.multiply();
}

void CtaDoubles::after_mma(const Warp& w, const Inst& in, const DoubleRule& rule) {
  write_sums(w, in, machine_.kernel_.lists.data() + in.list, rule.to, 0, 1);
}

// ---- wgmma ---------------------------------------------------------------------------------------------

namespace {

Format multiplicand_format(const Inst& in, bool is_a) {
  switch (static_cast<Multiplicand>(is_a ? in.type & 15 : in.type >> 4)) {
    case Multiplicand::kF16: return Format::kF16;
    case Multiplicand::kBf16: return Format::kBf16;
    case Multiplicand::kTf32: return Format::kTf32;
    default: return Format::kNone;
  }
}
Format sums_format(const Inst& in) {
  const auto sum = static_cast<WgmmaSum>(in.imm & kWgmmaSumMask);
  return sum == WgmmaSum::kF32 ? Format::kF32 : sum == WgmmaSum::kF16 ? Format::kF16 : Format::kNone;
}

}  // namespace

/// The doubles of 16 bytes of a matrix in shared memory. Pieces are listed by block of 8 rows or columns, half of k,
/// and row of the block; turned, the last is k.
void CtaDoubles::read_piece(const Inst& in, bool is_a, uint32_t piece, uint32_t offset) {
  const Format format = multiplicand_format(in, is_a);
  const bool turned = in.imm & (is_a ? kWgmmaTurnedA : kWgmmaTurnedB);
  const uint32_t block = piece / 16, step = piece / 8 % 2, line = piece % 8, n = 16 / bytes_of(format);
  for (uint32_t e = 0; e < n; ++e) {
    const DoubleMemory::Cell* const cell = memory_.look(kSharedBase + offset + e * bytes_of(format));
    if (!cell || bytes_of(cell->format) != bytes_of(format)) continue;
    uint64_t bits = 0;
    std::copy_n(machine_.shared_.data() + offset + e * bytes_of(format), bytes_of(format),
                reinterpret_cast<std::byte*>(&bits));
    if (bits != cell->own) continue;
    const uint32_t k = turned ? 8 * step + line : step * (product_.k / 2) + e, along = 8 * block + (turned ? e : line);
    Product::Element& to = is_a ? product_.a[along * product_.k + k] : product_.b[k * product_.columns + along];
    to = {is_a && in.imm & kWgmmaNegative ? -cell->value : cell->value, cell->origin};
  }
}

/// `a` and `b`: the own matrices, in blocks of 8 rows or columns, by k (WgmmaTable::decode).
void CtaDoubles::before_wgmma(uint32_t first, const Inst& in, const float* a, const float* b,
                              const std::vector<uint32_t>& reads) {
  const Format sums = sums_format(in);
  if (sums == Format::kNone) return;
  const uint32_t columns = 8u * in.count, k = in.sub;
  product_ = Product(kWgmmaRows, columns, k);
  for (uint32_t i = 0; i < kWgmmaRows; ++i)
    for (uint32_t kk = 0; kk < k; ++kk) product_.a[i * k + kk].value = a[(i / 8 * k + kk) * 8 + i % 8];
  for (uint32_t n = 0; n < columns; ++n)
    for (uint32_t kk = 0; kk < k; ++kk)
      product_.b[kk * columns + n].value = b[(n / 8 * k + kk) * 8 + n % 8 / 2 + 4 * (n % 2)];
  const bool registers = in.imm & kWgmmaRegistersA;
  const uint32_t of_a = registers ? 0 : 2 * kWgmmaRows;
  const Format a_format = multiplicand_format(in, true), b_format = multiplicand_format(in, false);
  for (uint32_t i = 0; i < reads.size() && !memory_.empty(); ++i)
    if ((i < of_a ? a_format : b_format) != Format::kNone) read_piece(in, i < of_a, i < of_a ? i : i - of_a, reads[i]);
  const uint32_t* const list = machine_.kernel_.lists.data() + in.list;
  for (uint32_t i = 0; i < kWarpgroup; ++i) {
    const Warp& w = machine_.warps_[first + i];
    const uint32_t per_word = 4 / std::max(1u, bytes_of(a_format));
    for (uint32_t r = 0; registers && a_format != Format::kNone && r < 4; ++r) {
      uint64_t own[kWarpSize];
      std::copy_n(machine_.row(w, list[sums_of(in) + r]), kWarpSize, own);
      for (uint32_t j = 0; j < per_word; ++j) {
        Numbers x{};
        read(w, list[sums_of(in) + r], j, a_format, own, ~0u, x);
        for (uint32_t m = x.has; m; m &= m - 1) {
          const uint32_t l = first_lane(m), kk = r / 2 * (k / 2) + per_word * (l % 4) + j;
          product_.a[(16 * i + 8 * (r % 2) + l / 4) * k + kk] = {in.imm & kWgmmaNegative ? -x.value[l] : x.value[l],
                                                                 x.origin[l]};
        }
      }
    }
    if (w.regs.preds[in.c] != 0 && !(in.imm & kWgmmaReplaces)) read_sums(w, list, sums, 16 * i, in.count);
  }
  product_.multiply();
}

void CtaDoubles::after_wgmma(uint32_t first, const Inst& in) {
  const Format sums = sums_format(in);
  for (uint32_t i = 0; i < kWarpgroup; ++i) {
    const Warp& w = machine_.warps_[first + i];
    if (sums == Format::kNone)
      forget_results(w, in, ~0u);
    else
      write_sums(w, in, machine_.kernel_.lists.data() + in.list, sums, 16 * i, in.count);
  }
}

}  // namespace roofgen::sim

// tcgen05.mma: the product of a thread, on the shared and tensor memory of its CTA or of a pair of CTAs.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

constexpr uint32_t kPiece = 16;  ///< bytes that stay together in every layout

float element(const std::byte* from, TensorElement e, uint32_t index) {
  if (e == TensorElement::kTf32) {  // tensor cores ignore the lower 13 bits
    uint32_t word;
    std::memcpy(&word, from + 4 * index, 4);
    return std::bit_cast<float>(word & 0xffffe000u);
  }
  const uint32_t bits = bits_of(e), at = index * bits;
  uint32_t word = 0;
  std::memcpy(&word, from + at / 8, (at % 8 + bits + 7) / 8);
  return values_of(e)[word >> at % 8 & ((1u << bits) - 1)];
}

/// Multiplies elements by their scales, which must not leave the range of floats: hardware has wider ones.
void scale_elements(const TensorProduct& p, const float* scales, uint32_t rows, bool by_k, uint32_t lane, float* out) {
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t k = 0; k < p.k; ++k) {
      float& x = by_k ? out[k * rows + row] : out[row * p.k + k];
      const float scaled = x * scales[row * p.scales + k * p.scales / p.k];
      if (std::isinf(scaled) && !std::isinf(x))
        throw Fault{"not-modelled", "a scale takes an element beyond the range of fp32", lane};
      x = scaled;
    }
}

}  // namespace

/// One product, as all CTAs of its group see it.
struct Machine::TensorWork {
  const Inst& in;
  Site site;
  uint32_t lane;  ///< of the thread
  TensorProduct p;
  uint32_t d, a_address;  ///< of tensor memory
  uint64_t a_descriptor, b_descriptor;
  uint32_t metadata;                   ///< its address
  uint32_t scales[2];                  ///< addresses, of A and B
  std::array<uint32_t, 8> disabled{};  ///< lanes of both CTAs
  bool keeps;
  float scale_d;
  int issuer;                     ///< of events of the CTA; -1: it is the thread's own
  uint32_t part_of_pair;          ///< of the CTA: 0 or 1
  std::vector<uint32_t> offsets;  ///< that the CTA reads of its shared memory
};

/// The rows of A, or the columns of B, that are in this CTA's shared memory. `out`: of A by k its rows; of B by column
/// the elements along k.
void Machine::read_tensor_matrix(TensorWork& work, bool is_a, uint32_t rows, float* out) {
  const TensorProduct& p = work.p;
  const uint64_t bits = is_a ? work.a_descriptor : work.b_descriptor;
  const bool turned = is_a ? p.turned_a : p.turned_b;
  const TensorElement type = is_a ? p.a : p.b;
  const char* const name = is_a ? "A" : "B";
  const uint32_t depth = is_a ? p.stored() : p.k, pieces = depth / (8 * kPiece / p.container());
  const TensorMatrix at = matrix_of(bits, turned, pieces * kPiece, name, work.lane);
  if (!turned && at.span != kPiece && pieces * kPiece > at.span)
    throw Fault{
        "not-modelled",
        fmt::format("{} bytes along K of {} in rows of {} bytes are not modelled", pieces * kPiece, name, at.span),
        work.lane};
  const std::string what = fmt::format("{} of tcgen05.mma", name);
  const uint32_t per_piece = 8 * kPiece / p.container();
  const float sign = (is_a ? p.negates_a : p.negates_b) ? -1.0f : 1.0f;
  const auto put = [&](uint32_t row, uint32_t k, const std::byte* piece, uint32_t index) {
    if (row < rows) (is_a ? out[k * rows + row] : out[row * depth + k]) = sign * element(piece, type, index);
  };
  const auto piece_at = [&](uint32_t address) {
    const uint32_t offset = matrix_piece(address, what.c_str(), work.lane);
    work.offsets.push_back(offset);
    return shared_.data() + offset;
  };
  if (!turned) {
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t i = 0; i < pieces; ++i) {
        const std::byte* const piece = piece_at(at.along_k(row, i));
        for (uint32_t e = 0; e < per_piece; ++e) put(row, i * per_piece + e, piece, e);
      }
    return;
  }
  for (uint32_t i = 0; i * per_piece < rows; ++i)
    for (uint32_t k = 0; k < depth; ++k) {
      const std::byte* const piece = piece_at(at.along_rows(i, k));
      for (uint32_t e = 0; e < per_piece; ++e) put(i * per_piece + e, k, piece, e);
    }
}

/// A in tensor memory: each row in its lane, elements packed along k. Data paths that share rows have copies.
void Machine::read_tensor_a(const TensorWork& work, const TensorPart& part, float* out) {
  const TensorProduct& p = work.p;
  if (bits_of(p.a) != p.container())
    throw Fault{"not-modelled", "A of 4- or 6-bit elements of kind::f8f6f4 in tensor memory is not modelled",
                work.lane};
  if (p.turned_a) throw Fault{"bad-descriptor", "A in tensor memory is contiguous along m", work.lane};
  const uint32_t first = work.a_address & 0xffff, rows = 16 * part.groups;
  for (uint32_t row = 0; row < rows; ++row) {
    uint32_t words[8];
    for (uint32_t i = 0; i < 8; ++i) words[i] = tensor_->at(part.lane + row / 16 * part.stride + row % 16, first + i);
    for (uint32_t k = 0; k < p.stored(); ++k)
      out[k * rows + row] = (p.negates_a ? -1.0f : 1.0f) * element(reinterpret_cast<const std::byte*>(words), p.a, k);
  }
}

/// Puts the stored elements of A at the places in their rows that the metadata says, with zeros between.
void Machine::expand_sparse(const TensorWork& work, float* rows) const {
  const TensorProduct& p = work.p;
  if (!p.sparse) return;
  const uint32_t first = (work.metadata & 0xffff) + (p.container() >= 16 ? p.selector : 0), n = p.rows();
  alignas(64) static thread_local float stored[kMostMmaRows * kMostMmaDepth / 2];
  std::copy_n(rows, size_t{n} * p.stored(), stored);
  std::fill_n(rows, size_t{n} * p.k, 0.0f);
  for (uint32_t row = 0; row < n; ++row)
    for (uint32_t i = 0; i < p.stored(); ++i) {
      const TensorProduct::Code at = p.code_of(row, 2 * i / p.chunk());
      const uint32_t code = tensor_->at(at.lane, first + at.column) >> at.shift & 15;
      if (!p.is_code(code))
        throw Fault{
            "bad-metadata",
            fmt::format("bits {} to {} of lane {}, column {} are {:#06b}, which is no choice of elements of row "
                        "{} of A",
                        at.shift, at.shift + 3, at.lane, first + at.column, code, row),
            work.lane};
      rows[p.place_of(i, code) * n + row] = stored[i * n + row];
    }
}

/// The scales of A's rows or B's columns, which each warp's lanes have a copy of: row r in lane r modulo 32, column
/// r / 32, and in a word a byte for each block along k.
void Machine::read_scales(const TensorWork& work, bool is_a, uint32_t rows, float* out) {
  const TensorProduct& p = work.p;
  const uint32_t first = work.scales[is_a ? 0 : 1] & 0xffff, id = is_a ? p.scale_a : p.scale_b;
  // Of B in a pair with 64 rows each: the lower lanes have the scales of the first half of the columns.
  const bool halved = !is_a && p.rows() == 64;
  const uint32_t used = static_cast<uint32_t>((uint64_t{1} << 8 * p.scales) - 1) << 8 * id;
  for (uint32_t row = 0; row < rows; ++row) {
    const uint32_t half = halved ? row / (rows / 2) : 0, at = halved ? row % (rows / 2) : row;
    const uint32_t word = tensor_->at(64 * half + at % 32, first + at / 32);
    for (uint32_t copy = 32; copy < (halved ? 64u : 128u); copy += 32)
      if ((tensor_->at(64 * half + copy + at % 32, first + at / 32) ^ word) & used)
        throw Fault{
            "bad-tensor-memory",
            fmt::format("the scales of {} {} of {} differ in lanes {} and {} of column {}", is_a ? "row" : "column",
                        row, is_a ? "A" : "B", 64 * half + at % 32, 64 * half + copy + at % 32, first + at / 32),
            work.lane};
    for (uint32_t s = 0; s < p.scales; ++s) out[row * p.scales + s] = values_of(p.scale)[word >> 8 * (id + s) & 255];
  }
}

void Machine::multiply_part(const TensorWork& work, const TensorPart& part, const float* a, const float* b) {
  const uint32_t first = work.d & 0xffff, mine = 4 * work.part_of_pair;
  uint32_t* groups[kTensorHalves];
  std::vector<std::pair<uint32_t*, uint32_t>> kept;  // the cells of disabled lanes
  for (uint32_t g = 0; g < part.groups; ++g) {
    const uint32_t lane = part.lane + g * part.stride;
    groups[g] = &tensor_->at(lane, first);
    for (uint32_t l = lane; l < lane + 16; ++l)
      for (uint32_t c = 0; work.disabled[mine + l / 32] >> l % 32 & 1 && c < part.columns; ++c)
        kept.emplace_back(&tensor_->at(l, first + c), tensor_->at(l, first + c));
  }
  const bool saturates = work.p.saturates && work.keeps;
  std::vector<uint32_t> before;
  for (uint32_t c = 0; saturates && c < part.columns; ++c)
    for (uint32_t g = 0; g < part.groups; ++g)
      before.insert(before.end(), groups[g] + c * kTensorLanes, groups[g] + c * kTensorLanes + 16);
  lanes_.tensor.multiply(work.p.sum, groups, part.groups, a, b + size_t{part.first_column} * work.p.k, part.columns,
                         work.p.k, work.keeps && !saturates ? &work.scale_d : nullptr);
  for (size_t i = 0; i < before.size(); ++i) {
    uint32_t& cell = groups[i / 16 % part.groups][i / 16 / part.groups * kTensorLanes + i % 16];
    const int64_t sum = int64_t{static_cast<int32_t>(before[i])} + static_cast<int32_t>(cell);
    cell = static_cast<uint32_t>(
        std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
  }
  for (const auto& [cell, value] : kept) *cell = value;
}

void Machine::tensor_mma(Warp& w, const Inst& in, uint32_t lane) {
  const uint32_t* const list = kernel_.lists.data() + in.list;
  const auto address = [&](uint32_t place, uint32_t displacement) { return row(w, place)[lane] + displacement; };
  TensorWork work{in, site(w), lane, {}, 0, 0, 0, 0, 0, {}, {}, false, 1, -1, 0, {}};
  const uint32_t bits = row(w, in.e)[lane];
  if (const std::string why = TensorProduct::decode(bits, in, work.p); !why.empty())
    throw Fault{"bad-descriptor", fmt::format("the instruction descriptor {:#x}: {}", bits, why), lane};
  const TensorProduct& p = work.p;
  if (!p.not_modelled.empty()) throw Fault{"not-modelled", p.not_modelled + " is not modelled", lane};
  const bool a_in_tensor = in.imm & kTensorAInTensor;
  work.d = address(in.d, list[0]);
  if (a_in_tensor)
    work.a_address = address(in.a, list[1]);
  else
    work.a_descriptor = wide_row(w, in.a)[lane];
  work.b_descriptor = wide_row(w, in.b)[lane];
  work.keeps = w.regs.preds[in.c] >> lane & 1;
  work.scale_d = std::ldexp(1.0f, -static_cast<int>(std::max<int64_t>((in.imm >> kTensorScaleDShift) - 1, 0)));
  uint32_t next = 2;
  if (p.sparse) {
    work.metadata = address(list[2], list[3]);
    next = 4;
    if (work.metadata >> 16 || (p.container() >= 16 && work.metadata % 2))
      throw Fault{"bad-tensor-memory",
                  fmt::format("the metadata of A at lane {}, column {}: expected lane 0{}", work.metadata >> 16,
                              work.metadata & 0xffff, p.container() >= 16 ? " and an even column" : ""),
                  lane};
  }
  if (is_scaled(p.kind))
    for (uint32_t i = 0; i < 2; ++i, next += 2) work.scales[i] = address(list[next], list[next + 1]) & 0x3fffffff;
  if (in.imm & kTensorDisables)
    for (uint32_t i = 0; i < 4 * p.group; ++i) work.disabled[i] = row(w, list[next + i])[lane];
  if (in.imm & kTensorMasks && wide_row(w, list[next])[lane])
    throw Fault{"not-modelled", "a mask of columns of B that are zero is not modelled", lane};
  const uint32_t d_lane = work.d >> 16;
  if (d_lane && !(d_lane == 16 && p.rows() == 64 && p.group == 1 && !p.stationary))
    throw Fault{"bad-tensor-memory", fmt::format("D of {} rows at lane {}", p.rows(), d_lane), lane};
  if (a_in_tensor && work.a_address >> 16 != d_lane)
    throw Fault{"bad-tensor-memory",
                fmt::format("A at lane {} of tensor memory and D at lane {}", work.a_address >> 16, d_lane), lane};
  const std::vector<TensorPart> parts = parts_of(p, d_lane);
  const std::vector<Machine*> ctas = group_of(in, lane);
  // B: each CTA of a pair has half of the columns, the first one of the pair the first half.
  alignas(64) static thread_local float a[2][kMostMmaRows * kMostMmaDepth], b[kMostMmaColumns * kMostMmaDepth],
      scales[kMostMmaColumns * 4];
  const uint32_t b_rows = p.n / p.group;
  for (Machine* cta : ctas) {
    work.issuer = cta == this ? -1 : static_cast<int>(rank_);
    work.part_of_pair = cta->rank_ & (p.group - 1);
    work.offsets.clear();
    if (!a_in_tensor) cta->read_tensor_matrix(work, true, p.rows(), a[work.part_of_pair]);
    cta->read_tensor_matrix(work, false, b_rows, b + work.part_of_pair * b_rows * p.k);
    cta->emit(TensorRead{work.site, lane, work.offsets, work.issuer});
  }
  emit(TensorProducts{work.site, uint64_t{p.m} * p.n * p.k});
  for (Machine* cta : ctas) {
    work.issuer = cta == this ? -1 : static_cast<int>(rank_);
    work.part_of_pair = cta->rank_ & (p.group - 1);
    float* const rows = a[work.part_of_pair];
    cta->access_of_mma(work, parts, a_in_tensor);
    if (!a_in_tensor) cta->expand_sparse(work, rows);
    if (p.scales && !a_in_tensor) {
      cta->read_scales(work, true, p.rows(), scales);
      scale_elements(p, scales, p.rows(), true, lane, rows);
    }
    if (p.scales) cta->read_scales(work, false, p.n, scales);
    if (p.scales && cta == ctas[0]) scale_elements(p, scales, p.n, false, lane, b);
    for (const TensorPart& part : parts) {
      if (a_in_tensor) {
        cta->read_tensor_a(work, part, rows);
        cta->expand_sparse(work, rows);
      }
      if (a_in_tensor && p.scales) {
        float of_a[kMostMmaRows * 4];
        cta->read_scales(work, true, p.rows(), of_a);
        scale_elements(p, of_a, p.rows(), true, lane, rows);
      }
      cta->multiply_part(work, part, rows, b);
    }
  }
}

/// What a product reads and writes of a CTA's tensor memory.
void Machine::access_of_mma(const TensorWork& work, const std::vector<TensorPart>& parts, bool a_in_tensor) {
  const TensorProduct& p = work.p;
  TensorAccess e{work.site, work.lane, true, false, true, 0, 0, {}};
  e.issuer = work.issuer;
  const auto access = [&](uint32_t address, uint32_t columns) {
    need_columns(address, columns, work.lane);
    e.first = address & 0xffff;
    e.columns = columns;
    emit(e);
  };
  if (p.sparse) {
    e.lanes.fill(~0u);
    access(work.metadata + (p.container() >= 16 ? p.selector : 0), p.metadata_columns());
  }
  if (p.scales) {
    const bool halved = p.rows() == 64;
    e.lanes.fill(~0u);
    access(work.scales[0], (p.rows() + 31) / 32);
    access(work.scales[1], ((halved ? p.n / 2 : p.n) + 31) / 32);
  }
  e.lanes.fill(0);
  for (const TensorPart& part : parts)
    for (uint32_t g = 0; g < part.groups; ++g) {
      const uint32_t lane = part.lane + g * part.stride;
      e.lanes[lane / 32] |= 0xffffu << lane % 32;
    }
  if (a_in_tensor) access(work.a_address, 8);
  for (uint32_t i = 0; i < 4; ++i) e.lanes[i] &= ~work.disabled[4 * work.part_of_pair + i];
  e.reads = work.keeps;
  e.writes = true;
  access(work.d, parts[0].columns);
}

}  // namespace roofgen::sim

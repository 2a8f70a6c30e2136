// Products of warpgroups (wgmma) and their registers. The four warps of a group meet at each product, which is computed
// at once. What it reads and writes counts as in use until a wgmma.wait_group covers its batch: registers by the
// records below, shared memory by the checks (SharedShadow, "engines").
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "runtime/sim/doubles.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/wgmma.h"

namespace roofgen::sim {

std::string MatrixDescriptor::fault(uint64_t bits, uint32_t along) const {
  constexpr uint64_t kFields = 0xc00e'3fff'3fff'3fff;
  if (bits & ~kFields) return fmt::format("its reserved bits {:#x} are set", bits & ~kFields);
  if (span == 16) return base ? "it has a base offset, but no swizzle" : "";
  const uint32_t column = address % span, row = address % (8 * span) / span;
  if (column + std::min(along, span) > span)
    return fmt::format("{} bytes from byte {} of a row go past the {} bytes of the swizzle", std::min(along, span),
                       column, span);
  if (row && !base)
    return fmt::format("it begins in row {} of 8 of the swizzle's pattern, but its base offset is 0", row);
  return "";
}

// ---- the warps of a group ------------------------------------------------------------------------------

/// "All threads in the warpgroup must execute the same setmaxnreg instruction": the same action and count, at any
/// place, since compilers copy the instruction into the branches of the warps' roles.
bool same_registers(const Inst& a, const Inst& b) { return a.kind == b.kind && a.sub == b.sub && a.imm == b.imm; }

/// False: the warp waits for the others of its group. The last one goes on for all, and all then continue after the
/// instruction.
bool Machine::warpgroup_together(Warp& w, const Inst& in, uint32_t mask, const char* name) {
  require_full(w, in, mask, "partial-warp", name);
  const uint32_t first = w.index / kWarpgroup * kWarpgroup;
  if (first + kWarpgroup > n_warps_)
    throw Fault{"partial-warp",
                fmt::format("{} needs the 4 warps of a group, but the CTA ends with warp {}", name, n_warps_ - 1), 0};
  const auto here = [](const Warp& v) {
    return std::find_if(v.parked.begin(), v.parked.end(), [](const Fragment& f) { return f.barrier == kAtWarpgroup; });
  };
  bool all = true;
  for (uint32_t i = first; i < first + kWarpgroup; ++i) {
    const Warp& v = warps_[i];
    if (i == w.index) continue;
    const auto f = here(v);
    if (f == v.parked.end()) {
      if (v.finished())
        throw Fault{"partial-warp", fmt::format("{} needs the 4 warps of a group, but warp {} has ended", name, i), 0};
      all = false;
    } else if (f->pc != w.pc && !(in.kind == Kind::kSetRegisters && same_registers(kernel_.code[f->pc], in))) {
      throw Fault{
          "partial-warp",
          fmt::format("the warps of a group execute different instructions: warp {} waits{}", i, checker_.at(f->pc)),
          0};
    }
  }
  if (all) return true;
  w.parked.push_back({w.pc, w.active, kAtWarpgroup});
  w.active = 0;
  choose(w);
  return false;
}

void Machine::release_warpgroup(Warp& w) {
  const uint32_t first = w.index / kWarpgroup * kWarpgroup;
  for (uint32_t i = first; i < first + kWarpgroup; ++i)
    for (Fragment& f : warps_[i].parked)
      if (f.barrier == kAtWarpgroup) f.barrier = kReady, ++f.pc;
  ++w.pc;
}

// ---- registers -----------------------------------------------------------------------------------------

void Machine::settle_sums(Warp& w) {
  for (uint32_t i = 0; i < w.sums.n; ++i) {
    ProductUse& use = w.uses[kernel_.watched_lists[w.sums.list + i]];
    use.written_by = w.sums.batch;
    use.pc = w.sums.pc;
  }
  w.sums.n = 0;
}

/// An instruction that is no product reads or writes registers of products.
void Machine::watch(Warp& w, const Inst& in, uint32_t mask) {
  if (kernel_.has_tensor_memory) return use_loaded(w, in);
  settle_sums(w);
  const bool copies = in.flags & kFlagCopy;
  ProductUse source;
  for (const Operand& o : operands_of(in)) {
    if (o.is_pred || o.is_def || !kernel_.watched[o.reg]) continue;
    ProductUse& use = w.uses[kernel_.watched[o.reg]];
    if (copies)
      source = use;
    else
      use.looked_at = w.fences + 1;
    if (copies || use.written_by <= w.batches_done) continue;
    checker_.report(site(w), "async-pending", first_lane(mask), [&] {
      return fmt::format(
          "warp {} reads register {} while the wgmma{} may still compute it: no wgmma.wait_group covers it", w.index,
          kernel_.watched_names[kernel_.watched[o.reg]], checker_.at(use.pc));
    });
    use.written_by = 0;
  }
  for (const Operand& o : operands_of(in)) {
    if (o.is_pred || !o.is_def || !kernel_.watched[o.reg]) continue;
    ProductUse& use = w.uses[kernel_.watched[o.reg]];
    const bool sums = use.written_by > w.batches_done && !(copies && source.written_by == use.written_by);
    if (sums || use.read_by > w.batches_done)
      checker_.report(site(w), "async-pending", first_lane(mask), [&] {
        return fmt::format(
            "warp {} writes register {} while the wgmma{} may still {} it: no wgmma.wait_group covers it", w.index,
            kernel_.watched_names[kernel_.watched[o.reg]], checker_.at(use.pc), sums ? "compute" : "read");
      });
    use = copies ? source : ProductUse{};
    use.read_by = 0;
    if (!copies) use.changed = w.fences + 1;
  }
}

/// A product begins to use the registers of a warp.
void Machine::use_registers(Warp& w, const Site& at) {
  const Inst& in = at.inst;
  const bool keeps = w.regs.preds[in.c] != 0 && !(in.imm & kWgmmaReplaces);
  if (w.fences == 0) checker_.report(at, "race", 0, [] { return "wgmma without a wgmma.fence before it"; });
  const uint32_t batch = w.batches + 1, shape = static_cast<uint32_t>(in.count << 2 | (in.imm & kWgmmaSumMask));
  const uint32_t n = sums_of(in), all = n + (in.imm & kWgmmaRegistersA ? 4 : 0);
  const bool same_sums = w.sums.n == n && w.sums.list == in.target && w.sums.shape == shape;
  if (!same_sums) settle_sums(w);
  bool in_order = true;
  for (uint32_t i = same_sums ? n : 0; i < all; ++i) {
    const uint32_t number = kernel_.watched_lists[in.list + i];
    ProductUse& use = w.uses[number];
    const bool sum = i<n, flies = use.written_by> w.batches_done, same = sum && flies && use.shape == shape;
    if ((flies && !same) || (sum && use.read_by > w.batches_done)) {
      in_order = false;
      checker_.report(at, "async-pending", 0, [&] {
        return fmt::format("warp {}: wgmma uses register {} while the {}one{} may still {} it", w.index,
                           kernel_.watched_names[number], flies && sum ? "differently shaped " : "",
                           checker_.at(use.pc), flies ? "compute" : "read");
      });
    }
    // Reads order as writes do (PTX ISA, wgmma.fence). Copies that a compiler adds are none of the machine code.
    if (use.looked_at == w.fences + 1 && sum)
      checker_.report(at, "race", 0, [&] {
        return fmt::format("warp {} has read register {}, a sum of this wgmma, with no wgmma.fence after the read",
                           w.index, kernel_.watched_names[number]);
      });
    if (use.changed == w.fences + 1 && (keeps || !sum))
      checker_.report(at, "race", 0, [&] {
        return fmt::format("warp {} has written register {} of this wgmma with no wgmma.fence after it", w.index,
                           kernel_.watched_names[number]);
      });
    use.pc = at.pc;
    use.shape = shape;
    use.changed = use.looked_at = 0;
    (sum ? use.written_by : use.read_by) = batch;
  }
  w.sums = {in_order ? n : 0, in.target, shape, at.pc, batch};
}

void Machine::wgmma_wait(Warp& w, const Inst& in) {
  const auto pending = static_cast<uint32_t>(in.imm);
  if (w.batches > pending) w.batches_done = std::max(w.batches_done, w.batches - pending);
  emit(WgmmaWait{site(w), pending});
}

// ---- products ------------------------------------------------------------------------------------------

/// The descriptor in the warps' registers, all the same.
uint64_t Machine::descriptor(const Warp& w, uint32_t place, const char* name) const {
  const uint32_t first = w.index / kWarpgroup * kWarpgroup;
  const uint64_t value = wide_row(warps_[first], place)[0];
  uint64_t differ = 0;
  for (uint32_t i = first; i < first + kWarpgroup; ++i)
    for (uint32_t l = 0; l < kWarpSize; ++l) differ |= wide_row(warps_[i], place)[l] ^ value;
  for (uint32_t i = first; differ && i < first + kWarpgroup; ++i)
    for (uint32_t l = 0; l < kWarpSize; ++l)
      if (wide_row(warps_[i], place)[l] != value)
        throw Fault{
            "bad-descriptor",
            fmt::format("lane {} of warp {} has another descriptor of {} than lane 0 of warp {}", l, i, name, first),
            l};
  return value;
}

const MatrixPlaces& Machine::places_of(uint64_t descriptor, bool turned, uint32_t blocks) {
  const uint64_t key = descriptor & ~uint64_t{0x3fc0};
  const uint64_t hash = (key ^ uint64_t{blocks} << 50 ^ uint64_t{turned} << 61) * 0x9e3779b97f4a7c15;
  MatrixPlaces& known = places_[hash >> 58];
  if (known.descriptor == key && known.turned == turned && known.blocks == blocks) return known;
  const MatrixDescriptor at = MatrixDescriptor::of(key);
  known = {key, blocks, turned, 0, {}};
  for (uint32_t block = 0; block < blocks; ++block)
    for (uint32_t step = 0; step < 2; ++step)
      for (uint32_t row = 0; row < 8; ++row) known.offsets.push_back(at.place(turned, block, step, row));
  known.end = *std::max_element(known.offsets.begin(), known.offsets.end()) + 16;
  return known;
}

/// Decodes a matrix of `blocks` blocks of 8 rows (of A) or columns (of B) in shared memory, and lists its pieces.
void Machine::read_matrix(const Warp& w, const Inst& in, bool is_a, uint32_t blocks, float* out) {
  const char* name = is_a ? "A" : "B";
  const uint64_t bits = descriptor(w, is_a ? in.a : in.b, name);
  const bool turned = in.imm & (is_a ? kWgmmaTurnedA : kWgmmaTurnedB);
  const auto type = static_cast<Multiplicand>(is_a ? in.type & 15 : in.type >> 4);
  const MatrixDescriptor at = MatrixDescriptor::of(bits);
  if (const std::string why = at.fault(bits, turned ? blocks * 16 : 32); !why.empty())
    throw Fault{"bad-descriptor", fmt::format("the descriptor {:#x} of {}: {}", bits, name, why), 0};
  const MatrixPlaces& places = places_of(bits, turned, blocks);
  const uint32_t begin = at.address & ~1023u;
  const auto base = static_cast<uint32_t>(kSharedBase);
  if (begin < base || begin - base + places.end > shared_bytes_)
    for (const uint32_t place : places.offsets)
      if (const uint32_t offset = begin + place - base; offset + 16 > shared_bytes_ || offset >= shared_bytes_)
        throw Fault{"out-of-bounds",
                    fmt::format("{} of wgmma has 16 bytes at {}, and the CTA's {} bytes of shared memory end at {:#x}",
                                name, text(begin + place), shared_bytes_, kSharedBase + shared_bytes_),
                    0};
  const size_t before = wgmma_reads_.size();
  wgmma_reads_.resize(before + places.offsets.size());
  uint32_t* const read = wgmma_reads_.data() + before;
  for (size_t i = 0; i < places.offsets.size(); ++i) read[i] = begin - base + places.offsets[i];
  lanes_.wgmma.decode(type, turned, !is_a, shared_.data(), read, 2 * blocks, out);
}

void Machine::wgmma(Warp& w, const Inst& in, uint32_t mask) {
  if (!warpgroup_together(w, in, mask, "wgmma")) return;
  const uint32_t first = w.index / kWarpgroup * kWarpgroup, n = 8u * in.count, k = in.sub;
  const bool registers = in.imm & kWgmmaRegistersA;
  for (uint32_t i = first; i < first + kWarpgroup; ++i) {
    if (const uint32_t keep = warps_[i].regs.preds[in.c]; keep != 0 && keep != ~0u)
      throw Fault{"partial-warp", fmt::format("the lanes of warp {} have different scale-d of a wgmma", i),
                  first_lane(~keep)};
    use_registers(warps_[i], Site{in, w.pc, i});
  }
  alignas(64) float a[kWgmmaRows * 32], b[256 * 32];
  wgmma_reads_.clear();
  if (registers)
    for (uint32_t i = 0; i < kWarpgroup; ++i)
      for (uint32_t r = 0; r < 4; ++r) {
        lanes_.wgmma.decode(static_cast<Multiplicand>(in.type & 15), false, false,
                            row(warps_[first + i], kernel_.lists[in.list + sums_of(in) + r]), kRegisterPieces, 1,
                            a + ((2 * i + r % 2) * k + r / 2 * (k / 2)) * 8);
      }
  else
    read_matrix(w, in, true, kWgmmaRows / 8, a);
  read_matrix(w, in, false, in.count, b);
  if (in.imm & kWgmmaNegative)
    for (uint32_t i = 0; i < kWgmmaRows * k; ++i) a[i] = -a[i];
  emit(WgmmaIssue{site(w), first, {wgmma_reads_.data(), wgmma_reads_.size()}});
  if (doubles_) [[unlikely]]
    doubles_->before_wgmma(first, in, a, b, wgmma_reads_);
  const auto sum = static_cast<WgmmaSum>(in.imm & kWgmmaSumMask);
  const auto a_type = static_cast<Multiplicand>(in.type & 15), b_type = static_cast<Multiplicand>(in.type >> 4);
  uint32_t* sums[kWarpgroup][128];
  uint32_t* const* all_sums[kWarpgroup];
  bool keeps[kWarpgroup];
  for (uint32_t i = 0; i < kWarpgroup; ++i) {
    const Warp& v = warps_[first + i];
    for (uint32_t r = 0; r < sums_of(in); ++r) sums[i][r] = row(v, kernel_.lists[in.list + r]);
    all_sums[i] = sums[i];
    keeps[i] = v.regs.preds[in.c] != 0 && !(in.imm & kWgmmaReplaces);
    const bool saturates = in.imm & kWgmmaSaturates && keeps[i];
    std::vector<std::array<uint32_t, kWarpSize>> before(saturates ? sums_of(in) : 0);
    for (size_t r = 0; r < before.size(); ++r) std::copy_n(sums[i][r], kWarpSize, before[r].begin());
    if (!is_fp8(a_type)) lanes_.wgmma.multiply(sum, sums[i], a + 16 * i * k, b, n, k, keeps[i] && !saturates);
    for (size_t r = 0; r < before.size(); ++r)
      for (uint32_t l = 0; l < kWarpSize; ++l) {
        const int64_t exact = int64_t{static_cast<int32_t>(before[r][l])} + static_cast<int32_t>(sums[i][r][l]);
        sums[i][r][l] = static_cast<uint32_t>(
            std::clamp<int64_t>(exact, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()));
      }
  }
  if (is_fp8(a_type)) lanes_.wgmma.multiply_fp8(a_type, b_type, sum, all_sums, a, b, n, k, keeps, kWarpgroup);
  if (doubles_) [[unlikely]]
    doubles_->after_wgmma(first, in);
  release_warpgroup(w);
}

// ---- setmaxnreg ----------------------------------------------------------------------------------------

/// Without a number of registers at the start (Kernel::registers_per_thread) nothing limits them here.
void Machine::set_registers(Warp& w, const Inst& in, uint32_t mask) {
  if (!warpgroup_together(w, in, mask, "setmaxnreg")) return;
  uint32_t& now = group_registers_[w.index / kWarpgroup];
  const auto asked = static_cast<uint32_t>(in.imm);
  if (now && (in.sub ? asked < now : asked > now))
    throw Fault{"bad-registers",
                fmt::format("setmaxnreg.{} to {} registers, but the warps have {}", in.sub ? "inc" : "dec", asked, now),
                0};
  constexpr uint32_t kThreads = kWarpgroup * kWarpSize;
  if (now && in.sub && (asked - now) * kThreads > free_registers_) {
    // The warp waits with its group until another group gives registers back.
    w.parked.push_back({w.pc, w.active, kWaitsForRegisters});
    w.active = 0;
    return choose(w);
  }
  if (now) free_registers_ -= (asked - now) * kThreads;  // unsigned: adds what a group gives back
  emit(RegistersSet{site(w), asked});
  if (now) now = asked;
  for (Warp& v : warps_)
    for (Fragment& f : v.parked)
      if (f.barrier == kWaitsForRegisters) f.barrier = kReady;
  release_warpgroup(w);
}

}  // namespace roofgen::sim

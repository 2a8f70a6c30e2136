// The memory requests of instructions: addresses, wavefronts, sectors, and what is loaded and stored.
#include <bit>
#include <cstring>

#include "runtime/sass/interpreter_state.h"
#include "runtime/sass/lane_math.h"
#include "runtime/sim/counts.h"

namespace roofgen::sass {

using Kind = Operand::Kind;

/// One execution of an instruction that accesses memory.
class Interpreter::State::MemoryAccess {
 public:
  MemoryAccess(State& state, WarpState& warp, const Instruction& instruction, uint32_t at_index, uint32_t active)
      : s(state), w(warp), i(instruction), action(instruction.opcode->action), index(at_index), mask(active) {}

  /// False: all is done.
  bool run() {
    switch (action) {
      case Action::kLds:
      case Action::kSts:
      case Action::kAtoms: return access_shared();
      case Action::kLdsm:
      case Action::kStsm: return access_matrices();
      case Action::kLdgsts: return copy_to_shared();
      case Action::kLdg:
      case Action::kStg:
      case Action::kAtomg:
      case Action::kRed: return access_device();
      case Action::kLdl:
      case Action::kStl: return access_local();
      case Action::kStas: {
        const Operand* m = memory_operand(0);
        if (!m) return false;
        shared_addresses(*m);
        // The other CTAs send alike: values of the same places come from there. Of a pair the first one alone sends.
        if (!s.pairs) s.forget_shared(at, mask & known, i.bytes);
        break;
      }
      default: break;
    }
    s.synchronize(w, i, index, mask);
    return true;
  }

 private:
  bool access_shared() {
    const Operand* m = memory_operand(0);
    if (!m) return false;
    Access& a = new_access();
    shared_addresses(*m);
    make_up(mask);
    shared_access(a, mask, i.bytes);
    if (action == Action::kAtoms) {
      a.same = most_at_one_address(at, mask);
      if (s.is_newest() && at[std::countr_zero(mask)] < kSystemBytes)
        guard_allocation();
      else
        s.forget_shared(at, mask & known, i.bytes);
      return true;  // the value that an atomic operation returns is unknown
    }
    return load_or_store(action == Action::kLds);
  }

  /// An allocation sets bits of the system's words, and a deallocation, which looks at them first, clears bits.
  void guard_allocation() {
    Lanes by;
    s.read(w, i.operands[i.count - 1], by);
    const bool clears = i.spelling.find(".AND") != std::string::npos;
    for (uint32_t left = mask & known & by.known; left; left &= left - 1) {
      const int lane = std::countr_zero(left);
      uint32_t word = 0;
      if (at[lane] + sizeof word > kSystemBytes) continue;
      std::memcpy(&word, s.shared.data() + at[lane], sizeof word);
      word = clears ? word & by.v[lane] : word | by.v[lane];
      std::memcpy(s.shared.data() + at[lane], &word, sizeof word);
    }
  }

  bool access_matrices() {
    const Operand* m = memory_operand(0);
    if (!m) return false;
    Access& a = new_access();
    shared_addresses(*m);
    const uint32_t rows = i.matrices >= 4 ? kEveryLane : (1u << 8 * i.matrices) - 1;
    make_up(rows);
    shared_access(a, rows, 16);
    if (action == Action::kStsm) s.forget_shared(at, rows & known, 16);
    return true;
  }

  bool copy_to_shared() {
    const Operand *to = memory_operand(0), *from = memory_operand(1);
    if (!to || !from) return false;
    Access& a = new_access();
    shared_addresses(*to);
    make_up(mask);
    shared_access(a, mask, i.bytes);
    uint32_t reads = mask;
    const uint8_t of_address = std::exchange(s.operand_axes, uint8_t{0});
    for (size_t k = 0; k < i.count; ++k)
      if (i.operands[k].kind == Kind::kPredicate) {
        uint32_t value = 0, value_known = kEveryLane;
        s.predicate(w, i.operands[k], value, value_known);
        reads &= value | ~value_known;
      }
    s.deciding_axes |= s.operand_axes;
    s.operand_axes |= of_address;
    const uint32_t to_known = known;
    uint64_t to_at[32];
    std::copy(at, at + 32, to_at);
    s.addresses(w, *from, at, known);
    make_up(reads);
    s.request(w, a, at, reads, i.bytes);
    s.memory_axes |= s.operand_axes;
    if (s.shared_steers) s.copy(to_at, at, mask & to_known, reads, i.bytes);
    return false;
  }

  bool access_device() {
    const Operand* m = memory_operand(0);
    if (!m) return false;
    Access& a = new_access();
    s.addresses(w, *m, at, known);
    make_up(mask);
    uint32_t in_shared = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      if (in_shared_window(at[lane])) in_shared |= 1u << lane;
    if (in_shared & mask) shared_access(a, in_shared & mask, i.bytes);
    s.request(w, a, at, mask & ~in_shared, i.bytes);
    if (action == Action::kAtomg || action == Action::kRed) a.same = most_at_one_address(at, mask & ~in_shared);
    if (action == Action::kLdg || (action == Action::kStg && s.steers[index]))
      return load_or_store(action == Action::kLdg);
    // What comes out of an atomic operation is unknown, as is what a store writes that does not steer.
    uint64_t shared_at[32];
    for (size_t lane = 0; lane < 32; ++lane) shared_at[lane] = at[lane] - kSharedWindow;
    if (in_shared & mask & known) s.forget_shared(shared_at, in_shared & mask & known, i.bytes);
    for (uint32_t left = s.device_steers ? mask & known & ~in_shared : 0; left; left &= left - 1)
      s.write_global(at[std::countr_zero(left)], i.bytes, nullptr);
    return true;
  }

  bool access_local() {
    const Operand* m = memory_operand(0);
    if (!m) return false;
    Access& a = new_access();
    s.addresses(w, *m, at, known);
    make_up(mask);
    // The words of a frame are interleaved, so that a word of all lanes is one line.
    uint64_t words[32];
    const uint64_t first = kLocalLines + ((s.cta_number * 64 + w.number) << 16);
    a.first_line = static_cast<uint32_t>(w.stream.lines.size());
    for (uint32_t word = 0; word < std::max(1u, i.bytes / 4u); ++word) {
      for (unsigned lane = 0; lane < 32; ++lane) words[lane] = (first + at[lane] / 4 % 65536 + word) * 128 + 4 * lane;
      Access part;
      s.request(w, part, words, mask, 4);
      a.lines = static_cast<uint16_t>(a.lines + part.lines);
      a.tags = static_cast<uint8_t>(a.tags + part.tags);
    }
    return load_or_store(action == Action::kLdl);
  }

  bool load_or_store(bool loads) {
    if (!s.steers[index]) return false;
    if (loads)
      s.load(w, i, at, known, mask);
    else
      s.store(w, i, at, known, mask);
    return false;
  }

  Access& new_access() {
    w.own_step().access = static_cast<uint32_t>(w.stream.accesses.size());
    Access& a = w.stream.accesses.emplace_back();
    a.lanes = static_cast<uint8_t>(std::popcount(mask));
    return a;
  }

  const Operand* memory_operand(unsigned which) const {
    for (size_t k = 0; k < i.count; ++k)
      if (i.operands[k].kind == Kind::kMemory && which-- == 0) return &i.operands[k];
    return nullptr;
  }

  /// Lanes of unknown address count as neighbours of each other.
  void make_up(uint32_t lanes) {
    if (!(lanes & ~known)) return;
    s.doubt(index, false);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (!(known >> lane & 1)) at[lane] = (kLocalLines << 6) + (uint64_t{index} << 20) + lane * i.bytes;
  }

  /// The memory of another CTA of the cluster stands for this one's.
  void shared_addresses(const Operand& m) {
    s.addresses(w, m, at, known);
    for (uint64_t& a : at) a &= kSharedOffset;
  }

  void shared_access(Access& a, uint32_t lanes, uint32_t bytes) {
    Pattern& p = s.patterns[index];
    std::array<uint32_t, 32> offsets;
    const auto first = static_cast<uint32_t>(at[std::countr_zero(lanes)]);
    for (unsigned lane = 0; lane < 32; ++lane)
      offsets[lane] = lanes >> lane & 1 ? static_cast<uint32_t>(at[lane]) - first : 0;
    if (p.mask != lanes || p.offsets != offsets) {
      p.mask = lanes;
      p.offsets = offsets;
      for (uint32_t& o : offsets) o += first;
      p.wavefronts = sim::shared_wavefronts(offsets.data(), lanes, bytes).needed;
    }
    a.wavefronts = static_cast<uint16_t>(p.wavefronts);
  }

  State& s;
  WarpState& w;
  const Instruction& i;
  const Action action;
  const uint32_t index, mask;
  uint64_t at[32];  ///< addresses
  uint32_t known = kEveryLane;
};

bool Interpreter::State::access(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask) {
  return MemoryAccess(*this, w, i, index, mask).run();
}

}  // namespace roofgen::sass

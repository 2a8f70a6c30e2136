#include "runtime/sim/dataflow.h"

#include <algorithm>

namespace roofgen::sim {
namespace {

/// Bound on the bit sets of the analysis: 32 MiB each. A large real kernel needs a thousandth.
constexpr size_t kMaxBlockWords = size_t{4} << 20;

using Bits = std::vector<uint64_t>;
bool test(const Bits& b, uint32_t i) { return b[i >> 6] >> (i & 63) & 1; }
void set(Bits& b, uint32_t i) { b[i >> 6] |= uint64_t{1} << (i & 63); }
void clear(Bits& b, uint32_t i) { b[i >> 6] &= ~(uint64_t{1} << (i & 63)); }

struct Block {
  uint32_t begin = 0, end = 0;
  std::vector<uint32_t> successors, predecessors;
};

class Analysis {
 public:
  Analysis(Kernel& kernel, const std::vector<VirtualRegister>& registers,
           const std::vector<std::string>& predicate_names, std::vector<RegisterRef>& refs)
      : kernel_(kernel),
        registers_(registers),
        predicate_names_(predicate_names),
        refs_(refs),
        bits_(static_cast<uint32_t>(registers.size() + predicate_names.size())) {}

  bool run() {
    index_refs();
    mark_deciding_loads();
    find_blocks();
    if (blocks_.size() * (bits_ / 64 + 1) > kMaxBlockWords) return false;
    track_unassigned();
    allocate();
    return true;
  }

 private:
  uint32_t bit(const RegisterRef& r) const {
    return r.is_pred ? static_cast<uint32_t>(registers_.size()) + r.reg : r.reg;
  }
  /// A guarded write leaves the other lanes' old value, so it neither kills nor proves anything.
  bool kills(const RegisterRef& r) const { return r.is_def && kernel_.code[r.inst].guard == 0; }

  void index_refs() {
    std::stable_sort(refs_.begin(), refs_.end(), [](auto& a, auto& b) { return a.inst < b.inst; });
    first_ref_.assign(kernel_.code.size() + 1, 0);
    for (const RegisterRef& r : refs_) ++first_ref_[r.inst + 1];
    for (size_t i = 1; i < first_ref_.size(); ++i) first_ref_[i] += first_ref_[i - 1];
    kernel_.operand_begin = first_ref_;
    for (const RegisterRef& r : refs_) {
      const auto field = r.field == &Inst::a       ? Operand::kA
                         : r.field == &Inst::b     ? Operand::kB
                         : r.field == &Inst::c     ? Operand::kC
                         : r.field == &Inst::guard ? Operand::kGuard
                         : r.field == nullptr      ? Operand::kList
                                                   : Operand::kOther;
      kernel_.operands.push_back({r.reg, r.is_def, r.is_pred, field,
                                  r.field ? 0 : r.list_index - kernel_.code[r.inst].list,
                                  !r.is_pred && registers_[r.reg].slot == Slot::kB64});
    }
  }

  /// Strong loads and atomics on whose value a predicate depends: polls, flags, locks, tickets. Through registers and
  /// the addresses of loads, whatever the path.
  void mark_deciding_loads() {
    const auto is_strong_load = [](const Inst& in) {
      return in.kind == Kind::kAtomic || (in.kind == Kind::kLoad && in.flags & kFlagStrong);
    };
    if (std::none_of(kernel_.code.begin(), kernel_.code.end(), is_strong_load)) return;
    Bits decides((bits_ + 63) / 64, 0);
    for (const RegisterRef& r : refs_)
      if (r.is_pred || kernel_.code[r.inst].kind == Kind::kBranchIndexed) set(decides, bit(r));
    for (bool changed = true; changed;) {
      changed = false;
      for (auto inst = static_cast<uint32_t>(kernel_.code.size()); inst-- > 0;) {
        bool reaches = false;
        each_ref(inst, [&](const RegisterRef& r) { reaches |= r.is_def && test(decides, bit(r)); });
        if (!reaches) continue;
        if (is_strong_load(kernel_.code[inst])) kernel_.code[inst].flags |= kFlagDecides;
        each_ref(inst, [&](const RegisterRef& r) {
          if (r.is_def || test(decides, bit(r))) return;
          set(decides, bit(r));
          changed = true;
        });
      }
    }
  }

  void find_blocks() {
    auto& code = kernel_.code;
    size_t n = code.size();
    std::vector<bool> leader(n + 1, false);
    leader[0] = true;
    for (size_t i = 0; i < n; ++i) {
      const Inst& in = code[i];
      if (in.kind == Kind::kBranch) leader[in.target] = leader[i + 1] = true;
      if (in.kind == Kind::kBranchIndexed) {
        for (uint32_t k = 0; k < in.e; ++k) leader[kernel_.lists[in.list + k]] = true;
        leader[i + 1] = true;
      }
      if (in.kind == Kind::kExit || in.kind == Kind::kTrap) leader[i + 1] = true;
    }
    block_of_.assign(n, 0);
    for (uint32_t i = 0; i < n; ++i) {
      if (leader[i]) {
        if (!blocks_.empty()) blocks_.back().end = i;
        blocks_.push_back({i, static_cast<uint32_t>(n), {}, {}});
      }
      block_of_[i] = static_cast<uint32_t>(blocks_.size() - 1);
    }
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      const Inst& last = code[blocks_[b].end - 1];
      bool falls = true;
      auto link = [&](uint32_t target) {
        blocks_[b].successors.push_back(block_of_[target]);
        blocks_[block_of_[target]].predecessors.push_back(b);
      };
      if (last.kind == Kind::kBranch) {
        link(last.target);
        falls = last.guard != 0;
      } else if (last.kind == Kind::kBranchIndexed) {
        for (uint32_t k = 0; k < last.e; ++k) link(kernel_.lists[last.list + k]);
        falls = last.guard != 0;
      } else if (last.kind == Kind::kExit || last.kind == Kind::kTrap) {
        falls = last.guard != 0;
      }
      if (falls && blocks_[b].end < n) link(blocks_[b].end);
    }
  }

  template <class F>
  void each_ref(uint32_t inst, F f) {
    for (uint32_t r = first_ref_[inst]; r < first_ref_[inst + 1]; ++r) f(refs_[r]);
  }

  /// Forward "assigned on every path"; what is used without it gets a dynamic check.
  void track_unassigned() {
    size_t words = (bits_ + 63) / 64;
    std::vector<Bits> out(blocks_.size(), Bits(words, ~uint64_t{0}));
    Bits start(words, 0);
    for (uint32_t r = 0; r < registers_.size(); ++r)
      if (registers_[r].fixed) set(start, r);
    auto entry_state = [&](uint32_t b) {
      Bits in = b == 0 ? start : Bits(words, ~uint64_t{0});
      for (uint32_t p : blocks_[b].predecessors)
        for (size_t w = 0; w < words; ++w) in[w] &= out[p][w];
      return in;
    };
    // What is made of an unassigned register may be unassigned too.
    auto step = [&](Bits& now, uint32_t i) {
      bool proven = true;
      if (passes_on(kernel_.code[i]))
        each_ref(i, [&](const RegisterRef& r) { proven &= r.is_def || test(now, bit(r)); });
      each_ref(i, [&](const RegisterRef& r) {
        if (!kills(r)) return;
        if (proven)
          set(now, bit(r));
        else
          clear(now, bit(r));
      });
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < blocks_.size(); ++b) {
        Bits now = entry_state(b);
        for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) step(now, i);
        if (now != out[b]) out[b] = std::move(now), changed = true;
      }
    }
    tracked_.assign(bits_, false);
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      if (b != 0 && blocks_[b].predecessors.empty()) continue;  // unreachable
      Bits now = entry_state(b);
      for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
        each_ref(i, [&](const RegisterRef& r) {
          if (!r.is_def && !test(now, bit(r))) tracked_[bit(r)] = true;
        });
        step(now, i);
      }
    }
    for (const RegisterRef& r : refs_)
      if (tracked_[bit(r)]) kernel_.code[r.inst].flags |= kFlagTracked;
  }

  /// Live ranges as one interval per register, then a linear scan over their starts.
  void allocate() {
    uint32_t n_regs = static_cast<uint32_t>(registers_.size());
    size_t words = (n_regs + 63) / 64;
    std::vector<Bits> live_in(blocks_.size(), Bits(words, 0)), live_out(live_in);
    std::vector<Bits> used(live_in), killed(live_in);
    for (uint32_t b = 0; b < blocks_.size(); ++b)
      for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
        each_ref(i, [&](const RegisterRef& r) {
          if (!r.is_pred && !kills(r) && !test(killed[b], r.reg)) set(used[b], r.reg);
        });
        each_ref(i, [&](const RegisterRef& r) {
          if (!r.is_pred && kills(r)) set(killed[b], r.reg);
        });
      }
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = static_cast<uint32_t>(blocks_.size()); b-- > 0;) {
        for (uint32_t s : blocks_[b].successors)
          for (size_t w = 0; w < words; ++w) live_out[b][w] |= live_in[s][w];
        for (size_t w = 0; w < words; ++w) {
          uint64_t now = used[b][w] | (live_out[b][w] & ~killed[b][w]);
          changed |= now != live_in[b][w];
          live_in[b][w] = now;
        }
      }
    }
    struct Interval {
      uint32_t reg, begin, end;
    };
    std::vector<Interval> intervals(n_regs);
    for (uint32_t r = 0; r < n_regs; ++r) intervals[r] = {r, ~0u, 0};
    auto extend = [&](uint32_t reg, uint32_t at) {
      intervals[reg].begin = std::min(intervals[reg].begin, at);
      intervals[reg].end = std::max(intervals[reg].end, at);
    };
    for (uint32_t b = 0; b < blocks_.size(); ++b)
      for (size_t w = 0; w < words; ++w) {
        for (uint64_t m = live_in[b][w]; m; m &= m - 1)
          extend(static_cast<uint32_t>(w * 64 + size_t(__builtin_ctzll(m))), 2 * blocks_[b].begin);
        for (uint64_t m = live_out[b][w]; m; m &= m - 1)
          extend(static_cast<uint32_t>(w * 64 + size_t(__builtin_ctzll(m))), 2 * blocks_[b].end - 1);
      }
    for (const RegisterRef& r : refs_) {
      if (r.is_pred) continue;
      // Only lane-wise instructions may write a row they also read for another register.
      bool late = r.is_def && kernel_.code[r.inst].kind == Kind::kLane;
      extend(r.reg, 2 * r.inst + (late ? 1 : 0));
      if (r.is_def) extend(r.reg, 2 * r.inst + 1);
      if (tracked_[r.reg]) {
        extend(r.reg, 0);
        extend(r.reg, 2 * static_cast<uint32_t>(kernel_.code.size()));
      }
    }
    std::vector<Interval> order;
    for (const Interval& i : intervals)
      if (i.begin != ~0u && !registers_[i.reg].fixed) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [](auto& a, auto& b) { return a.begin != b.begin ? a.begin < b.begin : a.reg < b.reg; });
    std::vector<uint32_t> row(n_regs, 0);
    // Wide and narrow registers use separate rows, so that two rows are the same or disjoint.
    for (bool wide : {true, false}) {
      uint32_t step = wide ? 2 : 1;
      std::vector<std::pair<uint32_t, uint32_t>> active;  // heap on the end, smallest first
      std::vector<uint32_t> free_rows;
      for (const Interval& i : order) {
        if ((registers_[i.reg].slot == Slot::kB64) != wide) continue;
        while (!active.empty() && active.front().first < i.begin) {
          free_rows.push_back(active.front().second);
          std::pop_heap(active.begin(), active.end(), std::greater<>());
          active.pop_back();
        }
        if (free_rows.empty()) {
          row[i.reg] = kernel_.rows;
          kernel_.rows += step;
        } else {
          row[i.reg] = free_rows.back();
          free_rows.pop_back();
        }
        active.emplace_back(i.end, row[i.reg]);
        std::push_heap(active.begin(), active.end(), std::greater<>());
      }
    }
    kernel_.rows += kernel_.rows & 1;
    for (uint32_t r = 0; r < n_regs; ++r) {
      if (!registers_[r].fixed) continue;
      row[r] = kernel_.rows;
      kernel_.rows += 2;
    }
    for (const RegisterRef& r : refs_) {
      if (r.is_pred) continue;
      if (r.field)
        kernel_.code[r.inst].*r.field = row[r.reg];
      else
        kernel_.lists[r.list_index] = row[r.reg];
    }
    for (Operand& o : kernel_.operands) o.place = o.is_pred ? kernel_.rows + o.reg : row[o.reg];
    kernel_.unassigned.resize(kernel_.rows + kernel_.preds);
    for (const RegisterRef& r : refs_)
      if (tracked_[bit(r)])
        kernel_.unassigned[r.is_pred ? kernel_.rows + r.reg : row[r.reg]] =
            r.is_pred ? predicate_names_[r.reg] : registers_[r.reg].name;
    for (ConstantRow& c : kernel_.constants) c.row = row[c.row];
    for (SpecialRow& s : kernel_.specials) s.row = row[s.row];
  }

  Kernel& kernel_;
  const std::vector<VirtualRegister>& registers_;
  const std::vector<std::string>& predicate_names_;
  std::vector<RegisterRef>& refs_;
  uint32_t bits_;
  std::vector<uint32_t> first_ref_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;
  std::vector<bool> tracked_;  ///< by bit: not proven to be assigned
};

}  // namespace

bool assign_rows(Kernel& kernel, const std::vector<VirtualRegister>& registers,
                 const std::vector<std::string>& predicate_names, std::vector<RegisterRef>& refs) {
  return Analysis(kernel, registers, predicate_names, refs).run();
}

}  // namespace roofgen::sim

// Control flow of the interpreter: paths of lanes, convergence barriers, barriers of the CTA.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <functional>
#include <span>

#include "base/costs.h"
#include "runtime/sass/interpreter_state.h"

namespace roofgen::sass {

using Kind = Operand::Kind;

void Interpreter::State::constant(const Operand& o, const Lanes& index, uint32_t bytes, unsigned word,
                                  Lanes& out) const {
  const std::string* bank = &bank0;
  out.axes = index.axes;
  if (o.bank != 0) {
    const auto it = banks.find(o.bank);
    if (it == banks.end()) {
      out.known = 0;
      return;
    }
    bank = &it->second;
  }
  out.known = index.known;
  const uint32_t size = std::min(bytes, 4u);
  const auto word_at = [&](uint32_t offset, uint32_t& value) {
    const uint64_t at = uint64_t{offset} + static_cast<uint32_t>(o.value) + 4 * word;
    value = 0;
    if (at + size > bank->size()) return false;
    std::memcpy(&value, bank->data() + at, size);
    return true;
  };
  // Nearly always all lanes read the same word.
  if (const uint32_t first = index.v[0]; std::all_of(index.v, index.v + 32, [=](uint32_t v) { return v == first; })) {
    uint32_t value = 0;
    if (!word_at(first, value)) out.known = 0;
    std::fill(out.v, out.v + 32, value);
  } else {
    for (unsigned lane = 0; lane < 32; ++lane)
      if (!word_at(index.v[lane], out.v[lane])) out.known &= ~(1u << lane);
  }
  if (o.bank == 0 && !is_set(static_cast<uint32_t>(o.value) + 4 * word)) out.known = 0;
  if (o.bank == 4)
    for (const uint32_t slot : unknown_slots)
      if (static_cast<uint32_t>(o.value) / 8 * 8 == slot) out.known = 0;
}

void Interpreter::State::read(const WarpState& w, const Operand& o, Lanes& out, bool is_float) const {
  switch (o.kind) {
    case Kind::kRegister:
      if (o.index == kZeroRegister)
        out.fill(0);
      else
        out = w.registers[o.index];
      break;
    case Kind::kUniform:
      if (o.index >= kUniformZero)
        out.fill(0);
      else
        out = w.uniform[o.index];
      break;
    case Kind::kImmediate: out.fill(static_cast<uint32_t>(o.value)); return;
    case Kind::kConstant: {
      Lanes index;
      index.fill(0);
      if (o.index != kZeroRegister) index = w.registers[o.index];
      if (o.uniform < kUniformZero) add_lanes(index, w.uniform[o.uniform]);
      constant(o, index, 4, 0, out);
      break;
    }
    default: out.fill(0), out.known = 0; return;
  }
  operand_axes |= out.axes;
  if (is_float) {
    if (o.absolute)
      for (uint32_t& v : out.v) v &= 0x7fffffffu;
    if (o.negative)
      for (uint32_t& v : out.v) v ^= 0x80000000u;
  } else {
    if (o.negative)
      for (uint32_t& v : out.v) v = 0 - v;
    if (o.inverted)
      for (uint32_t& v : out.v) v = ~v;
  }
}

/// A pair of registers, or of words of a constant. Immediates are extended by their sign.
void Interpreter::State::read_pair(const WarpState& w, const Operand& o, Lanes& low, Lanes& high) const {
  Operand upper = o;
  if (o.kind == Kind::kRegister) {
    read(w, o, low);
    if (o.index == kZeroRegister) {
      high.fill(0);
      return;
    }
    upper.index = static_cast<uint8_t>(o.index + 1);
  } else if (o.kind == Kind::kUniform) {
    read(w, o, low);
    if (o.index == kUniformZero) {
      high.fill(0);
      return;
    }
    upper.index = static_cast<uint8_t>(o.index + 1);
  } else if (o.kind == Kind::kConstant) {
    read(w, o, low);
    upper.value += 4;
  } else {
    read(w, o, low);
    high.fill(o.kind == Kind::kImmediate && o.value < 0 ? ~0u : 0);
    high.known = low.known;
    return;
  }
  read(w, upper, high);
}

void Interpreter::State::predicate(const WarpState& w, const Operand& o, uint32_t& value, uint32_t& known) const {
  value = 0, known = kEveryLane;
  if (o.kind == Kind::kPredicate || o.kind == Kind::kUniformPredicate) {
    const bool uniform = o.kind == Kind::kUniformPredicate;
    if (o.index == kTruePredicate)
      value = kEveryLane;
    else
      value = (uniform ? w.uniform_predicates : w.predicates)[o.index & 7],
      known = (uniform ? w.uniform_predicate_known : w.predicate_known)[o.index & 7],
      operand_axes |= (uniform ? w.uniform_predicate_axes : w.predicate_axes)[o.index & 7];
  } else {
    known = 0;
  }
  if (o.inverted) value = ~value;
}

void Interpreter::State::write(WarpState& w, const Operand& o, const Lanes& value, uint32_t mask, unsigned plus) {
  if (o.kind == Kind::kRegister) {
    if (o.index == kZeroRegister || o.index + plus >= kZeroRegister) return;
    Lanes& to = w.registers[o.index + plus];
    const uint8_t kept = mask == kEveryLane ? uint8_t{0} : to.axes;
    merge(to, value, mask);
    to.axes = kept | operand_axes;
    w.known_registers[o.index + plus] = to.known != 0;
  } else if (o.kind == Kind::kUniform && o.index + plus < kUniformZero) {
    // The first active lane has the value of all.
    Lanes& to = w.uniform[o.index + plus];
    const int lane = mask ? std::countr_zero(mask) : 0;
    to.fill(value.v[lane]);
    to.known = value.known >> lane & 1 ? kEveryLane : 0;
    to.axes = operand_axes;
  }
}

void Interpreter::State::write_predicate(WarpState& w, const Operand& o, uint32_t value, uint32_t known,
                                         uint32_t mask) {
  if (o.index >= kTruePredicate) return;
  if (o.kind == Kind::kPredicate) {
    w.predicates[o.index] = (w.predicates[o.index] & ~mask) | (value & mask);
    w.predicate_known[o.index] = (w.predicate_known[o.index] & ~mask) | (known & mask);
    w.predicate_axes[o.index] = (mask == kEveryLane ? uint8_t{0} : w.predicate_axes[o.index]) | operand_axes;
  } else if (o.kind == Kind::kUniformPredicate) {
    const int lane = mask ? std::countr_zero(mask) : 0;
    w.uniform_predicates[o.index] = value >> lane & 1 ? kEveryLane : 0;
    w.uniform_predicate_known[o.index] = known >> lane & 1 ? kEveryLane : 0;
    w.uniform_predicate_axes[o.index] = operand_axes;
  }
}

uint32_t Interpreter::State::guarded(const WarpState& w, const Instruction& i, uint32_t mask) const {
  if (i.guard.kind == Kind::kNone) return mask;
  uint32_t value = 0, known = 0;
  predicate(w, i.guard, value, known);
  return mask & (value | ~known);
}

void Interpreter::State::addresses(const WarpState& w, const Operand& o, uint64_t out[32], uint32_t& known) const {
  Lanes low, high;
  low.fill(0), high.fill(0);
  if (o.index != kZeroRegister) {
    low = w.registers[o.index];
    if (o.wide && o.index + 1 < kZeroRegister) high = w.registers[o.index + 1u];
  }
  known = low.known & high.known;
  operand_axes |= low.axes | high.axes;
  uint64_t plus = static_cast<uint64_t>(int64_t{o.value});
  if (o.uniform < kUniformZero) {
    const Lanes& u = w.uniform[o.uniform];
    const Lanes* up = o.wide_uniform && o.uniform + 1 < kUniformZero ? &w.uniform[o.uniform + 1u] : nullptr;
    known &= u.known & (up ? up->known : kEveryLane);
    operand_axes |= u.axes | (up ? up->axes : uint8_t{0});
    plus += u.v[0] | (up ? uint64_t{up->v[0]} << 32 : 0);
  }
  for (unsigned lane = 0; lane < 32; ++lane) out[lane] = (low.v[lane] | uint64_t{high.v[lane]} << 32) * o.scale + plus;
}

void Interpreter::State::load(WarpState& w, const Instruction& i, const uint64_t at[32], uint32_t known,
                              uint32_t mask) {
  const Operand* to = nullptr;
  for (size_t k = 0; k < i.results; ++k) {
    const Operand& o = i.operands[k];
    if (o.kind == Kind::kRegister)
      to = &o;
    else if (o.kind == Kind::kPredicate)
      write_predicate(w, o, 0, 0, mask);
  }
  if (!to) return;
  operand_axes |= memory_axes;  // of device memory, only the address decides
  const uint32_t words = std::max(1u, i.bytes / 4u);
  const bool is_shared = i.opcode->action == Action::kLds, is_local = i.opcode->action == Action::kLdl;
  std::array<Lanes, 4> value;
  for (uint32_t word = 0; word < words; ++word) value[word].fill(0), value[word].known = 0;
  for (uint32_t left = mask & known; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::array<std::byte, 16> bytes{};
    uint64_t a = at[lane];
    bool there = false;
    if (is_local) {
      for (uint32_t word = 0; word < words; ++word) {
        const auto it = w.local.find(static_cast<uint32_t>(a / 4 + word));
        if (it == w.local.end() || !(it->second[0].known >> lane & 1)) continue;
        value[word].v[lane] = it->second[0].v[lane];
        value[word].known |= 1u << lane;
      }
      continue;
    }
    const bool in_shared = is_shared || in_shared_window(a);
    if (in_shared) {
      if (!is_shared) a = (a - kSharedWindow) & kSharedOffset;
      if (a + i.bytes <= shared.size()) {
        there = true;
        for (uint32_t b = 0; b < i.bytes; ++b) there = there && shared_known[a + b];
        std::memcpy(bytes.data(), shared.data() + a, i.bytes);
      }
    } else {
      there = read_global(a, i.bytes, bytes.data());
    }
    if (!there) continue;
    for (uint32_t word = 0; word < words; ++word) {
      uint32_t x = 0;
      std::memcpy(&x, bytes.data() + 4 * word, 4);
      if (i.bytes == 1 && i.has(kSigned)) x = static_cast<uint32_t>(static_cast<int8_t>(x));
      if (i.bytes == 2 && i.has(kSigned)) x = static_cast<uint32_t>(static_cast<int16_t>(x));
      value[word].v[lane] = x;
      value[word].known |= 1u << lane;
    }
  }
  for (unsigned word = 0; word < words; ++word) write(w, *to, value[word], mask, word);
}

/// Stores to shared, local or device memory.
void Interpreter::State::store(WarpState& w, const Instruction& i, const uint64_t at[32], uint32_t known,
                               uint32_t mask) {
  const Operand& from = i.operands[i.count - 1u];
  const uint32_t words = std::max(1u, i.bytes / 4u), size = std::min<uint32_t>(i.bytes, 4);
  for (uint32_t word = 0; word < words; ++word) {
    Operand part = from;
    if (from.kind == Kind::kRegister && from.index != kZeroRegister)
      part.index = static_cast<uint8_t>(from.index + word);
    Lanes value;
    read(w, part, value);
    memory_axes |= operand_axes;
    if (i.opcode->action == Action::kStl) {
      for (uint32_t left = mask & known; left; left &= left - 1) {
        const int lane = std::countr_zero(left);
        auto& slot = w.local[static_cast<uint32_t>(at[lane] / 4 + word)];
        if (slot.empty()) slot.resize(1), slot[0].fill(0), slot[0].known = 0;
        slot[0].v[lane] = value.v[lane];
        slot[0].known = (slot[0].known & ~(1u << lane)) | (value.known & (1u << lane));
      }
      continue;
    }
    for (uint32_t left = mask & known; left; left &= left - 1) {
      const int lane = std::countr_zero(left);
      uint64_t a = at[lane] + 4 * word;
      if (i.opcode->action == Action::kStg && !in_shared_window(a)) {
        const auto* bytes = reinterpret_cast<const std::byte*>(&value.v[lane]);
        write_global(a, size, value.known >> lane & 1 ? bytes : nullptr);
        continue;
      }
      if (i.opcode->action == Action::kStg) a = (a - kSharedWindow) & kSharedOffset;
      if (a + size > shared.size()) continue;
      std::memcpy(shared.data() + a, &value.v[lane], size);
      std::memset(shared_known.data() + a, value.known >> lane & 1, size);
    }
  }
}

/// The sectors that the lanes of one instruction request, line after line.
void Interpreter::State::request(WarpState& w, Access& a, const uint64_t at[32], uint32_t mask, uint32_t bytes) {
  std::vector<LineRequest>& lines_of = w.stream.lines;
  a.first_line = static_cast<uint32_t>(lines_of.size());
  // Lanes that are served together. Equal addresses of neighbours, as in shared memory, seem to change nothing here:
  // with them the recorded GEMM on the RTX 3090 is modelled worse.
  const int together = 128 / std::clamp<int>(static_cast<int>(bytes), 4, 16);
  std::array<uint8_t, 64> looked_up{};  // by line: the last group of lanes, from 1
  for (uint32_t left = mask; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const auto group = static_cast<uint8_t>(1 + lane / together);
    for (uint64_t sector = at[lane] / 32; sector <= (at[lane] + bytes - 1) / 32; ++sector) {
      const uint64_t line = sector / 4;
      const auto bit = static_cast<uint8_t>(1u << sector % 4);
      size_t k = lines_of.size();
      while (k > a.first_line && lines_of[k - 1].line != line) --k;
      if (k == a.first_line) lines_of.push_back({line, 0}), k = lines_of.size();
      lines_of[k - 1].sectors |= bit;
      if (uint8_t& last = looked_up[k - 1 - a.first_line]; last != group) last = group, ++a.tags;
    }
  }
  a.lines = static_cast<uint16_t>(lines_of.size() - a.first_line);
}

/// Adds executed instructions that follow each other to the stream, as plain ones: who moves data or meets others says
/// so in own_step().
void Interpreter::State::record(WarpState& w, uint32_t index, uint32_t count, uint32_t active) {
  std::vector<Step>& steps = w.stream.steps;
  if (!steps.empty() && steps.back().is_plain() && steps.back().index + steps.back().count() == index)
    steps.back().access += count;
  else
    steps.push_back({index, Step::kPlain + count - 1});
  const auto lanes = static_cast<uint64_t>(std::popcount(active));
  const Fp32 &before = fp32_before[index], &behind = fp32_before[index + count];
  w.stream.lane_instructions += count * lanes;
  w.stream.fp32_lanes += (behind.all - before.all) * lanes;
  w.stream.fma_lanes += (behind.fused - before.fused) * lanes;
  w.executed += count;
  steps_left -= count;
}

Interpreter::Interpreter(const Code& code, StreamLaunch launch)
    : state_(std::make_unique<State>(code, std::move(launch))) {}
Interpreter::~Interpreter() = default;

Result<std::optional<CtaStream>> Interpreter::run_on(uint64_t cta) {
  const std::map<uint32_t, Doubt> before = state_->doubts;
  if (std::ranges::none_of(before, [&](const auto& d) { return state_->ends_most(d.first); }))
    return std::optional<CtaStream>();
  state_->goes_on = true;
  state_->most_of_warp = ~uint64_t{0};
  Result<CtaStream> out = state_->run(cta);
  state_->goes_on = false;
  state_->doubts = before;
  if (!out) return std::move(out).error();
  return std::optional(std::move(*out));
}

Result<CtaStream> Interpreter::run(uint64_t cta, uint64_t most_of_warp) {
  state_->most_of_warp = most_of_warp;
  return state_->run(cta);
}
bool Interpreter::depends_on_axis(int axis) const { return state_->deciding_axes >> axis & 1; }
std::vector<Doubt> Interpreter::doubts() const {
  std::vector<Doubt> out;
  for (const auto& [index, d] : state_->doubts) out.push_back(d);
  return out;
}
uint64_t WarpStream::length() const {
  uint64_t n = 0;
  for (const Step& s : steps) n += s.count();
  return n;
}
uint64_t CtaStream::instructions() const {
  uint64_t n = 0;
  for (const WarpStream& w : warps) n += w.length();
  return n;
}

// ---- Control flow --------------------------------------------------------------------------------

/// The lanes wait at a convergence barrier until all of its members that still run are there.
void Interpreter::State::arrive(WarpState& w, size_t barrier, uint32_t resume_at, uint32_t mask) {
  w.arrived[barrier] |= mask;
  w.resume[barrier] = resume_at;
  w.paths.pop_back();
  settle(w);
}

/// Releases the convergence barriers and the WARPSYNCs that are complete. If no path can run, an incomplete one gives
/// up.
void Interpreter::State::settle(WarpState& w) {
  for (size_t b = 0; b < kConvergenceBarriers; ++b)
    if (w.arrived[b] && !(w.members[b] & w.alive & ~w.arrived[b]))
      w.paths.push_back({w.resume[b], w.arrived[b]}), w.arrived[b] = 0;
  for (size_t k = 0; k < w.meetings.size();) {
    const uint32_t wanted = w.meetings[k].wanted;
    uint32_t lanes = 0;
    for (const Meeting& m : w.meetings) lanes |= m.wanted == wanted ? m.lanes : 0;
    if (wanted & w.alive & ~lanes)
      ++k;
    else
      release(w, wanted), k = 0;
  }
  if (!w.paths.empty() || !w.parked.empty()) return;
  for (size_t b = 0; b < kConvergenceBarriers; ++b)
    if (w.arrived[b]) {
      w.paths.push_back({w.resume[b], w.arrived[b]});
      w.arrived[b] = 0;
      return;
    }
  if (!w.meetings.empty()) release(w, w.meetings.front().wanted);
}

/// The lanes that wait for `wanted` go on: together in a collective part, otherwise each behind its WARPSYNC.
void Interpreter::State::release(WarpState& w, uint32_t wanted) {
  std::array<uint32_t, 32> targets{};
  uint32_t lanes = 0;
  Path collective;
  std::erase_if(w.meetings, [&](const Meeting& m) {
    if (m.wanted != wanted) return false;
    if (m.behind != kNowhere) {
      collective = {m.resume, collective.mask | m.lanes};
      w.collectives.push_back(m);
      return true;
    }
    lanes |= m.lanes;
    for (uint32_t l = m.lanes; l; l &= l - 1) targets[static_cast<size_t>(std::countr_zero(l))] = m.resume;
    return true;
  });
  scatter(w, lanes, targets);
  if (collective.mask) w.paths.push_back(collective);
}

/// A path for each target of the lanes. The lower address runs first, so that the paths meet again.
void Interpreter::State::scatter(WarpState& w, uint32_t lanes, const std::array<uint32_t, 32>& targets) {
  std::map<uint32_t, uint32_t, std::greater<>> paths;
  for (; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(lanes));
    paths[targets[lane]] |= 1u << lane;
  }
  for (const auto& [pc, mask] : paths) w.paths.push_back({pc, mask});
}

/// WARPSYNC of the lanes of a path: each waits for those of its mask. Lanes whose whole mask is there go on together,
/// whatever the masks of the others.
void Interpreter::State::meet(WarpState& w, const Instruction& i, uint32_t next, uint32_t mask) {
  Lanes wanted;
  wanted.fill(kEveryLane);
  if (i.count && i.operands[0].kind != Kind::kPredicate) read(w, i.operands[0], wanted);
  const uint32_t behind = i.has(kCollective) ? i.target : kNowhere;
  uint32_t waiting = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    // Those with an unknown mask wait for nobody.
    if (i.has(kCollective) || (wanted.known >> lane & 1 && (wanted.v[lane] & w.alive & ~mask))) waiting |= 1u << lane;
  }
  if (mask & ~waiting) w.paths.push_back({next, mask & ~waiting});
  for (uint32_t left = waiting; left;) {
    const auto lane = static_cast<size_t>(std::countr_zero(left));
    uint32_t same = 0;
    for (uint32_t l = left; l; l &= l - 1)
      if (wanted.v[static_cast<size_t>(std::countr_zero(l))] == wanted.v[lane]) same |= 1u << std::countr_zero(l);
    w.meetings.push_back({wanted.v[lane], same, next, behind});
    left &= ~same;
  }
}

/// Whether an unknown condition leads past the rest of the work, by an exit or a branch, in at least half of the CTAs.
bool Interpreter::State::ends_most(uint32_t index) const {
  const auto at = doubts.find(index);
  const Instruction& i = code.instructions[index];
  const bool skips = i.opcode->action == Action::kExit || (i.opcode->action == Action::kBra && i.target > index);
  return skips && at != doubts.end() && at->second.is_branch && !at->second.repeats && at->second.share >= 0.5 &&
         at->second.share < 1;
}

/// Whether a branch on an unknown value is taken this time. The warps of a CTA decide alike when they first come to it,
/// because barriers may follow; later, in a loop, its share of the executions is taken, evenly spread. What a CTA does
/// depends on no other one.
bool Interpreter::State::guess(uint32_t warp, uint32_t index) {
  doubt(index, true);
  Doubt& branch = doubts[index];
  branch.share = launch.taken_share ? launch.taken_share(index) : std::nullopt;
  Guesses& g = undecided[index];
  const bool first = !(g.warps >> warp & 1);
  g.warps |= 1u << warp;
  branch.repeats |= !first;
  // Without knowledge a loop ends, and a forward branch, which skips something, is not taken.
  if (!branch.share || (goes_on && ends_most(index))) return false;
  const double of = std::clamp(*branch.share, 0.0, 1.0);
  const bool taken = first ? of >= 0.5 : of * static_cast<double>(g.seen + 1) + 0.5 >= static_cast<double>(g.taken + 1);
  ++g.seen, g.taken += taken;
  return taken;
}

void Interpreter::State::control(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask) {
  Path& path = w.paths.back();
  const uint32_t next = index + 1;
  const auto split = [&](uint32_t taken, uint32_t target) {
    if (taken == path.mask) {
      path.pc = target;
    } else if (!taken) {
      path.pc = next;
    } else {
      const Path rest{next, path.mask & ~taken};
      // The lower address runs first, so that the paths meet again.
      if (target < next)
        path = rest, w.paths.push_back({target, taken});
      else
        path = {target, taken}, w.paths.push_back(rest);
    }
  };
  // The lanes in which the condition of a branch holds; unknown ones decide alike.
  const auto condition = [&]() -> uint32_t {
    uint32_t value = kEveryLane, known = kEveryLane;
    if (i.guard.kind != Kind::kNone) predicate(w, i.guard, value, known);
    for (size_t k = 0; k < i.count; ++k) {
      const Operand& o = i.operands[k];
      if (o.kind != Kind::kPredicate && o.kind != Kind::kUniformPredicate) continue;
      uint32_t v = 0, kn = 0;
      predicate(w, o, v, kn);
      known &= kn, value &= v;
    }
    if (!(mask & ~known)) return value & mask;
    return (value & known & mask) | (guess(w.number, index) ? mask & ~known : 0);
  };
  // The lanes in which the guard holds; an unknown guard does not.
  const auto decided = [&]() -> uint32_t {
    uint32_t value = kEveryLane, known = kEveryLane;
    if (i.guard.kind != Kind::kNone) predicate(w, i.guard, value, known);
    if (mask & ~known) doubt(index, true);
    return mask & value & known;
  };
  switch (i.opcode->action) {
    case Action::kBra: {
      uint32_t taken = condition();
      if (i.has(kConverged | kDiverged)) {
        // Whether all lanes of a mask are here.
        Lanes wanted;
        read(w, i.operands[0], wanted);
        const auto lane = static_cast<size_t>(std::countr_zero(mask));
        if (!(wanted.known >> lane & 1)) doubt(index, true);
        const bool here = !(wanted.known >> lane & 1) || !(wanted.v[lane] & w.alive & ~path.mask);
        if (here != i.has(kConverged)) taken = 0;
      }
      // The lanes stay together: they jump if all (BRA.U) or any of them (BRA.U.ANY) would.
      if (i.has(kUnanimous) && taken != path.mask) taken = taken && i.has(kAny) ? path.mask : 0;
      split(taken, i.target);
      return;
    }
    case Action::kBrx: {
      Lanes to;
      uint32_t left = guarded(w, i, mask);
      // BRX R2 -0x2b0: the text has register and offset in one operand.
      read(w, i.operands[0], to);
      if (i.operands[0].kind != Kind::kRegister || (left & ~to.known)) {
        doubt(index, true);
        path.pc = next;
        return;
      }
      const int64_t offset = int64_t{next} * 16 + i.operands[0].value;
      std::array<uint32_t, 32> targets{};
      for (size_t l = 0; l < 32; ++l)
        targets[l] = left >> l & 1 ? static_cast<uint32_t>((offset + static_cast<int32_t>(to.v[l])) / 16) : next;
      const uint32_t whole = path.mask;
      w.paths.pop_back();
      scatter(w, whole, targets);
      return;
    }
    case Action::kCall: {
      const uint32_t taken = condition();
      if (i.target >= code.instructions.size())
        doubt(index, true), path.pc = next;
      else
        split(taken, i.target);
      return;
    }
    case Action::kRet: {
      // RET.REL R2, base: the register holds the offset from the base, which the text has as an address.
      Lanes to;
      read(w, i.operands[0], to);
      const uint32_t taken = decided();
      if (!taken) {
        path.pc = next;
        return;
      }
      const uint32_t base = i.target < code.instructions.size() ? i.target : 0, whole = path.mask;
      std::array<uint32_t, 32> targets{};
      for (size_t l = 0; l < 32; ++l) targets[l] = taken >> l & 1 ? to.v[l] / 16 + base : next;
      const uint32_t lost = taken & ~to.known;
      if (lost) doubt(index, true);
      w.alive &= ~lost;
      w.paths.pop_back();
      scatter(w, whole & ~lost, targets);
      settle(w);
      return;
    }
    case Action::kBssy:
      if (i.operands[0].value < 16) w.members[static_cast<size_t>(i.operands[0].value & 15)] = path.mask;
      path.pc = next;
      return;
    case Action::kBsync:
      if (const uint32_t taken = decided(); taken == path.mask) {
        arrive(w, static_cast<size_t>(i.operands[0].value & 15), next, taken);
      } else if (taken) {
        path = {next, path.mask & ~taken};
        w.paths.push_back({index, taken});
        arrive(w, static_cast<size_t>(i.operands[0].value & 15), next, taken);
      } else {
        path.pc = next;
      }
      return;
    case Action::kBreak: {
      const uint32_t taken = condition();
      path.pc = next;
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == Kind::kOther) w.members[static_cast<size_t>(i.operands[k].value & 15)] &= ~taken;
      settle(w);
      return;
    }
    case Action::kWarpsync: {
      const uint32_t taken = decided(), rest = path.mask & ~taken;
      w.paths.pop_back();
      if (rest) w.paths.push_back({next, rest});
      meet(w, i, next, taken);
      settle(w);
      return;
    }
    case Action::kEndCollective: {
      std::array<uint32_t, 32> targets{};
      targets.fill(next);
      const uint32_t lanes = path.mask;
      std::erase_if(w.collectives, [&](const Meeting& m) {
        if (!(m.lanes & lanes)) return false;
        for (uint32_t l = m.lanes; l; l &= l - 1) targets[static_cast<size_t>(std::countr_zero(l))] = m.behind;
        return true;
      });
      w.paths.pop_back();
      scatter(w, lanes, targets);
      return;
    }
    case Action::kExit: {
      const uint32_t taken = condition();
      w.alive &= ~taken;
      path = {next, path.mask & ~taken};
      if (!path.mask) w.paths.pop_back();
      settle(w);
      return;
    }
    default: path.pc = next; return;
  }
}

namespace {

bool is_control(const Instruction& i) { return i.opcode->pipe == Pipe::kBranch && i.opcode->action != Action::kBmov; }

}  // namespace

/// Runs a warp until it waits at a barrier of the CTA, or ends. False: it used up its steps.
bool Interpreter::State::run_warp(WarpState& w) {
  const auto count = static_cast<uint32_t>(code.instructions.size());
  while (!w.paths.empty()) {
    if (steps_left == 0) return false;
    if (w.executed >= most_of_warp) {
      w.paths.clear(), w.parked.clear();
      return true;
    }
    const uint32_t index = w.paths.back().pc, mask = w.paths.back().mask;
    if (index >= count) {
      w.alive &= ~mask;
      w.paths.pop_back();
      settle(w);
      continue;
    }
    if (const uint32_t most = pass(w, index)) {
      const auto n = static_cast<uint32_t>(std::min<uint64_t>({most, steps_left, most_of_warp - w.executed}));
      record(w, index, n, mask);
      w.paths.back().pc = index + n;
      continue;
    }
    const Instruction& i = code.instructions[index];
    operand_axes = 0;
    if (is_control(i)) {
      record(w, index, 1, mask);
      control(w, i, index, mask);
      deciding_axes |= operand_axes;
      continue;
    }
    const uint32_t active = guarded(w, i, mask);
    deciding_axes |= operand_axes;
    record(w, index, 1, active);
    w.paths.back().pc = index + 1;
    if (i.opcode->action == Action::kBar && !active) w.own_step().access = Step::kSkipped;
    if (i.opcode->action == Action::kBar && active) {
      Lanes number, threads;
      number.fill(0), threads.fill(0);
      size_t given = 0;
      uint32_t vote = 0, vote_known = kEveryLane;
      for (size_t k = i.results; k < i.count; ++k) {
        if (i.operands[k].kind == Kind::kPredicate)
          predicate(w, i.operands[k], vote, vote_known);
        else
          read(w, i.operands[k], given++ ? threads : number);
      }
      const auto lane = static_cast<size_t>(std::countr_zero(active));
      const auto b = static_cast<size_t>(number.v[lane] & 15);
      const auto all = static_cast<uint32_t>(launch.block.count());
      const uint32_t expected = given > 1 && threads.known >> lane & 1 && threads.v[lane] ? threads.v[lane] : all;
      barriers[b].expected = (expected + 31) / 32 * 32;
      Votes& votes = barriers[b].votes;
      votes.count += static_cast<uint32_t>(std::popcount(vote & active));
      votes.threads += static_cast<uint32_t>(std::popcount(active));
      votes.all = i.has(kAnd);
      votes.is_known &= !(active & ~vote_known);
      memory_axes |= operand_axes;
      // Lanes that have diverged arrive with the last of them.
      const auto arrives = [&] {
        w.own_step().access = Step::barrier(static_cast<uint32_t>(b), barriers[b].expected / 32);
        barriers[b].arrived += 32;
      };
      if (i.has(kArrive)) {
        arrives();
        w.waits_at = -1;
        continue;
      }
      w.parked.push_back(w.paths.back());
      w.paths.pop_back();
      if (w.paths.empty()) settle(w);
      if (!w.paths.empty()) continue;
      w.waits_at = static_cast<int>(b);
      arrives();
      return true;
    }
    execute(w, i, index, active);
  }
  return true;
}

void Interpreter::State::find_fp32() {
  fp32_before.resize(code.instructions.size() + 1);
  for (size_t k = 0; k < code.instructions.size(); ++k) {
    const Opcode& o = *code.instructions[k].opcode;
    const bool is_fp32 = o.pipe == Pipe::kFma && o.action != Action::kFchk;
    fp32_before[k + 1] = {fp32_before[k].all + is_fp32, fp32_before[k].fused + (o.action == Action::kFfma)};
  }
}

void Interpreter::State::find_passing() {
  passing.assign(steers.size() + 1, 0);
  fading.assign(steers.size() + 1, {});
  passed.assign(steers.size() + 1, {});
  for (size_t k = steers.size(); k-- > 0;) {
    const Instruction& i = code.instructions[k];
    const Action action = i.opcode->action;
    if (i.guard.kind != Kind::kNone || is_control(i) || is_memory(action) || action == Action::kBar) continue;
    if (!steers[k]) passing[k] = passing[k + 1] + 1;
    const bool fades = action == Action::kOpaque || action == Action::kProduct || is_float_arithmetic(action);
    if (!steers[k] || !fades || i.results != 1 || i.operands[0].kind != Kind::kRegister) continue;
    Fading& f = fading[k];
    f.first = i.operands[0].index;
    f.words = static_cast<uint8_t>(std::min<unsigned>(result_words(i), kZeroRegister - f.first));
    for (size_t s = 0; is_float_arithmetic(action) && s < i.sources(); ++s)
      if (const Operand& o = i.source(s); o.kind == Kind::kRegister && o.index != kZeroRegister)
        f.sources[f.source_count++] = o.index;
    if (is_float_arithmetic(action) && !f.source_count) f.words = 0;  // known
  }
}

/// How many instructions from `index` on leave the state of the warp as it is, whatever the lanes.
uint32_t Interpreter::State::pass(const WarpState& w, uint32_t index) {
  Passed& p = passed[index];
  if (p.count > 0 && (p.unknown & w.known_registers).none()) return p.count;
  p = {};
  // Adds the registers that an instruction needs to be unknown. False: one of them is known.
  const auto stays = [&](const Fading& f) {
    for (unsigned r = f.first; r < unsigned{f.first} + f.words; ++r) {
      if (w.known_registers[r]) return false;
      p.unknown.set(r);
    }
    const auto sources = std::span(f.sources).first(f.source_count);
    const auto unknown = std::ranges::find_if(sources, [&](uint8_t r) { return !w.known_registers[r]; });
    if (unknown != sources.end()) p.unknown.set(*unknown);
    return sources.empty() || unknown != sources.end();
  };
  uint32_t k = index;
  for (;; ++k) {
    k += passing[k];
    if (!fading[k].words || !stays(fading[k])) break;
  }
  p.count = k - index;
  return p.count;
}

void Interpreter::State::find_steering() {
  steers = steering(code, stores_steer);
  find_passing();
  for (size_t k = 0; k < steers.size(); ++k) {
    const Opcode& o = *code.instructions[k].opcode;
    if (!steers[k]) continue;
    device_steers |= o.action == Action::kLdg;
    shared_steers |= o.action == Action::kLds || o.name == "LD";
  }
}

Result<CtaStream> Interpreter::State::run(uint64_t cta) {
  const std::map<uint32_t, Doubt> before = doubts;
  Result<CtaStream> out = run_once(cta);
  // The values of stores are seldom read back, and only then worth computing.
  if (reads_back && !stores_steer) {
    stores_steer = true;
    find_steering();
    doubts = before;
    out = run_once(cta);
  }
  if (out) spend(Cost::kInterpreted, out->instructions());
  for (const auto& [line, w] : written) written_by_others[line] |= w.is_written;
  return out;
}

Result<CtaStream> Interpreter::State::run_once(uint64_t cta) {
  written.clear();
  untouched_line = kNoLine;
  reads_back = false;
  undecided.clear();
  cta_number = cta;
  cta_x = static_cast<uint32_t>(cta % launch.grid.x);
  cta_y = static_cast<uint32_t>(cta / launch.grid.x % launch.grid.y);
  cta_z = static_cast<uint32_t>(cta / launch.grid.x / launch.grid.y);
  const auto threads = static_cast<uint32_t>(launch.block.count());
  const uint32_t warp_count = (threads + 31) / 32;
  // Addresses of shared memory begin behind the part that the system reserves (1 KiB at most).
  const size_t shared_bytes = size_t{256} << 10;
  shared.assign(shared_bytes, std::byte{0});
  shared_known.assign(shared_bytes, 0);
  warps.assign(warp_count, {});
  barriers = {};
  steps_left = launch.max_steps;
  for (uint32_t n = 0; n < warp_count; ++n) {
    WarpState& w = warps[n];
    w.number = n;
    w.alive = threads - 32 * n >= 32 ? kEveryLane : (1u << (threads - 32 * n)) - 1;
    w.paths.push_back({0, w.alive});
    w.registers.resize(256);
    for (Lanes& r : w.registers) r.fill(0), r.known = 0;
    for (Lanes& u : w.uniform) u.fill(0), u.known = 0;
  }
  for (bool running = true; running;) {
    running = false;
    bool moved = false;
    for (WarpState& w : warps) {
      if (w.waits_at >= 0 || w.paths.empty()) continue;
      moved = true;
      if (!run_warp(w))
        return Error{Exit::kFailed,
                     fmt::format("CTA {} did not end within {} warp-instructions", cta, launch.max_steps)};
    }
    // Warps that have ended no longer count at barriers.
    uint32_t ended = 0;
    for (const WarpState& w : warps) ended += w.paths.empty() && w.parked.empty() ? 32 : 0;
    const uint32_t all = 32 * warp_count;
    for (size_t b = 0; b < barriers.size(); ++b) {
      const bool whole = barriers[b].expected == all;
      if (!barriers[b].arrived || barriers[b].arrived + (whole ? ended : 0) < barriers[b].expected) continue;
      barriers[b].arrived = 0;
      for (WarpState& w : warps) {
        if (w.waits_at != static_cast<int>(b)) continue;
        w.waits_at = -1;
        w.votes = barriers[b].votes;
        w.paths.insert(w.paths.end(), w.parked.begin(), w.parked.end());
        w.parked.clear();
        moved = true;
      }
      barriers[b].votes = {};
    }
    for (const WarpState& w : warps) running |= !w.paths.empty() || !w.parked.empty();
    // A warp that was stopped reaches no barrier: the others stop there.
    if (running && !moved &&
        std::any_of(warps.begin(), warps.end(), [&](const WarpState& w) { return w.executed >= most_of_warp; }))
      break;
    if (running && !moved)
      return Error{Exit::kFailed, fmt::format("CTA {} waits at a barrier that not all of its warps reach", cta)};
  }
  CtaStream out;
  out.cta = cta;
  for (WarpState& w : warps) out.warps.push_back(std::move(w.stream));
  return out;
}

}  // namespace roofgen::sass

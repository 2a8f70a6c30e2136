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
void Interpreter::give_work(uint64_t next_work) { state_->launch.next_work = next_work; }
uint64_t Interpreter::leader(uint64_t cta) const { return cta - (state_->pairs ? cta % state_->launch.grid.x % 2 : 0); }
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

/// The lanes that wait for `wanted` go on: together in a collective part, otherwise each after its WARPSYNC.
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

/// BRX: each lane goes to the address in its register.
void Interpreter::State::branch_indexed(WarpState& w, const Instruction& i, uint32_t index, uint32_t mask) {
  Path& path = w.paths.back();
  const uint32_t next = index + 1, left = guarded(w, i, mask);
  Lanes to;
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
    case Action::kBrx: branch_indexed(w, i, index, mask); return;
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
  if (launch.next_work && answer_places.size() > known_places.size()) {
    known_places = answer_places;
    doubts = before;
    out = run_once(cta);
  }
  if (out) spend(Cost::kInterpreted, out->instructions());
  for (const auto& [line, w] : written) written_by_others[line] |= w.is_written;
  return out;
}

/// In units of 32 columns: takes as many as `value`, a power of 2 aligned to itself, where the first are free, and
/// returns the place; or keeps those in `value`, the complement of what goes back.
uint32_t Interpreter::State::hold_tensor_units(bool takes, uint32_t value) {
  constexpr uint32_t kUnits = 16;
  if (!takes) tensor_units &= value;
  if (!takes || value == 0 || value > kUnits) return 0;
  const uint32_t units = (1u << value) - 1;
  uint32_t at = 0;
  while (at + value < kUnits && tensor_units >> at & units) at += value;
  tensor_units |= units << at;
  tensor_columns = std::max(tensor_columns, 32u * static_cast<uint32_t>(std::popcount(tensor_units)));
  return at;
}

Result<CtaStream> Interpreter::State::run_once(uint64_t cta) {
  written.clear();
  untouched_line = kNoLine;
  reads_back = false;
  undecided.clear();
  answer_places.clear();
  tensor_units = tensor_columns = 0;
  cta_number = cta;
  cta_x = static_cast<uint32_t>(cta % launch.grid.x);
  cta_y = static_cast<uint32_t>(cta / launch.grid.x % launch.grid.y);
  cta_z = static_cast<uint32_t>(cta / launch.grid.x / launch.grid.y);
  const auto threads = static_cast<uint32_t>(launch.block.count());
  const uint32_t warp_count = (threads + 31) / 32;
  // Addresses of shared memory begin after the part that the system reserves (1 KiB at most).
  const size_t shared_bytes = size_t{256} << 10;
  shared.assign(shared_bytes, std::byte{0});
  shared_known.assign(shared_bytes, 0);
  if (is_newest()) std::memset(shared_known.data(), 1, kSystemBytes);
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
  out.tensor_columns = tensor_columns;
  for (WarpState& w : warps) out.warps.push_back(std::move(w.stream));
  return out;
}

}  // namespace roofgen::sass

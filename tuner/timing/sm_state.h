// The state of the event model of an SM: facts about instructions, warps, barriers, phases, copies. Only sm_model.cpp
// includes it.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>

#include "tuner/timing/instruction_cache.h"
#include "tuner/timing/l1_cache.h"
#include "tuner/timing/sm_model.h"

namespace roofgen::timing {
namespace {

using sass::Action;
using sass::Instruction;
using sass::Pipe;

constexpr double kNever = std::numeric_limits<double>::infinity();
/// What a warp waits for besides a barrier of its CTA, whose numbers are below 16 (Warp::waits_at).
constexpr int kAtPhase = 16, kAtProducts = 17, kAtCluster = 18;
/// Bytes of a tensor copy that are requested and stored together.
constexpr uint32_t kPieceBytes = 1024;

/// The static facts of an instruction that the loop below needs.
struct Facts {
  uint8_t pipe = 0, wait_mask = 0, write_barrier = 7, read_barrier = 7;
  float stall = 1, interval = 1, latency = 0;
  Action action = Action::kOpaque;
  Stall cause = Stall::kFixed;  ///< of a wait for its result
  bool is_branch = false, is_memory = false, reads_device = false, writes_device = false, is_shared = false,
       bypasses_l1 = false, arrives_only = false, atomic = false;
  bool is_product = false, ends_group = false;  ///< of a warpgroup; with it, its group is complete
  float operand_cycles = 0;                     ///< of shared memory, for one warp's part of a product
  int8_t groups_left = -1;                      ///< of a WARPGROUP.DEPBAR
  int8_t depbar = -1;                           ///< scoreboard of a DEPBAR.LE
  uint8_t depbar_left = 0;
};

/// Whether a product is the last one of its group: "gsb0" behind its operands.
bool has_group(const Instruction& i) {
  return i.count > 0 && i.operands[i.count - 1u].kind == sass::Operand::Kind::kOther;
}

/// Bytes of shared memory that one warp's quarter of a product reads: of B, which the four warps of the warpgroup
/// share, and of A, whose rows are its own, unless they are in registers.
double operand_bytes(const Instruction& i) {
  if (!i.matrix_n) return 0;
  const double k_bytes = 32;  // of a row, in every format
  const bool a_in_registers = i.sources() > 0 && i.source(0).kind == sass::Operand::Kind::kRegister;
  return k_bytes * (i.matrix_n + (a_in_registers ? 0 : 64)) / 4;
}

std::vector<Facts> facts_of(const Machine& m, const sass::Code& code) {
  std::vector<Facts> out;
  out.reserve(code.instructions.size());
  for (const Instruction& i : code.instructions) {
    Facts f;
    f.pipe = static_cast<uint8_t>(i.opcode->pipe);
    f.action = i.opcode->action;
    f.wait_mask = i.control.wait_mask;
    f.write_barrier = i.control.write_barrier;
    f.read_barrier = i.control.read_barrier;
    f.stall = static_cast<float>(std::max<int>(1, i.control.stall));
    f.interval = static_cast<float>(m.interval[f.pipe]);
    if (i.opcode->pipe == Pipe::kTensor) f.interval = static_cast<float>(tensor_cycles(m, i));
    if (f.action == Action::kProduct) {
      f.is_product = true;
      f.ends_group = has_group(i);
      f.operand_cycles = static_cast<float>(operand_bytes(i) / m.shared_bytes_per_cycle);
    }
    if (f.action == Action::kWarpgroup && i.spelling.find("DEPBAR") != std::string::npos) {
      f.groups_left = 0;
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == sass::Operand::Kind::kImmediate)
          f.groups_left = static_cast<int8_t>(i.operands[k].value);
    }
    if (f.action == Action::kSetMaxReg) f.stall = std::max(f.stall, static_cast<float>(m.register_cycles));
    if (i.has(sass::kWide | sass::kHi) && i.opcode->action == Action::kImad) f.interval *= 2;
    if (i.opcode->pipe == Pipe::kXu) {
      const bool special = f.action == Action::kS2r;
      f.latency = static_cast<float>(special ? m.special_register_latency : m.xu_latency);
      if (special) f.interval = 4;
      f.cause = Stall::kSpecial;
    }
    if (i.opcode->pipe == Pipe::kFp64) f.cause = Stall::kPipe, f.latency = f.interval + 6;
    f.is_branch = i.opcode->pipe == Pipe::kBranch;
    switch (f.action) {
      case Action::kLds:
      case Action::kSts:
      case Action::kAtoms:
      case Action::kLdsm:
      case Action::kStsm: f.is_shared = true, f.cause = Stall::kShared; break;
      case Action::kShfl: f.is_shared = true, f.cause = Stall::kShared; break;
      case Action::kLdg: f.reads_device = true, f.cause = Stall::kGlobal; break;
      case Action::kAtomg:
      case Action::kRed: f.writes_device = f.atomic = f.bypasses_l1 = true, f.cause = Stall::kAtomic; break;
      case Action::kStg: f.writes_device = true, f.cause = Stall::kGlobal; break;
      case Action::kLdl: f.reads_device = true, f.cause = Stall::kLocal; break;
      case Action::kStl: f.writes_device = true, f.cause = Stall::kLocal; break;
      case Action::kLdgsts: f.is_shared = f.reads_device = true, f.cause = Stall::kCopies; break;
      default: break;
    }
    f.is_memory = f.is_shared || f.reads_device || f.writes_device;
    f.arrives_only = i.has(sass::kArrive);
    if (i.has(sass::kBypass) || i.spelling.find("STRONG") != std::string::npos) f.bypasses_l1 = true;
    if (f.action == Action::kDepbar) {
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == sass::Operand::Kind::kScoreboard)
          f.depbar = static_cast<int8_t>(i.operands[k].index);
        else if (i.operands[k].kind == sass::Operand::Kind::kImmediate)
          f.depbar_left = static_cast<uint8_t>(i.operands[k].value);
    }
    if (f.action == Action::kLdc && i.opcode->pipe == Pipe::kLsu)
      f.latency = static_cast<float>(m.shared_latency), f.cause = Stall::kFixed;
    out.push_back(f);
  }
  return out;
}

struct Scoreboard {
  double free_at = 0;
  uint32_t producer = 0;
  Stall cause = Stall::kFixed;
};

struct Warp {
  const sass::WarpStream* stream = nullptr;
  size_t next = 0;
  int cta = 0, scheduler = 0;
  uint64_t age = 0;
  double begin = 0;
  double ready = 0;  ///< earliest issue by its own state
  double last_issue = 0;
  double own_ready = 0;           ///< by the stall count alone
  Stall why = Stall::kFixed;      ///< what `ready` waits for
  Stall own_why = Stall::kFixed;  ///< what `own_ready` waits for
  uint32_t producer = ~0u, last_index = 0;
  int waits_at = -1;  ///< the number of the barrier of its CTA
  std::array<Scoreboard, 6> scoreboards;
  double copies_done = 0;  ///< of those since the last commit
  uint32_t copies_producer = ~0u;
  std::deque<std::pair<double, uint32_t>> groups;  ///< committed groups of copies
  /// Products that have not ended, by group; the last group is open until a product completes it.
  std::deque<int> products;
  bool group_is_open = false;
  size_t cluster_waits = 0;
  uint32_t waits_for = 0, phase = 0;     ///< at an mbarrier: which, and the number of the phase; groups left: waits_for
  std::map<uint32_t, uint32_t> arrived;  ///< by mbarrier: the phase of its last arrival
};

/// A barrier of a CTA, by the warps that have arrived and those that have to.
struct Barrier {
  size_t arrived = 0, wanted = 0;
};

/// An mbarrier: its phase is complete with all arrivals, all expected bytes and the end of all copies that count at it.
struct Phases {
  uint32_t expected = 0, complete = 0;
  int64_t pending = 0, bytes = 0;
  int copies = 0;
};

struct Cta {
  const sass::CtaStream* stream = nullptr;
  int live = 0;
  double begin = 0;
  std::vector<int> warps;
  std::array<Barrier, 16> barriers;
  std::map<uint32_t, Phases> phases;
  size_t at_cluster = 0;        ///< arrivals of warps at the cluster's barrier
  double cluster_released = 0;  ///< the last time that all were there
};

/// A copy to shared memory in the tensor copy engine.
struct Copy {
  int cta = 0;
  uint32_t barrier = 0, bytes = 0, sectors = 0, ctas = 1, index = 0;
  uint32_t requested = 0, stored = 0;  ///< bytes
};

/// What happens at a time that is known: the next product of a scheduler begins, one ends, the copy engine makes its
/// next request, a piece of a copy arrives, an arrival at an mbarrier gets there.
struct Event {
  enum class Kind : uint8_t { kProduct, kProductEnd, kRequest, kPiece, kArrival };
  double time = 0;
  Kind kind = Kind::kProduct;
  int which = 0;  ///< scheduler, warp, copy or CTA
  uint32_t barrier = 0, count = 0, bytes = 0;
  uint64_t order = 0;
  bool operator<(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
};

}  // namespace
}  // namespace roofgen::timing

#include "tuner/timing/instruction_facts.h"

#include <algorithm>

namespace roofgen::timing {

using sass::Action;
using sass::Instruction;
using sass::Pipe;

double tensor_cycles(const Machine& m, const Instruction& i) {
  double rate = m.tensor_f16;
  if (i.opcode->action == Action::kProduct) {
    rate = i.spelling.starts_with("QGMMA")                ? m.product_fp8
           : i.spelling.starts_with("IGMMA")              ? m.product_int8
           : i.spelling.find("TF32") != std::string::npos ? m.product_tf32
                                                          : m.product_f16;
    return rate > 0 && i.matrix_flops ? i.matrix_flops / rate : 8;
  }
  if (i.spelling.find("TF32") != std::string::npos) rate = m.tensor_tf32;
  if (i.spelling.starts_with("IMMA")) rate = m.tensor_int8;
  if (i.spelling.starts_with("DMMA")) rate = m.tensor_fp64;
  if (i.spelling.starts_with("QMMA"))
    rate = i.spelling.find(".SF") != std::string::npos ? m.tensor_mxfp8 : m.tensor_fp8;
  if (i.spelling.starts_with("OMMA")) rate = m.tensor_fp4;
  return rate > 0 && i.matrix_flops ? i.matrix_flops / rate : 8;
}

namespace {

/// K of a tcgen05 product, which has always 32 bytes.
int depth_of(const Instruction& i) {
  return i.spelling.starts_with("UTCO") ? 64 : i.spelling.starts_with("UTCH") ? 16 : 32;
}

/// Cycles for a column of 128 rows.
double column_cycles(const Machine& m, const Instruction& i) {
  const int k = depth_of(i);
  const double rate = k == 64                          ? m.matrix_fp4
                      : k == 16                        ? m.matrix_f16
                      : i.spelling.starts_with("UTCI") ? m.matrix_int8
                                                       : m.matrix_fp8;
  return rate > 0 ? 128 * 2 * k / rate : 0.5;
}

/// Whether a product is the last one of its group: "gsb0" after its operands.
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

}  // namespace

MatrixCycles matrix_cycles(const Machine& m, const Facts& f, const sass::Sync& work) {
  constexpr double kBytesOfRow = 32;  // of A and of B: the K of one product, in every format
  MatrixCycles out;
  if (work.rows == 0) {
    out.interval = out.read = work.bytes / m.shared_bytes_per_cycle;
    out.latency = m.matrix_latency + out.read;
    return out;
  }
  const bool pair = work.ctas == 2;
  // 64 rows of one CTA take as long as 128. Each CTA of a pair has half of the rows and reads half of B.
  out.math = work.columns * f.column_cycles * (pair ? work.rows / 256.0 : 1);
  const double read_a = work.a_in_tensor_memory ? 0 : kBytesOfRow * work.rows / work.ctas / m.shared_bytes_per_cycle;
  out.read = read_a + kBytesOfRow * work.columns / work.ctas / m.shared_bytes_per_cycle;
  out.flops = 2.0 * work.rows / work.ctas * work.columns * f.depth;
  out.interval = std::max({out.math, out.read, pair ? m.pair_least_cycles : 0});
  out.latency = (pair ? m.pair_latency : m.matrix_latency) + read_a + out.math;
  return out;
}

double copy_cycles(const Machine& m, const sass::Sync& load) {
  return std::max(load.rows * m.copy_row_cycles + load.pages * m.copy_page_cycles,
                  load.bytes * load.ctas / m.copy_bytes_per_cycle);
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
    if (f.action == Action::kMatrix || f.action == Action::kMatrixCopy) {
      f.interval = 0;  // the unit works on its own
      if (f.action == Action::kMatrix)
        f.column_cycles = static_cast<float>(column_cycles(m, i)), f.depth = static_cast<float>(depth_of(i));
    }
    if (i.opcode->pipe == Pipe::kTensorMemory) {
      f.interval = static_cast<float>(32 * i.bytes * m.schedulers / m.tensor_memory_bytes_per_cycle);
      f.latency = static_cast<float>(m.tensor_memory_latency + f.interval);
      f.cause = Stall::kTensorMemory;
    }
    if (f.action == Action::kWarpgroup && i.spelling.find("DEPBAR") != std::string::npos) {
      f.groups_left = 0;
      for (size_t k = 0; k < i.count; ++k)
        if (i.operands[k].kind == sass::Operand::Kind::kImmediate)
          f.groups_left = static_cast<int8_t>(i.operands[k].value);
    }
    if (f.action == Action::kSyncs && i.spelling.find("PHASECHK") != std::string::npos)
      f.latency = static_cast<float>(m.try_wait_cycles), f.cause = Stall::kPhase;
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

}  // namespace roofgen::timing

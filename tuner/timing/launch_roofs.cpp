#include "tuner/timing/launch_roofs.h"

#include <algorithm>
#include <utility>

namespace roofgen::timing {

using sass::Action;
using sass::Pipe;

double tensor_unit_cycles(const Machine& m, const sass::Code& code, const LaunchTime& time, double scale) {
  double sum = 0;
  for (size_t i = 0; i < time.sm.instructions.size(); ++i) {
    const sass::Opcode& opcode = *code.instructions[i].opcode;
    const bool newest = opcode.action == Action::kProduct || opcode.action == Action::kMatrix;
    if (opcode.pipe == Pipe::kTensor) sum += time.sm.instructions[i].pipe * (newest ? 1 : m.tensor_share);
  }
  return sum * scale * time.ctas / time.simulated_ctas / m.sms / m.schedulers;
}

void find_roof(const Machine& m, const sass::Code& code, double copy_rate, double per_cta, LaunchTime& out) {
  const StreamCounts& c = out.counts;
  const double chip = m.sms * m.clock_hz;
  double tensor = 0, xu = 0, flops = 0, operands = 0, tensor_memory = 0;
  for (size_t i = 0; i < out.sm.instructions.size(); ++i) {
    const sass::Instruction& inst = code.instructions[i];
    const InstructionTime& one = out.sm.instructions[i];
    const auto times = static_cast<double>(one.issues);
    if (inst.opcode->action == Action::kMatrix)
      tensor += one.pipe, flops += one.flops, operands += one.shared;
    else if (inst.opcode->pipe == Pipe::kTensor)
      tensor += times * tensor_cycles(m, inst), flops += times * inst.matrix_flops;
    if (inst.opcode->pipe == Pipe::kXu) xu += times * m.interval[static_cast<size_t>(Pipe::kXu)];
    if (inst.opcode->pipe == Pipe::kTensorMemory) tensor_memory += one.pipe;
  }
  out.tensor_flops = flops * per_cta;
  if (tensor > 0) out.tensor_peak_flops = flops / tensor * m.schedulers * chip;
  const double wavefronts = c.shared_load_wavefronts + c.shared_store_wavefronts;
  const std::pair<const char*, double> roofs[] = {
      {"FP32", c.fp32_thread_instructions / 32 * m.interval[static_cast<size_t>(Pipe::kFma)] / m.schedulers / chip},
      {"tensor", tensor * per_cta / m.schedulers / chip},
      {"SFU", xu * per_cta / m.schedulers / chip},
      {"shared memory", (wavefronts * m.cycles_per_wavefront + operands * per_cta) / chip},
      {"tensor memory", tensor_memory * per_cta / m.schedulers / chip},
      {"issue", c.warp_instructions / m.schedulers / chip},
      {"L2", (32 * (c.l2_read_sectors - c.tile_sectors + c.l2_write_sectors) / m.l2_total_bytes_per_cycle +
              32 * c.tile_sectors / copy_rate) /
                 m.clock_hz},
      {"DRAM", (c.dram_read_bytes + c.dram_write_bytes) / (m.dram_bytes_per_cycle * m.clock_hz)}};
  for (const auto& [name, seconds] : roofs)
    if (seconds > out.roofline_s) out.roofline_s = seconds, out.roof = name;
  out.roofline_s += m.launch_s;
}

}  // namespace roofgen::timing


#include <fmt/format.h>

#include "roofline/roofs.h"
#include "tuner/ceilings/ceilings.h"

namespace roofgen {

std::vector<Warning> above_measured_ceilings(const Device& device, const MeasuredWork& work) {
  std::vector<Warning> out;
  if (!(work.seconds > 0)) return out;
  const auto measured = [&](const std::string& cell) {
    const auto at = device.cells.find(cell);
    // Measured on this GPU.
    return at != device.cells.end() && at->second.origin == Origin::kMeasured &&
                   at->second.source.starts_with(kOwnSource)
               ? at->second.value
               : 0.0;
  };
  const auto hold = [&](double rate, double ceiling, const char* unit, const std::string& cell, const char* field) {
    if (ceiling > 0 && rate > kCeilingSlack * ceiling)
      out.push_back(
          {"R12",
           fmt::format("{}: {:.5g} {} is above the measured {} ({:.5g}): the ceiling, the work or the time is wrong",
                       work.name, rate, unit, cell, ceiling),
           field});
  };
  hold(1e-9 * work.dram_bytes / work.seconds, measured("dram_sustained_gb_s"), "GB/s", "dram_sustained_gb_s", "time");
  // Per clock, so that a faster clock than the ceiling's is no finding.
  const std::string rate = rate_cell(MatrixInstruction::kMmaSync, work.kind);
  if (work.sm_mhz > 0)
    hold(work.mma_flops / (work.seconds * 1e6 * work.sm_mhz * device.at("sms")), measured(rate), "FLOP/clk/SM", rate,
         "achieved");
  return out;
}

}  // namespace roofgen

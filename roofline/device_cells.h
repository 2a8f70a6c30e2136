// The table of all device cells: names, units, and whether analyses or the tuner require them. The loader checks files
// against it; docs/use/devices.md explains the names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "roofline/device.h"

namespace roofgen {

/// Whether a cell is optional, required by every analysis, or also required by the tuner's model.
enum class Need { kNobody, kAnalysis, kTuning };

struct CellSpec {
  std::string_view name, unit;
  Need need = Need::kNobody;
  bool integer = false;  ///< the value is a whole number
  bool zero_is_fine = false;
};

/// All known cells, sorted by name.
std::span<const CellSpec> cell_specs();
/// nullptr for an unknown name.
const CellSpec* cell_spec(std::string_view name);

/// Prefixes of the cells with the rates of each family of matrix instructions: "wgmma_flops_per_clk_bf16".
inline constexpr std::string_view kTensorUnits[] = {"mma_sync", "wgmma", "tcgen05"};

/// The scalars of the time models (docs/internals/sm-model.md). A profile may have them fitted, of the origin model.
inline constexpr std::string_view kTimeScalars[] = {
    "smem_wavefront_cycles", "smem_instruction_cycles", "memory_queue",           "branch_cycles",
    "cta_start_cycles",      "fetch_latency",           "instruction_cache_bytes"};

/// How a dense peak follows from SMs, FLOP per clock and SM, and a clock.
struct PeakParts {
  double sms = 0, flops_per_clk_sm = 0, mhz = 0;
  double tflops() const { return sms * flops_per_clk_sm * mhz * 1e-6; }
};
/// The factors of `peak_<kind>_tflops`, with the FLOP rate of the fastest unit for that kind (docs/use/devices.md has
/// the rules). nullopt when the device lacks one of the cells.
std::optional<PeakParts> peak_parts(const Device& device, std::string_view peak_cell);

}  // namespace roofgen

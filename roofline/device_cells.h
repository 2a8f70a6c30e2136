// What each cell of a device is: the one table of names, units and who needs them. The loader checks
// files against it, and docs/devices.md explains the names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "roofline/device.h"

namespace roofgen {

/// Who cannot do without a cell: nobody, every analysis, or (also) the tuner's model.
enum class Need { kNobody, kAnalysis, kTuning };

struct CellSpec {
  std::string_view name, unit;
  Need need = Need::kNobody;
  bool integer = false;  ///< the value is a whole number
  bool zero_is_fine = false;
};

/// All known cells, sorted by name.
std::span<const CellSpec> cell_specs();
/// nullptr when there is no such cell.
const CellSpec* cell_spec(std::string_view name);

/// Prefixes of the cells with the rates of each family of matrix instructions: "wgmma_flops_per_clk_bf16".
inline constexpr std::string_view kTensorUnits[] = {"mma_sync", "wgmma", "tcgen05"};

/// How a dense peak follows from SMs, FLOP per clock and SM, and a clock.
struct PeakParts {
  double sms = 0, flops_per_clk_sm = 0, mhz = 0;
  double tflops() const { return sms * flops_per_clk_sm * mhz * 1e-6; }
};
/// The parts of `peak_<kind>_tflops` (FLOP/s of the unit that reaches it; docs/devices.md has the
/// rules). nullopt when the device lacks a cell they need.
std::optional<PeakParts> peak_parts(const Device& device, std::string_view peak_cell);

}  // namespace roofgen

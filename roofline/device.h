// A device as data: devices/<name>.json, with inheritance by architecture. Each number is a cell with a unit, an origin
// and a source (docs/use/devices.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/expr/expr.h"
#include "generator/generate.h"
#include "roofgen/driver_facts.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

struct Cell {
  double value = 0;
  std::string unit;
  Origin origin = Origin::kDatasheet;
  std::string source;
};

struct Device {
  std::string name;   ///< catalogue name, "h200-sxm"; for a GPU outside the catalogue, the driver's name
  std::string title;  ///< display name, "NVIDIA H200 SXM 141 GB"
  std::string arch;   ///< "sm_90"
  /// Kernels may use the instructions of this architecture alone ("sm_90a"), not only the portable ones of "sm_90".
  bool arch_specific = true;
  bool family_specific = true;            ///< or those of its family ("sm_100f"), which are fewer
  std::vector<std::string> driver_names;  ///< the names that CUDA drivers report for this product, exactly
  std::map<std::string, Cell> cells;

  bool has(const std::string& cell) const { return cells.count(cell) != 0; }
  /// Asserts that the cell exists. load_device guarantees the cells of every analysis, `tunable` those of the tuner;
  /// use `has` before reading any other cell.
  double at(const std::string& cell) const;
  int64_t integer(const std::string& cell) const { return static_cast<int64_t>(at(cell)); }
};

/// Kernels use only the instructions of code for `arch`, "sm_90a", "sm_100f" or "sm_90"; empty: all of the device.
void limit_to(Device& device, const std::string& arch);

/// Loads devices/<name>.json and the files that it extends. Checks every cell: name, unit, source, and dense peaks
/// against SMs, rates and clocks. Unknown name: Exit::kUsage with the nearest name. Invalid file: Exit::kFailed with
/// the cell and its line.
Result<Device> load_device(const DataFiles& files, const std::string& name);
std::vector<std::string> device_names(const DataFiles& files);  ///< SKUs only, not architectures

/// Whether the tuner's model and the occupancy rules can run: sm_80 or newer, with every cell that they read. Otherwise
/// Exit::kUnavailable with the missing cells; such a device supports analysis only.
Result<void> tunable(const Device& device);

/// Replaces cells of a device with measured ones. `text` is a device file ("name" equal to the device's, no "extends")
/// whose cells all have the origin "measured", or "model" where they are scalars of the time models; `file` is its name
/// in messages. An error leaves the device unchanged. A measured rate may be lower than the stated rate, but at most 2
/// % higher.
Result<void> overlay(Device& device, std::string text, std::string file);

/// The values of `device.*` in search-space constraints, without limits that the device lacks.
expr::Map limits(const Device& device);
/// The same as part of a key, and all cells: measured ones may replace those of the catalogue.
std::string limits_text(const Device& device);
std::string cells_text(const Device& device);

/// Resident CTAs per SM and the resource that limits them.
struct Occupancy {
  int ctas_per_sm = 0;
  int warps_per_sm = 0;
  double fraction = 0;     ///< resident warps / the SM's maximum
  std::string limited_by;  ///< "registers", "shared memory", "threads", "CTAs"
};
/// The rules of the CUDA occupancy calculator: warps get registers in units of 256, CTAs get shared memory in units of
/// 128 bytes, plus 1 KiB per CTA reserved by the system.
Occupancy occupancy(const Device& device, int registers, int64_t smem_bytes, int threads);
Occupancy occupancy(const Device& device, const Binary& binary, const Launch& launch);

/// Selects the catalogue entry with exactly this driver name and bus width (of several, the one with the nearest memory
/// size) and replaces its cells with the driver's values. The die does not decide: an H200 is not an H100. Any other
/// GPU is composed from devices/sm_<cc>.json (for GeForce from sm_<cc>_geforce, where it exists): bandwidth from memory
/// clock and bus, peaks from SMs, rates and clock, all of origin model, with the driver's name. Exit::kUnavailable when
/// neither is possible.
Result<Device> match_device(const DataFiles& files, const DriverFacts& facts);

}  // namespace roofgen

// A device as data: devices/<name>.json, with inheritance by architecture. Each number is a cell
// with a unit, an origin and a source (docs/devices.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/expr/expr.h"
#include "generator/generate.h"
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
  std::string name;   ///< catalogue name, "h200-sxm"; of a GPU outside the catalogue, the driver's name
  std::string title;  ///< for people, "NVIDIA H200 SXM 141 GB"
  std::string arch;   ///< "sm_90"
  std::vector<std::string> driver_names;  ///< exact names CUDA drivers give this product
  std::map<std::string, Cell> cells;

  bool has(const std::string& cell) const { return cells.count(cell) != 0; }
  /// Asserts that it exists. load_device checks what every analysis needs, `tunable` what the tuner needs;
  /// ask `has` for any other cell.
  double at(const std::string& cell) const;
  int64_t integer(const std::string& cell) const { return static_cast<int64_t>(at(cell)); }
};

/// Loads devices/<name>.json and what it extends, checked cell by cell: names, units, sources, dense
/// peaks that follow from SMs, rates and clocks. Unknown name: Exit::kUsage with the nearest one.
/// A wrong file: Exit::kFailed with the cell and its line.
Result<Device> load_device(const DataFiles& files, const std::string& name);
std::vector<std::string> device_names(const DataFiles& files);  ///< SKUs only, not architectures

/// Whether the tuner's model and the occupancy rules have what they need: sm_80 or newer and every
/// cell they read. Otherwise Exit::kUnavailable naming what is missing; such a device is for analysis.
Result<void> tunable(const Device& device);

/// Lays measured cells over a device. `text` is a device file ("name" as the device's, no "extends")
/// whose cells all have the origin "measured"; `file` is its name in messages. Nothing is changed on
/// error. A measured rate may lie below what the device states, but not more than 2 % above it.
Result<void> overlay(Device& device, std::string text, std::string file);

/// What search-space constraints see as `device.*`; a limit the device does not have is left out.
expr::Map limits(const Device& device);

/// CTAs of one SM that are resident at once, and what stops there being more.
struct Occupancy {
  int ctas_per_sm = 0;
  int warps_per_sm = 0;
  double fraction = 0;     ///< resident warps / the SM's maximum
  std::string limited_by;  ///< "registers", "shared memory", "threads", "CTAs"
};
/// The rules of the CUDA occupancy calculator: registers are given to warps in units of 256,
/// shared memory in units of 128 bytes with 1 KiB a CTA reserved by the system.
Occupancy occupancy(const Device& device, int registers, int64_t smem_bytes, int threads);

}  // namespace roofgen

// The profile of one GPU: measured cells that replace those of its device (docs/use/devices.md, `overlay`).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/outputs.h"
#include "roofline/device.h"
#include "runtime/executor.h"
#include "tuner/ceilings/ceilings.h"

namespace roofgen {

/// A device file with only these cells.
std::string cells_json(const std::string& device, const std::map<std::string, Cell>& cells);
/// The whole profile: cells, provenance, and every ceiling with its measurement.
std::string profile_json(const CeilingsReport& report);

/// `<data>/profiles/<uuid>.json`; empty without a data folder, or if the UUID is no valid file name.
std::string profile_path(const std::string& data, const std::string& uuid);

/// The result of storing a report.
enum class Kept { kWritten, kPartialKept, kNothingMeasured };
/// Replaces the profile atomically; the older one becomes `<path>.previous`. An incomplete report never replaces a
/// complete one (kPartialKept).
Result<Kept> keep_profile(const CeilingsReport& report, const std::string& path, const Outputs& outputs);

/// Applies the profile of this GPU to its device, if there is one. Returns a warning when it was not applied (invalid,
/// of another GPU or device) or was made with another driver; else nothing.
std::optional<std::string> apply_profile(Device& device, const GpuIdentity& gpu, const std::string& path);
/// The same for a file that the user names: it must exist and be of this device, but may be of any GPU.
Result<void> apply_profile_file(Device& device, const std::string& path);

}  // namespace roofgen

// The profile of one GPU: a file that lays measured cells over its device (docs/devices.md, `overlay`).
#pragma once

#include <map>
#include <optional>
#include <string>

#include "roofline/device.h"
#include "runtime/executor.h"
#include "tuner/ceilings/ceilings.h"

namespace roofgen {

/// A device file of these cells alone.
std::string cells_json(const std::string& device, const std::map<std::string, Cell>& cells);
/// The whole profile: cells, provenance, and every ceiling with how it was measured.
std::string profile_json(const CeilingsReport& report);

/// `<data>/profiles/<uuid>.json`; empty when there is no data folder or the UUID is no file name.
std::string profile_path(const std::string& data, const std::string& uuid);

/// What became of a report.
enum class Kept { kWritten, kPartialKept, kNothingMeasured };
/// Writes the profile whole or not at all; one that was there becomes `<path>.previous`. A report that is not
/// complete never replaces one that is (kPartialKept: the old one stays).
Result<Kept> keep_profile(const CeilingsReport& report, const std::string& path);

/// Lays the profile of this GPU over its device, if there is one. Returns a line when it was not laid (broken, of
/// another GPU or device) or was made under another driver; nothing when all is well or there is none.
std::optional<std::string> apply_profile(Device& device, const GpuIdentity& gpu, const std::string& path);
/// The same for a file that was asked for: it must be there and be of this device, whatever GPU it was made on.
Result<void> apply_profile_file(Device& device, const std::string& path);

}  // namespace roofgen

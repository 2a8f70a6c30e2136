// One device file as text, checked on its own. Private to the loader.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "roofline/device.h"

namespace roofgen {

struct DeviceFile {
  JsonFile json;  ///< for places in it
  std::string name, title, extends;
  std::vector<std::string> driver_names;
  std::map<std::string, Cell> cells;
};

/// Parses and checks a file: its members, and each cell against the table of known cells. Errors name
/// the cell and the place.
Result<DeviceFile> parse_device_file(std::string text, std::string file);

/// Reads devices/<name>.json, whose "name" must be its file's.
Result<DeviceFile> read_device_file(const DataFiles& files, const std::string& name);

/// The checks that need all cells together: what must not exceed what, and that each stated dense peak
/// follows from its rates. `places` are the files the cells came from, for the line of the message.
Result<void> check_consistency(const Device& device, const std::vector<const JsonFile*>& places);

/// The checks of measurements laid over a device, `before` and `after`: rates that the device states bound
/// them, with 2 % for clocks that were read a little off; a figure of origin model bounds nothing.
Result<void> check_measured(const Device& before, const Device& after, const DeviceFile& profile);

}  // namespace roofgen

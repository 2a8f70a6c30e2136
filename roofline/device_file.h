// Parses and checks a single device file. Private to the loader.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "roofline/device.h"

namespace roofgen {

struct DeviceFile {
  JsonFile json;  ///< for positions in the file
  std::string name, title, extends;
  std::vector<std::string> driver_names;
  std::map<std::string, Cell> cells;
};

/// Parses a file and checks its members, and each cell against the table of known cells. Errors name the cell and its
/// position.
Result<DeviceFile> parse_device_file(std::string text, std::string file);

/// Reads devices/<name>.json; its "name" must equal the file's name.
Result<DeviceFile> read_device_file(const DataFiles& files, const std::string& name);

/// The checks that need all cells together: upper bounds, and each stated dense peak against its factors. `places` are
/// the files of the cells, for the line numbers in messages.
Result<void> check_consistency(const Device& device, const std::vector<const JsonFile*>& places);

/// Checks measurements against the device `before` and `after` they replaced cells. Stated rates are upper bounds, with
/// 2 % tolerance for clocks that were read slightly wrong; a figure of origin model is no bound.
Result<void> check_measured(const Device& before, const Device& after, const DeviceFile& profile);

}  // namespace roofgen

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// The data files of roofgen (templates/, search_spaces/, devices/), embedded at build time. Files below `--data-dir`
/// take precedence. Names are relative: "search_spaces/attention/fused.json".
class DataFiles {
 public:
  explicit DataFiles(std::vector<std::string> dirs = {});
  /// The text, or an error: no such file, a name that leaves the directory, over 4 MiB.
  Result<std::string> load(std::string_view name) const;
  std::optional<std::string> read(std::string_view name) const;  ///< `load` without the reason
  std::vector<std::string> list(std::string_view prefix) const;  ///< sorted names with this prefix
  std::string origin(
      std::string_view name) const;  ///< for messages: the path of the file, or the name if it is embedded

 private:
  std::vector<std::string> dirs_;
};

/// Stems of the JSON files in a folder ("devices/"), sorted.
std::vector<std::string> json_names(const DataFiles& files, std::string_view folder);

}  // namespace roofgen

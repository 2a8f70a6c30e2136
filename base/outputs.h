// Files that a command writes for its user.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// Replaces what roofgen wrote itself and nobody changed since, and no other file. Files are known by the digests of
/// their bytes, in the file `written` of `home`; a home "" remembers nothing.
class Outputs {
 public:
  Outputs(const std::string& home, bool force) : record_(home.empty() ? "" : home + "/written"), force_(force) {}
  /// Digests of more files that roofgen wrote, perhaps elsewhere.
  void add_own(std::set<std::string> digests) { own_.merge(digests); }

  /// Whether write() may and could, before minutes are spent. Writes nothing.
  Result<void> check(const std::vector<std::string>& paths) const;
  Result<void> write(const std::string& path, std::string_view text) const;
  /// Path -> text: all of them, or none where one may not be written.
  Result<void> write_all(const std::map<std::string, std::string>& files) const;
  /// The file is roofgen's as it is now: others filled it for roofgen.
  void adopt(const std::string& path) const;

 private:
  bool is_own(const std::string& digest) const;
  void remember(std::string_view text) const;

  std::string record_;
  bool force_;
  std::set<std::string> own_;
};

}  // namespace roofgen

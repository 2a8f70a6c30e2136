// The text of the CUDA headers that a source includes. NVRTC gets them in memory under their included names, so that no
// local directory affects the result and their contents are part of its digest.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roofgen {

using Headers = std::vector<std::pair<std::string, std::string>>;  ///< included name, text

class HeaderSet {
 public:
  /// `include_dir` holds cuda_fp16.h and, below cccl/, nv/target. Empty: no known headers.
  explicit HeaderSet(std::string include_dir) : include_dir_(std::move(include_dir)) {}

  /// All headers that `source` may include, directly or indirectly, sorted by name. A superset: conditions are not
  /// evaluated. NVRTC resolves or reports names that are not found. Thread-safe.
  Headers closure(std::string_view source) const;

 private:
  const std::string* load(const std::string& name) const;

  std::string include_dir_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<std::string>> texts_;  ///< null: not found
};

}  // namespace roofgen

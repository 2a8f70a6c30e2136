// The CUDA headers a source includes, as text. NVRTC is given them in memory under the names they
// are included by, so no directory of this machine reaches a result, and their contents can be
// part of its digest.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roofgen {

using Headers = std::vector<std::pair<std::string, std::string>>;  ///< name as included, text

class HeaderSet {
 public:
  /// `include_dir` holds cuda_fp16.h and, below cccl/, nv/target. Empty: no headers are known.
  explicit HeaderSet(std::string include_dir) : include_dir_(std::move(include_dir)) {}

  /// Everything `source` may include, directly or not, sorted by name. A superset: conditions are
  /// not evaluated. Names that are not found are left to NVRTC, which knows some itself and reports
  /// the others. Safe to call from several threads.
  Headers closure(std::string_view source) const;

 private:
  const std::string* load(const std::string& name) const;

  std::string include_dir_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<std::string>> texts_;  ///< null: not found
};

}  // namespace roofgen

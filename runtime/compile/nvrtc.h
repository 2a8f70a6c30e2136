// NVRTC by dlopen: finds the library and compiles source to PTX and CUBIN. Its entry points are declared by hand, so
// that building roofgen needs no CUDA files.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "roofgen/result.h"
#include "runtime/compiler.h"

namespace roofgen {

/// The oldest supported NVRTC. 12.0 has all needed features but crashes under -lineinfo on ordinary kernels (seen with
/// 12.0.140); 12.1 does not.
inline constexpr int kMinNvrtcMajor = 12, kMinNvrtcMinor = 1;

/// The source name passed to NVRTC. Never a real path, since it appears in messages and line tables.
inline constexpr const char* kSourceName = "kernel.cu";

/// One source and all inputs that affect its result.
struct CompileRequest {
  std::string source;
  std::vector<std::string> flags;
  std::vector<std::pair<std::string, std::string>> headers;  ///< included name, text
};

/// NVRTC's result: nvrtcResult (0: success, 6: errors in the source), the whole log, and the available PTX and CUBIN
/// (PTX also when only ptxas failed).
struct CompileReply {
  int status = 0;
  std::string status_name;
  std::string log, ptx, cubin;
};
inline constexpr int kNvrtcOutOfMemory = 1;
inline constexpr int kNvrtcInvalidOption = 5;
inline constexpr int kNvrtcCompilationError = 6;

/// Search locations; `nvrtc_info()` takes them from the environment, tests set them directly.
struct NvrtcSearch {
  std::string chosen;                 ///< file or directory; when set, the only location
  std::string executable_dir;         ///< searched for a private prefix `nvrtc/`, as are three levels above
  std::vector<std::string> toolkits;  ///< CUDA roots, best first
  bool loader_path = true;            ///< also search plain names through the dynamic loader
};
NvrtcSearch nvrtc_search_from_environment();

/// A loaded NVRTC. Copies share the library, which stays loaded until the process ends (unloading NVRTC while its own
/// threads run crashes).
class Nvrtc {
 public:
  static Result<Nvrtc> open(const std::string& path);
  /// Absolute path of the loaded file, even if the dynamic loader chose it.
  const std::string& path() const { return path_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  std::vector<std::string> archs() const;
  /// Content identity of the library: its GNU build ID in hex, empty without one. Two patch releases may have the same
  /// version but different code generators.
  std::string build_id() const;
  CompileReply compile(const CompileRequest& request) const;

 private:
  struct Api;
  std::shared_ptr<const Api> api_;
  std::string path_;
  int major_ = 0, minor_ = 0;
};

/// The first usable NVRTC that compiles for `target`, else the first usable one. `info->searched` receives every
/// attempted name with the reason of its failure.
Result<Nvrtc> find_nvrtc(const NvrtcSearch& search, NvrtcInfo* info, const std::string& target = "");

/// The library of `nvrtc_info(target)`.
const Result<Nvrtc>& nvrtc(const std::string& target = "");

}  // namespace roofgen

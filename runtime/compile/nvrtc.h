// NVRTC by dlopen: finding the library, and one call that turns source into PTX and CUBIN. The few
// entry points are declared by hand, so that nothing of CUDA is needed to build roofgen.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "roofgen/result.h"
#include "runtime/compiler.h"

namespace roofgen {

/// The oldest NVRTC roofgen accepts. 12.0 has all that is needed but crashes under -lineinfo on ordinary
/// kernels (seen with 12.0.140); 12.1 does not.
inline constexpr int kMinNvrtcMajor = 12, kMinNvrtcMinor = 1;

/// The name NVRTC is told the source has. Never a real path: it ends up in messages and line tables.
inline constexpr const char* kSourceName = "kernel.cu";

/// One source and everything that shapes its result.
struct CompileRequest {
  std::string source;
  std::vector<std::string> flags;
  std::vector<std::pair<std::string, std::string>> headers;  ///< name as included, text
};

/// NVRTC's answer: nvrtcResult (0: success, 6: the source has errors), the whole log, and what there is of
/// PTX and CUBIN (PTX is there too when only ptxas failed).
struct CompileReply {
  int status = 0;
  std::string status_name;
  std::string log, ptx, cubin;
};
inline constexpr int kNvrtcOutOfMemory = 1;
inline constexpr int kNvrtcInvalidOption = 5;
inline constexpr int kNvrtcCompilationError = 6;

/// Where to look; made from the environment by `nvrtc_info()`, by hand in tests.
struct NvrtcSearch {
  std::string chosen;                 ///< file or directory; when set it is the only place looked at
  std::string executable_dir;         ///< a private prefix `nvrtc/` is looked for here and up to three levels above
  std::vector<std::string> toolkits;  ///< CUDA roots, best first
  bool loader_path = true;            ///< also plain names, through the dynamic loader
};
NvrtcSearch nvrtc_search_from_environment();

/// A loaded NVRTC. Copies share the library, which stays loaded until the process ends (NVRTC does
/// not survive being unloaded while its own threads run).
class Nvrtc {
 public:
  static Result<Nvrtc> open(const std::string& path);
  /// Absolute path of the loaded file, also when the dynamic loader chose it.
  const std::string& path() const { return path_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  std::vector<std::string> archs() const;
  /// Content identity of the library: its GNU build ID in hex, empty when it has none. Two patch
  /// releases have the same version and different code generators.
  std::string build_id() const;
  CompileReply compile(const CompileRequest& request) const;

 private:
  struct Api;
  std::shared_ptr<const Api> api_;
  std::string path_;
  int major_ = 0, minor_ = 0;
};

/// The first usable NVRTC; every name tried and why it did not do goes into `info->searched`.
Result<Nvrtc> find_nvrtc(const NvrtcSearch& search, NvrtcInfo* info);

/// The library behind `nvrtc_info()`, searched for once per process.
const Result<Nvrtc>& nvrtc();

}  // namespace roofgen

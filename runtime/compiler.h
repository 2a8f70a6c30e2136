// Program -> Binary. The Compiler interface has one production implementation (NVRTC in worker processes) and one for
// tests (a table of recorded results).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// Line of a source: what precedes it, includes only, is precompiled, once for all sources that begin with the same
/// text.
inline constexpr const char* kPrecompiledEnd = "#pragma nv_hdrstop\n";

struct CompileOptions {
  std::string arch = "sm_90";            ///< NVRTC --gpu-architecture; gives PTX and CUBIN in one call
  bool line_info = true;                 ///< source lines, for findings and profiles; the machine code is the same
  std::vector<std::string> extra_flags;  ///< part of the digest
  /// CPU time limit of one candidate; the wall-clock limit is ten times as long, so that a busy machine does not reject
  /// more candidates.
  std::chrono::milliseconds timeout{20000};
  uint64_t memory_limit_bytes = uint64_t{3} << 30;  ///< limit on a worker's address space
  /// Text of the other files that a compilation reads, such as headers of --include-path. Part of the digest, with the
  /// toolkit headers that the text includes. Asked again before a result is cached, in case a file has changed since.
  std::function<std::string()> other_inputs = {};
  /// Directory for the precompiled headers of sources with kPrecompiledEnd (NVRTC 12.8 and newer). Empty: none.
  std::string pch_dir = {};
  int jobs = 0;                                  ///< worker processes; 0 = number of cores
  uint64_t cache_max_bytes = uint64_t{2} << 30;  ///< the least recently used entries are removed first
  /// Started as `<this> __compile-worker`; its main must call compile_worker_main(). Empty: worker_program(), and
  /// without one NVRTC runs in threads of this process, without the limits.
  std::string worker_executable = {};
};

/// One finished compilation, in completion order. `cached`: NVRTC did not run for this result.
struct CompileOutcome {
  size_t index = 0;  ///< position in the list given to compile_all
  Result<Binary> binary;
  bool cached = false;
  double seconds = 0;
  std::string log = {};  ///< NVRTC's complete log
};

/// The advisory by which ptxas says that it dropped `setmaxnreg` or made wgmma wait for each other: the machine code is
/// then another kernel than its template describes. Nothing: there is none.
std::optional<std::string> undone_by_ptxas(const Binary& binary);

class Compiler {
 public:
  virtual ~Compiler() = default;
  /// One line that names the implementation and version ("NVRTC 13.0 at /usr/...").
  virtual std::string description() const = 0;
  /// Content digest of this program's Binary: source, flags, arch, NVRTC version.
  virtual std::string digest(const Program& program) const = 0;
  /// Compiles all programs; NVRTC's is thread-safe, one call at a time. A program without an entry may have any
  /// kernels; its Binary has no register counts. `done` runs on the calling thread after each compilation; returning
  /// false abandons the rest. A time-out, crash or out-of-memory of a worker is an Error of that candidate only.
  virtual void compile_all(const std::vector<const Program*>& programs,
                           const std::function<bool(CompileOutcome)>& done) = 0;
};

/// NVRTC as reported by `roofgen doctor`.
struct NvrtcInfo {
  bool found = false;
  std::string library;  ///< path it was loaded from
  int major = 0, minor = 0;
  std::string include_dir;            ///< directory of the CUDA headers; may be empty
  std::vector<std::string> archs;     ///< from nvrtcGetSupportedArchs: "sm_80", ...
  std::vector<std::string> searched;  ///< every attempted path with dlerror's reason
  std::string place_of_newer;         ///< directory for an NVRTC that serves only the targets that others lack
  bool targets(const std::string& target) const;  ///< "sm_90a": NVRTC lists "sm_90" alone
};
/// The library for a target, searched once for each: the first that has it, else the first of all.
const NvrtcInfo& nvrtc_info(const std::string& target = "");

/// The production compiler: NVRTC in `options.jobs` worker processes, with a content-addressed cache in `cache_dir`
/// (empty: no cache). `warn` receives one line per non-fatal problem (an unwritable cache).
Result<std::unique_ptr<Compiler>> make_nvrtc_compiler(const CompileOptions& options, std::string cache_dir,
                                                      std::function<void(const std::string&)> warn);

/// Entry point of a compile worker: `roofgen __compile-worker` only calls this.
int compile_worker_main();

}  // namespace roofgen

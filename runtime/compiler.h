// Program -> Binary. The Compiler seam has one production implementation (NVRTC in worker
// processes) and one for tests (a table of recorded results).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

struct CompileOptions {
  std::string arch = "sm_90";            ///< NVRTC --gpu-architecture; gives PTX and CUBIN in one call
  std::vector<std::string> extra_flags;  ///< part of the digest
  /// CPU time of one candidate (ten times as long by the clock): a busy machine rejects nothing more.
  std::chrono::milliseconds timeout{20000};
  uint64_t memory_limit_bytes = uint64_t{3} << 30;  ///< address space cap of one worker
  int jobs = 0;                                     ///< worker processes; 0 = number of cores
  uint64_t cache_max_bytes = uint64_t{2} << 30;     ///< least recently used entries go first
  /// Run as `<this> __compile-worker`: a program whose main hands that to compile_worker_main().
  std::string worker_executable = "/proc/self/exe";
};

/// One finished compilation, in completion order. `cached` tells whether NVRTC ran.
struct CompileOutcome {
  size_t index = 0;  ///< position in the list given to compile_all
  Result<Binary> binary;
  bool cached = false;
  double seconds = 0;
  std::string log = {};  ///< NVRTC's, whole
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  /// One line that names the implementation and version ("NVRTC 13.0 at /usr/...").
  virtual std::string description() const = 0;
  /// Content digest a Binary of this program would have: source, flags, arch, NVRTC version.
  virtual std::string digest(const Program& program) const = 0;
  /// A program without an entry is taken with whatever kernels it has; its Binary says nothing of registers.
  /// Compiles all, calling `done` from the calling thread as each finishes; `done` returns false to
  /// stop early (remaining work is abandoned). A time-out, a crash or an out-of-memory of a worker is an Error of that
  /// candidate only.
  virtual void compile_all(const std::vector<const Program*>& programs,
                           const std::function<bool(CompileOutcome)>& done) = 0;
};

/// What `roofgen doctor` prints about NVRTC.
struct NvrtcInfo {
  bool found = false;
  std::string library;  ///< path it was loaded from
  int major = 0, minor = 0;
  std::string include_dir;            ///< CUDA headers, may be empty
  std::vector<std::string> archs;     ///< what nvrtcGetSupportedArchs says, "sm_80" ...
  std::vector<std::string> searched;  ///< every name tried, with dlerror's reason, when not found
};
const NvrtcInfo& nvrtc_info();

/// The production compiler: NVRTC in `options.jobs` worker processes behind the content-addressed
/// cache at `cache_dir` (empty: no cache). `warn` gets one line per non-fatal problem (unwritable cache).
Result<std::unique_ptr<Compiler>> make_nvrtc_compiler(const CompileOptions& options, std::string cache_dir,
                                                      std::function<void(const std::string&)> warn);

/// Entry point of a compile worker: `roofgen __compile-worker` calls this and nothing else.
int compile_worker_main();

}  // namespace roofgen

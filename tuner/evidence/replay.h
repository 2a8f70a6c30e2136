// A tuned variant as files that a fresh process can run once: what a profiler or a sanitizer is pointed at
// (`roofgen __replay DIR`), and what other programs load to run the same binary. A folder with replay.json
// and, beside it, the CUBIN and PTX of each kernel. Inputs are not stored: they follow from the op, the
// problem and the pattern (Op::fill). docs/counters.md has the format.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "generator/ops/op.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "runtime/executor.h"

namespace roofgen {

inline constexpr const char* kReplaySchema = "roofgen.replay.1";

struct ReplayKernel {
  std::string stage;
  Binary binary;  ///< digest, arch, entry, cubin, ptx, registers; what else it knows is not kept
  Launch launch;  ///< buffer arguments by name
};

struct Replay {
  Problem problem;
  InputPattern pattern = InputPattern::kNormal;
  std::string variant;
  std::vector<Buffer> buffers;
  std::vector<ReplayKernel> kernels;
};

/// Inputs and outputs of the op, and the temporaries of the variant.
Result<std::vector<Buffer>> replay_buffers(const DataFiles& files, const Op& op, const Problem& problem,
                                           const std::string& variant, const expr::Map& device_limits);

/// The replay of one variant: its kernels with their launches. An argument whose buffer is not among `buffers` was not
/// asked for (log-sum-exp) and becomes a null pointer.
Replay make_replay(const Problem& problem, const std::string& variant, std::vector<Buffer> buffers,
                   std::vector<ReplayKernel> kernels);

/// Writes the bundle into `directory`, made if it is not there.
Result<void> write_replay(const Replay& replay, const std::string& directory);
/// `path`: the folder or its replay.json. Untrusted: Exit::kUsage with the member that is wrong.
Result<Replay> read_replay(const std::string& path);

/// Text of replay.json; binaries are files named k0.cubin, k0.ptx, ...
std::string replay_json(const Replay& replay);
/// `load` gives the contents of a file beside it.
Result<Replay> parse_replay(const std::string& text, const std::string& name,
                            const std::function<Result<std::string>(const std::string& file)>& load);

struct ReplayTimes {
  std::vector<double> ns;  ///< of each kernel, the last repetition; single launches, not a measurement
};
/// Runs the kernels in order, `repeat` times. Every buffer that an argument names must be there.
Result<ReplayTimes> run_replay(const Replay& replay, Executor& executor, int repeat);

/// `roofgen __replay FILE [--repeat N] [--gpu N]`: the arguments after `__replay`. Prints one line per
/// kernel; an exit code of docs/counters.md.
int replay_main(int argc, char** argv);

}  // namespace roofgen

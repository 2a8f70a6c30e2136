// A replay bundle: a tuned variant as files that another process can run. Profilers and sanitizers run
// `roofgen __replay DIR`; other programs load the bundle to run the same binaries. The folder holds replay.json with
// the CUBIN and PTX of each kernel. Inputs are not stored: they follow from the op, the problem and the pattern
// (Op::fill). docs/use/counters.md has the format.
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
  Binary binary;  ///< only digest, arch, entry, cubin, ptx and registers are stored
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

/// The replay of one variant: its kernels with their launches. An argument whose buffer is not among `buffers`
/// is an output that the problem does not ask for (log-sum-exp) and becomes a null pointer.
Replay make_replay(const Problem& problem, const std::string& variant, std::vector<Buffer> buffers,
                   std::vector<ReplayKernel> kernels);

/// File name -> contents.
std::map<std::string, std::string> replay_files(const Replay& replay);
/// Writes the bundle into `directory`, which is made if needed.
Result<void> write_replay(const Replay& replay, const std::string& directory);
/// `path`: the folder or its replay.json. The file is untrusted: Exit::kUsage names the invalid member. Without
/// binaries the CUBINs and the PTX stay empty.
Result<Replay> read_replay(const std::string& path, bool with_binaries = true);

/// Text of replay.json; binaries are files named k0.cubin, k0.ptx, ...
std::string replay_json(const Replay& replay);
/// `load` reads another file of the folder.
Result<Replay> parse_replay(const std::string& text, const std::string& name,
                            const std::function<Result<std::string>(const std::string& file)>& load);

struct ReplayTimes {
  std::vector<double> ns;  ///< of each kernel, the last repetition; single launches, not a measurement
};
/// Runs the kernels in order, `repeat` times. Arguments may only name buffers of the replay.
Result<ReplayTimes> run_replay(const Replay& replay, Executor& executor, int repeat);

/// `roofgen __replay FILE [--repeat N] [--gpu N]`: the arguments after `__replay`. Prints one line per kernel. With
/// --input NAME it writes the bytes of an input to stdout, with --expected ROWS the text of expected_json().
/// docs/use/counters.md lists the exit codes.
int replay_main(int argc, char** argv);

// ---- A bundle in a temporary folder, while another program reads it --------------------------------

class ScratchReplay {
 public:
  static Result<ScratchReplay> make(const Replay& replay);
  ~ScratchReplay();  ///< removes the folder
  ScratchReplay(ScratchReplay&& other) noexcept : directory_(std::move(other.directory_)) { other.directory_.clear(); }
  ScratchReplay& operator=(ScratchReplay&&) = delete;
  const std::string& directory() const { return directory_; }

 private:
  explicit ScratchReplay(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

/// `chosen`, or if empty the path of the running program.
std::string replay_program(const std::string& chosen);

/// The first line of `text` that contains `what`, trimmed; empty: none.
std::string line_with(const std::string& text, const std::string& what);

}  // namespace roofgen

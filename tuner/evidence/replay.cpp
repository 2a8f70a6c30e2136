#include "tuner/evidence/replay.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/output_file.h"
#include "base/paths.h"
#include "tuner/evidence/expected.h"

namespace roofgen {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostJson = 16u << 20, kMostBinary = 64u << 20;

Result<std::string> read_file(const fs::path& path, uintmax_t most) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return Error{Exit::kUsage, "no such file", {path.string(), 0, 0}};
  const uintmax_t size = fs::file_size(path, failed);
  if (failed) return Error{Exit::kUsage, failed.message(), {path.string(), 0, 0}};
  if (size > most)
    return Error{Exit::kUsage, fmt::format("{} bytes; at most {} were expected", size, most), {path.string(), 0, 0}};
  std::string text(size, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (!in) return Error{Exit::kUsage, "cannot be read", {path.string(), 0, 0}};
  return text;
}

/// Releases its buffers at the end of the scope.
class Buffers {
 public:
  explicit Buffers(Executor& executor) : executor_(executor) {}
  ~Buffers() {
    for (const auto& [name, ptr] : at_) executor_.release(ptr);
  }
  Buffers(const Buffers&) = delete;
  Result<void> add(const Buffer& buffer, Fill fill) {
    ROOFGEN_TRY(at_[buffer.name], executor_.allocate(buffer.bytes, buffer.name, std::move(fill)));
    if (buffer.role == Buffer::Role::kUpdated) ROOFGEN_CHECK(executor_.allow_writes(at_[buffer.name]));
    return {};
  }
  const DevicePtr* find(const std::string& name) const {
    const auto it = at_.find(name);
    return it == at_.end() ? nullptr : &it->second;
  }

 private:
  Executor& executor_;
  std::map<std::string, DevicePtr> at_;
};

Result<int> number(const char* text, int least, int most) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text, text + std::strlen(text), value);
  if (failed != std::errc() || *end != '\0' || value < least || value > most)
    return Error{Exit::kUsage, fmt::format("\"{}\": a number from {} to {} was expected", text, least, most)};
  return value;
}

Result<void> replay_command(int argc, char** argv) {
  constexpr const char* kUsage = "__replay FILE [--repeat N] [--gpu N] | --input NAME | --expected ROWS";
  std::string path, input;
  int repeat = 1, gpu = 0, rows = 0;
  const std::map<std::string, std::pair<int*, int>> numbers{
      {"--repeat", {&repeat, 1}}, {"--gpu", {&gpu, 0}}, {"--expected", {&rows, 1}}};
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const auto it = numbers.find(word);
    if ((it != numbers.end() || word == "--input") && ++i == argc)
      return Error{Exit::kUsage, word + ": a value was expected"};
    if (it != numbers.end()) {
      ROOFGEN_TRY(*it->second.first, number(argv[i], it->second.second, 1'000'000));
    } else if (word == "--input") {
      input = argv[i];
    } else if (word.starts_with("-") || !path.empty()) {
      return Error{Exit::kUsage, fmt::format("{}; \"{}\" is none of these", kUsage, word)};
    } else {
      path = word;
    }
  }
  if (path.empty()) return Error{Exit::kUsage, "__replay: which file?"};
  if (rows > 0 || !input.empty()) {
    ROOFGEN_TRY(const Replay replay, read_replay(path, false));
    if (rows > 0) {
      ROOFGEN_TRY(const std::string text, expected_json(replay, rows));
      std::printf("%s\n", text.c_str());
    } else {
      ROOFGEN_TRY(const std::vector<std::byte> bytes, input_bytes(replay, input));
      std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    }
    return std::fflush(stdout) == 0 ? Result<void>() : Error{Exit::kFailed, "the output could not be written"};
  }
  ROOFGEN_TRY(const Replay replay, read_replay(path));
  ROOFGEN_TRY(const std::unique_ptr<GpuExecutor> executor, make_cuda_executor(gpu));
  ROOFGEN_TRY(const ReplayTimes times, run_replay(replay, *executor, repeat));
  const char* origin = executor->origin() == Origin::kMeasured ? "" : " (simulated)";
  for (size_t i = 0; i < times.ns.size(); ++i)
    std::printf("%s %.3f us%s\n", replay.kernels[i].binary.entry.c_str(), times.ns[i] / 1e3, origin);
  return {};
}

}  // namespace

Result<std::vector<Buffer>> replay_buffers(const DataFiles& files, const Op& op, const Problem& problem,
                                           const std::string& variant, const expr::Map& device_limits) {
  std::vector<Buffer> out = op.buffers(problem);
  ROOFGEN_TRY(const ProblemVariants at, variants_of(files, op, device_limits, problem));
  const Variant* const v = at.find(variant);
  if (!v) return Error{Exit::kUsage, fmt::format("{} has no variant \"{}\"", problem.op, variant)};
  ROOFGEN_TRY(const std::vector<Buffer> more, temporaries(*v, at.scope));
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

Replay make_replay(const Problem& problem, const std::string& variant, std::vector<Buffer> buffers,
                   std::vector<ReplayKernel> kernels) {
  for (ReplayKernel& k : kernels)
    for (Arg& arg : k.launch.args)
      if (arg.is_buffer &&
          std::none_of(buffers.begin(), buffers.end(), [&](const Buffer& b) { return b.name == arg.name; })) {
        arg.is_buffer = false;
        arg.bits = 0;
      }
  return {problem, InputPattern::kNormal, variant, std::move(buffers), std::move(kernels)};
}

std::map<std::string, std::string> replay_files(const Replay& replay) {
  std::map<std::string, std::string> out{{"replay.json", replay_json(replay)}};
  for (size_t i = 0; i < replay.kernels.size(); ++i) {
    out[fmt::format("k{}.cubin", i)] = replay.kernels[i].binary.cubin;
    out[fmt::format("k{}.ptx", i)] = replay.kernels[i].binary.ptx;
  }
  return out;
}

Result<void> write_replay(const Replay& replay, const std::string& directory) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) return Error{Exit::kFailed, fmt::format("cannot make the directory {}: {}", directory, failed.message())};
  for (const auto& [name, text] : replay_files(replay)) ROOFGEN_CHECK(write_output(directory + "/" + name, text));
  return {};
}

Result<Replay> read_replay(const std::string& path, bool with_binaries) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? fs::path(path) / "replay.json" : fs::path(path);
  ROOFGEN_TRY(const std::string text, read_file(file, kMostJson));
  return parse_replay(text, file.string(), [&](const std::string& name) -> Result<std::string> {
    return with_binaries ? read_file(file.parent_path() / name, kMostBinary) : std::string();
  });
}

Result<ReplayTimes> run_replay(const Replay& replay, Executor& executor, int repeat) {
  ROOFGEN_TRY(const Op* op, find_op(replay.problem.op));
  ROOFGEN_TRY(const Problem problem, op->complete(replay.problem));
  // The op fills the inputs: their sizes must be the op's.
  std::map<std::string, uint64_t> inputs;
  for (const Buffer& b : op->buffers(problem))
    if (b.has_contents()) inputs[b.name] = b.bytes;
  Buffers buffers(executor);
  for (const Buffer& b : replay.buffers) {
    if (buffers.find(b.name)) return Error{Exit::kUsage, fmt::format("buffer \"{}\" is there twice", b.name)};
    Fill fill;
    if (b.has_contents()) {
      if (const auto it = inputs.find(b.name); it == inputs.end() || it->second != b.bytes)
        return Error{Exit::kUsage, fmt::format("{} has no input \"{}\" of {} bytes", op->name(), b.name, b.bytes)};
      fill = [op, problem, pattern = replay.pattern, name = b.name](uint64_t offset, std::span<std::byte> out) {
        op->fill(problem, pattern, name, offset, out);
      };
    }
    ROOFGEN_CHECK(buffers.add(b, std::move(fill)));
    if (b.zeroed) ROOFGEN_CHECK(executor.write(*buffers.find(b.name), std::vector<std::byte>(b.bytes)));
  }
  std::vector<std::pair<ModuleId, Launch>> steps;
  for (const ReplayKernel& k : replay.kernels) {
    Launch launch = k.launch;
    for (Arg& arg : launch.args) {
      if (!arg.is_buffer) continue;
      const DevicePtr* at = buffers.find(arg.name);
      if (!at)
        return Error{Exit::kUsage,
                     fmt::format("kernel {} takes a buffer \"{}\" that is not there", k.binary.entry, arg.name)};
      arg.bits = at->address;
    }
    ROOFGEN_TRY(const ModuleId module, executor.load(k.binary));
    steps.emplace_back(module, std::move(launch));
  }
  ReplayTimes out;
  for (int i = 0; i < repeat; ++i) {
    out.ns.clear();
    for (const auto& [module, launch] : steps) {
      ROOFGEN_TRY(const RunResult run, executor.run(module, launch, {}));
      if (!run.findings.empty()) return Error{Exit::kFailed, run.findings.front().message};
      out.ns.push_back(run.time_ns.value_or(0));
    }
  }
  for (const auto& [module, launch] : steps) executor.unload(module);
  return out;
}

int replay_main(int argc, char** argv) {
  if (Result<void> done = replay_command(argc, argv); !done) {
    std::fprintf(stderr, "roofgen: %s\n", to_string(done.error()).c_str());
    return static_cast<int>(done.error().exit);
  }
  return 0;
}

namespace fs = std::filesystem;

Result<ScratchReplay> ScratchReplay::make(const Replay& replay) {
  std::error_code failed;
  std::string pattern = (fs::temp_directory_path(failed) / "roofgen-replay-XXXXXX").string();
  if (failed || !mkdtemp(pattern.data()))
    return Error{Exit::kFailed, fmt::format("cannot make a temporary folder: {}", std::strerror(errno))};
  ScratchReplay out(pattern);
  ROOFGEN_CHECK(write_replay(replay, out.directory()));
  return out;
}

ScratchReplay::~ScratchReplay() {
  std::error_code ignored;
  if (!directory_.empty()) fs::remove_all(directory_, ignored);
}

std::string replay_program(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  const std::string self = program_file();
  return self.empty() ? "roofgen" : self;
}

std::string line_with(const std::string& text, const std::string& what) {
  const size_t at = text.find(what);
  if (at == std::string::npos) return "";
  const size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  std::string line = text.substr(begin, text.find('\n', at) - begin);
  const size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : line.substr(first, std::min<size_t>(last - first + 1, 300));
}

}  // namespace roofgen

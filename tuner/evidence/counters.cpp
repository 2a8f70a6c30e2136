#include "tuner/evidence/counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>

#include "base/paths.h"
#include "base/subprocess.h"
#include "tuner/evidence/replay.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// Each run of ncu names one unknown metric. After so many runs the cause must be another one.
constexpr int kMostRetries = 4;
constexpr double kQueryTimeout = 60;

/// ncu's first error line, without its prefix.
std::string complaint(const std::string& text) {
  std::string line = line_with(text, "==ERROR==");
  if (const size_t mark = line.find("==ERROR=="); mark != std::string::npos) line = line.substr(mark + 9);
  const size_t first = line.find_first_not_of(' ');
  return first == std::string::npos ? "" : line.substr(first);
}

/// The reason why a run of ncu gave no table, in one line.
Error ncu_error(const ProcessResult& run, const CounterRequest& request) {
  const std::string text = run.out + "\n" + run.err;
  const auto unavailable = [](std::string message) { return Error{Exit::kUnavailable, std::move(message)}; };
  const auto failed = [](std::string message) { return Error{Exit::kFailed, std::move(message)}; };
  if (run.stopped) return Error{Exit::kInterrupted, "interrupted while ncu ran"};
  if (run.timed_out) return failed(fmt::format("ncu did not end within {} s", request.timeout_s));
  if (run.flooded) return failed("ncu printed too much to be a table of a few kernels");
  if (text.find("ERR_NVGPUCTRPERM") != std::string::npos)
    return unavailable(
        "ncu may not read this GPU's counters (ERR_NVGPUCTRPERM): an administrator can allow it to everybody with the "
        "nvidia "
        "module's option NVreg_RestrictProfilingToAdminUsers=0, or to this process with CAP_SYS_ADMIN");
  if (text.find("LibraryNotLoaded") != std::string::npos)
    return unavailable(
        "ncu cannot load its profiling library (LibraryNotLoaded): its installation is not complete, or not of this "
        "driver's version");
  if (text.find("not compatible with Nsight Compute") != std::string::npos)
    return unavailable("this ncu does not work with the installed CUDA driver: the driver is too old for it");
  // The error of the profiled program is nearer to the cause than ncu's message about its exit status.
  if (const std::string own = line_with(text, "roofgen: "); !own.empty())
    return failed("the kernels did not run under ncu: " + own);
  if (const std::string line = complaint(text); !line.empty()) return failed("ncu: " + line);
  if (text.find("No kernels were profiled") != std::string::npos) return failed("ncu saw none of the kernels");
  if (run.signal != 0) return failed(fmt::format("ncu was ended by signal {}", run.signal));
  if (!run.ok()) return failed(fmt::format("ncu ended with status {}", run.exit));
  return failed("ncu printed no table");
}

/// Removes the metrics that ncu calls unknown from `metrics`; false when ncu named none of them.
bool drop_unknown(const std::string& text, std::vector<std::string>& metrics, std::vector<std::string>& notes) {
  bool dropped = false;
  for (size_t at = 0; (at = text.find("Failed to find metric", at)) != std::string::npos; ++at) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    for (auto m = metrics.begin(); m != metrics.end();) {
      const std::string base = m->substr(0, m->find('.'));
      const size_t found = line.find(base);
      const size_t end = found + base.size();
      // Compare whole names: dram__bytes is also a part of dram__bytes_read.
      const bool whole =
          found != std::string::npos &&
          (end == line.size() || (!std::isalnum(static_cast<unsigned char>(line[end])) && line[end] != '_'));
      if (whole) {
        notes.push_back(fmt::format("{} is not known to this ncu", *m));
        m = metrics.erase(m);
        dropped = true;
      } else {
        ++m;
      }
    }
  }
  return dropped;
}

std::string version_line(const std::string& program, const std::atomic<bool>* stop) {
  const auto run = run_process({.argv = {program, "--version"},
                                .environment = {{"LC_ALL", "C"}},
                                .timeout_s = 30,
                                .most_output = 1 << 16,
                                .stop = stop});
  return run ? line_with(run->out, "Version ") : "";
}

}  // namespace

Result<std::string> find_ncu(const std::string& chosen) {
  const std::string named = !chosen.empty() ? chosen : environment("ROOFGEN_NCU");
  std::string found = find_program(named, "ncu", {"/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu"});
  if (!found.empty()) return found;
  if (!named.empty()) return Error{Exit::kUnavailable, fmt::format("ncu: {} is not a program that can be run", named)};
  return Error{Exit::kUnavailable,
               "ncu (Nsight Compute) was not found in PATH, /usr/local/cuda/bin or /opt/nvidia/nsight-compute; "
               "ROOFGEN_NCU can name it"};
}

Result<CounterReport> count_on_gpu(const CounterRequest& request) {
  if (request.replay.kernels.empty()) return Error{Exit::kFailed, "there is no kernel to be counted"};
  CounterReport report;
  report.variant = request.replay.variant;
  ROOFGEN_TRY(report.tool, find_ncu(request.ncu));
  report.version = version_line(report.tool, request.stop);
  ROOFGEN_TRY(const ScratchReplay scratch, ScratchReplay::make(request.replay));

  const DType dtype = request.replay.problem.dtype;
  const std::string arch = request.replay.kernels[0].binary.arch;
  std::vector<std::string> known;
  if (const auto query = run_process({.argv = {report.tool, "--query-metrics"},
                                      .environment = {{"LC_ALL", "C"}},
                                      .timeout_s = kQueryTimeout,
                                      .stop = request.stop});
      query && query->ok())
    known = parse_metric_names(query->out);
  // A list without the most basic counter is not the list of this device.
  if (std::find(known.begin(), known.end(), "gpu__time_duration") == known.end()) known.clear();
  std::vector<std::string> metrics = counter_metrics(arch, dtype, known);

  std::vector<std::string> entries;
  for (const ReplayKernel& k : request.replay.kernels) entries.push_back(k.binary.entry);
  const std::set<std::string> distinct(entries.begin(), entries.end());
  ProcessOptions options;
  options.environment = {{"LC_ALL", "C"}};
  options.timeout_s = request.timeout_s;
  options.stop = request.stop;
  ProcessResult run;
  for (int attempt = 0;; ++attempt) {
    if (metrics.empty()) return Error{Exit::kFailed, "this ncu knows none of the metrics"};
    std::istringstream flags(
        fmt::format("--csv --page raw --print-units base --metrics {} --clock-control none --cache-control all "
                    "--target-processes all --kernel-name-base function --kernel-name regex:^({})$ --launch-count {}",
                    fmt::join(metrics, ","), fmt::join(distinct, "|"), entries.size()));
    options.argv = {report.tool};
    options.argv.insert(options.argv.end(), std::istream_iterator<std::string>(flags), {});
    for (const std::string& word : {replay_program(request.executable), std::string("__replay"), scratch.directory(),
                                    std::string("--gpu"), std::to_string(request.gpu)})
      options.argv.push_back(word);
    ROOFGEN_TRY(run, run_process(options));
    if (run.flooded || run.timed_out || run.stopped) return ncu_error(run, request);
    if (attempt == kMostRetries || !drop_unknown(run.out + "\n" + run.err, metrics, report.notes)) break;
  }
  report.command = fmt::format("{}", fmt::join(options.argv, " "));
  auto counted = parse_counters(run.out, arch, dtype);
  // A table suffices, whatever the exit status.
  if (!counted) {
    Error error = ncu_error(run, request);
    return error.message == "ncu printed no table" ? std::move(counted).error() : error;
  }
  report.kernels = std::move(*counted);
  if (report.kernels.size() != entries.size())
    return Error{Exit::kFailed,
                 fmt::format("ncu counted {} kernels; the variant has {}", report.kernels.size(), entries.size())};
  for (size_t i = 0; i < entries.size(); ++i) {
    CountedWork& k = report.kernels[i];
    // "name" or "name(parameters)".
    if (k.entry.substr(0, k.entry.find('(')) != entries[i])
      return Error{Exit::kFailed, fmt::format("ncu counted kernel \"{}\" where {} was launched", k.entry, entries[i])};
    k.entry = entries[i];
    k.stage = request.replay.kernels[i].stage;
    if (!k.tensor_flops)
      report.notes.push_back(fmt::format("{}: no counter of tensor operations on {}", k.stage, arch));
    if (!k.dram_bytes()) report.notes.push_back(fmt::format("{}: no counter of DRAM bytes", k.stage));
    if (k.tensor_flops_from_instructions)
      report.notes.push_back(fmt::format("{}: tensor FLOPs are tensor instructions x 4096 (m16n8k16)", k.stage));
  }
  report.differences = compare_counted(report.kernels, request.expected, request.required);
  return report;
}

Result<CounterRequest> counter_request(const DataFiles& files, const Op& op, const TuneResult& result,
                                       const std::string& variant) {
  const TuneReport& report = result.report;
  const VariantReport* tuned = report.find(variant);
  const auto winners = result.winners.find(variant);
  if (!tuned || winners == result.winners.end() || winners->second.empty() ||
      tuned->kernels.size() != winners->second.size())
    return Error{Exit::kFailed, fmt::format("{} has no tuned kernels", variant)};
  CounterRequest out;
  ROOFGEN_TRY(std::vector<Buffer> buffers, replay_buffers(files, op, report.problem, variant, limits(report.device)));
  std::vector<ReplayKernel> kernels;
  for (size_t i = 0; i < tuned->kernels.size(); ++i) {
    const KernelReport& k = tuned->kernels[i];
    kernels.push_back({k.stage, winners->second[i].binary, winners->second[i].launch});
    out.expected.push_back({k.stage, k.work, k.work_exact, k.compulsory_bytes, k.registers});
  }
  out.replay = make_replay(report.problem, variant, std::move(buffers), std::move(kernels));
  std::optional<WorkFormula> formula;
  if (!op.required(report.problem)) {
    ROOFGEN_TRY(formula, WorkFormula::load(files, report.problem.op));
  }
  ROOFGEN_TRY(out.required, required_work(op, formula ? &*formula : nullptr, report.problem));
  return out;
}

// ---- Comparison with expected work, and likely causes of differences -------------------------------

namespace {

/// Tolerance of counts of events, which must be equal.
constexpr double kEqual = 1e-9;

class Differences {
 public:
  void add(const std::string& stage, const char* quantity, const char* against, const std::optional<double>& counted,
           double expected, double tolerance, const char* more, const char* fewer) {
    if (!counted || !(expected > 0)) return;
    CountedDifference d{stage, quantity, against, *counted, expected, *counted / expected - 1, false, ""};
    d.flagged = std::fabs(d.relative) > tolerance;
    if (d.flagged) d.reason = d.relative > 0 ? more : fewer;
    out.push_back(std::move(d));
  }
  std::vector<CountedDifference> out;
};

}  // namespace

std::vector<CountedDifference> compare_counted(const std::vector<CountedWork>& counted,
                                               const std::vector<ExpectedWork>& expected,
                                               const std::optional<RequiredWork>& required) {
  Differences d;
  if (expected.size() == counted.size())
    for (size_t i = 0; i < counted.size(); ++i) {
      const CountedWork& c = counted[i];
      const ExpectedWork& e = expected[i];
      const char* origin = e.exact ? "simulated" : "extrapolated";
      const double flops_tolerance = e.exact ? kEqual : kCounterTolerance;
      d.add(c.stage, "tensor FLOPs", origin, c.tensor_flops, e.work.mma_flops, flops_tolerance,
            e.exact ? "the GPU ran more matrix work than the simulator: FLOPs must be equal, so one of the two is wrong"
                    : "the simulator's slices do less than an average part of the launch",
            e.exact ? "the GPU ran less matrix work than the simulator: FLOPs must be equal, so one of the two is wrong"
                    : "the simulator's slices do more than an average part of the launch");
      d.add(c.stage, "DRAM bytes", "model", c.dram_bytes(), e.work.dram_bytes, kCounterTolerance,
            "the L2 model keeps more than the real L2 does: data are fetched again after they were evicted, or written "
            "out early",
            "the real L2 keeps more than the model: results still in it at the end of the kernel are not written to "
            "DRAM yet");
      // The simulator counts only requests of the SMs. Traffic at the tags includes that between the L2's two halves.
      const bool requests = c.l2_request_bytes.has_value();
      d.add(c.stage, requests ? "L2 request bytes" : "L2 bytes", origin, requests ? c.l2_request_bytes : c.l2_bytes,
            e.work.l2_bytes, kCounterTolerance,
            requests
                ? "requests that the simulator does not model: instruction fetches, descriptors, whole-sector fills"
                : "traffic between the halves of L2 is in this counter, and not in the simulator's",
            "L1 served a part: the simulator sends every sector a warp asks for to L2");
      d.add(c.stage, "registers", "compiled", c.registers, e.registers, kEqual,
            "the driver compiled the kernel again, from its PTX", "the driver compiled the kernel again, from its PTX");
    }
  if (!required || counted.empty()) return d.out;
  std::optional<double> flops = 0, dram = 0;
  for (const CountedWork& c : counted) {
    flops = flops && c.tensor_flops ? std::optional(*flops + *c.tensor_flops) : std::nullopt;
    dram = dram && c.dram_bytes() ? std::optional(*dram + *c.dram_bytes()) : std::nullopt;
  }
  d.add("total", "tensor FLOPs", "formula", flops, required->mma_flops, kCounterTolerance,
        "extra work: masked parts of diagonal tiles, and padding",
        "less matrix work than the problem needs: a part of it was not done, or not by the matrix units");
  d.add("total", "DRAM bytes", "formula", dram, required->dram_bytes, kCounterTolerance,
        "intermediates and repeated reads of inputs, beyond the compulsory traffic",
        "a part of the tensors was in L2 before the kernel, or still is after it");
  return d.out;
}

}  // namespace roofgen

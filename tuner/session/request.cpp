#include "tuner/session/request.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tuner/session/workbench.h"
#include "tuner/strategy/strategy.h"

namespace roofgen {
namespace {

Result<ParamValue> parse_value(const std::string& text) {
  if (text == "true") return ParamValue(true);
  if (text == "false") return ParamValue(false);
  if (!text.empty() && text.find_first_not_of("0123456789-") == std::string::npos) {
    char* end = nullptr;
    errno = 0;
    const long long v = std::strtoll(text.c_str(), &end, 10);
    if (errno == 0 && *end == 0) return ParamValue(int64_t{v});
  }
  if (text.empty()) return Error{Exit::kUsage, "a value is missing"};
  return ParamValue(text);
}

}  // namespace

void ProblemFlags::declare(FlagSet app) {
  std::vector<std::string> names;
  for (const OpFile& file : app.ops())
    if (file.formulas || find_op(file.op)) names.push_back(file.op);
  app.add("op", op, fmt::format("what to compute: {}", fmt::join(names, ", ")));
  given.declare(app);
  app.add("--dtype", dtype,
          "number format of the inputs: bf16, fp16; norms and map fp32; attention fp8; gemm tf32, fp8, int8 [bf16]")
      .group("Problem");
  app.add("--device", device, fmt::format("device of the catalogue [{}]", kDefaultDevice)).group("Device");
  profile.declare(app);
  app.add("--arch", arch,
          "compile for this architecture: sm_90 for portable kernels only, sm_90a also for its own kernels [the "
          "device's]")
      .group("Device");
  app.add("--set", sets, "pin parameters: BM=128,stages=2").split(',').group("Search");
}

Result<std::map<std::string, ParamValue>> ProblemFlags::pins() const {
  std::map<std::string, ParamValue> out;
  for (const std::string& set : sets) {
    const size_t eq = set.find('=');
    if (eq == std::string::npos || eq == 0)
      return Error{Exit::kUsage, fmt::format("--set {}: name=value was expected, like BM=128", set)};
    auto value = parse_value(set.substr(eq + 1));
    if (!value) return Error{Exit::kUsage, fmt::format("--set {}: {}", set, value.error().message)};
    out[set.substr(0, eq)] = *value;
  }
  return out;
}

void RunFlags::declare(FlagSet app) {
  app.add("--variant", variants, "only these variants").split(',').group("Search");
  app.add("--strategy", strategy, fmt::format("{} [{}]", strategy_names(), strategies().front().name)).group("Search");
  app.add_switch("--exhaustive", exhaustive, "same as --strategy exhaustive: every point, without the limit of --evals")
      .group("Search")
      .excludes(app.find("--strategy"));
  app.add("--evals", evals,
          fmt::format(
              "candidates to execute [up to 72 of attention, 40 of other ops, fewer for big problems; {} with a GPU]",
              kDefaultGpuEvals))
      .number_from(1, 1e15, "a number")
      .group("Search");
  app.add("--effort", effort,
          "none (of each kernel the default schedule and the prior's best), quick (as many candidates as --evals says) "
          "or full (ten times the default) [quick]")
      .group("Search")
      .excludes(app.find("--evals"))
      .excludes(app.find("--exhaustive"));
  app.add("--until", until, "no new round of candidates once the best variant has this score, such as 0.9")
      .number_from(1e-6, 10, "a score")
      .group("Search");
  app.add("--launches", launches,
          "launches of the tuned kernel to come: the search ends when the candidates left would take longer than all "
          "launches can save")
      .number_from(1, 1e18, "a number")
      .group("Search");
  app.add("--time", time_limit_s,
          "no new candidate starts after this many seconds (with a GPU: after half of them, and timing stops after all "
          "of them)")
      .number_from(1e-3, 1e9, "a number of seconds")
      .group("Search");
  app.add("--seed", seed, "seed of random strategies [0]").group("Search");
  app.add("--jobs", jobs, "compile workers and simulation threads [cores]").range(1, 256).group("Search");
  app.add("--executor", executor,
          "auto, sim or cuda [auto: the GPU if one is found]: cuda measures, sim counts and models")
      .group("Device");
  // Without a GPU these say nothing, which is then said.
  const auto on_gpu = [&](Flag flag) { gpu_flags.push_back(flag); };
  on_gpu(app.add("--gpu", gpu, "which GPU, counted from 0 [0]").number_from(0, 1023, "a number").group("Device"));
  on_gpu(app.add("--protocol", protocol, "steady (warm, many samples), burst (few, with rests) or quick (few) [steady]")
             .group("Measurement"));
  on_gpu(app.add("--l2", l2, "rank by cold (flushed before each sample) or hot times [cold]").group("Measurement"));
  on_gpu(app.add("--check", check,
                 "with a GPU, the candidates to simulate as well: all, finalists, or gpu (none) [finalists]")
             .group("Measurement"));
  on_gpu(app.add("--timeout", timeout_s, "longest that one launch may take on the GPU, in seconds [10]")
             .number_from(0.1, 3600, "a number of seconds")
             .group("Measurement"));
  app.add("--record", record, "write every timed point here, a T4 file a stage; with --executor sim the model's times")
      .group("Measurement");
  app.add_switch("--cold", cold, "do not begin with schedules that were fast for near problems or on near devices")
      .group("Search");
  app.add_switch("--no-store", no_store, "neither read nor write the evaluation store").group("Search");
}

}  // namespace roofgen

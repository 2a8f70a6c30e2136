// roofgen generate OP: the source (or PTX) of one schedule, without tuning.
#include <fmt/format.h>

#include "base/suggest.h"
#include "cli/problem_flags.h"

namespace roofgen::cli {
namespace {

struct GenerateFlags {
  ProblemFlags problem;
  std::string variant, stage;
  bool ptx = false, list = false;
};

Result<Exit> run(const Session& session, const GenerateFlags& flags) {
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const Op* op, find_op(flags.problem.op));
  ROOFGEN_TRY(Problem partial, flags.problem.problem());
  ROOFGEN_TRY(const Problem problem, op->complete(std::move(partial)));
  ROOFGEN_TRY(Device device, load_device(files, flags.problem.device.empty() ? kDefaultDevice : flags.problem.device));
  device.arch_specific = flags.problem.arch.empty() || flags.problem.arch.ends_with('a');
  ROOFGEN_TRY(std::vector<Variant> variants, op->variants(files, problem));
  ROOFGEN_TRY(const expr::Map scope, problem_scope(*op, problem, limits(device)));
  const auto conditions = conditions_of(variants);
  ROOFGEN_TRY(variants, expand(std::move(variants), scope));
  if (flags.list) {
    for (const Variant& v : variants)
      for (const Stage& s : v.stages) session.out(fmt::format("{} {}  {}\n", v.name, s.name, v.description));
    return Exit::kOk;
  }
  std::vector<std::string> stages;
  const Variant* variant = nullptr;
  for (const Variant& v : variants)
    if (v.name == (flags.variant.empty() ? variants[0].name : flags.variant)) variant = &v;
  if (!variant) return no_variant(flags.variant, conditions, names_of(variants), device.name);
  const Stage* stage = nullptr;
  for (const Stage& s : variant->stages) {
    stages.push_back(s.name);
    if (s.name == (flags.stage.empty() ? variant->stages[0].name : flags.stage)) stage = &s;
  }
  if (!stage)
    return Error{Exit::kUsage, fmt::format("unknown stage \"{}\"{}", flags.stage, did_you_mean(flags.stage, stages))};

  ROOFGEN_TRY(auto pins, flags.problem.pins());
  std::vector<std::string> params;
  for (const Param& p : stage->params) params.push_back(p.name);
  for (const auto& [name, value] : pins)
    if (std::find(params.begin(), params.end(), name) == params.end())
      return Error{Exit::kUsage, fmt::format("--set {}: no such parameter{}", name, did_you_mean(name, params))};
  ROOFGEN_TRY(Schedule schedule, default_schedule(*variant, *stage, scope, pins));
  auto checked = check_schedule(*variant, *stage, std::move(schedule), scope);
  if (auto error = std::get_if<Error>(&checked)) return *error;
  if (auto rejected = std::get_if<Rejected>(&checked))
    return Error{Exit::kUnavailable, fmt::format("{} is illegal: {}", to_string(rejected->schedule), rejected->reason)};
  const Legal& legal = std::get<Legal>(checked);
  ROOFGEN_TRY(const Program program, generate(files, *stage, legal));
  const auto give = [&](Binary binary) -> Result<Exit> {
    if (!session.kernels) return Exit::kOk;
    ROOFGEN_TRY(Launch launch, make_launch(*stage, legal));
    session.kernels({{program, std::move(binary), std::move(launch)}});
    return Exit::kOk;
  };
  if (!flags.ptx) {
    session.out(program.source);
    return give({});
  }
  CompileOptions options;
  options.arch = flags.problem.arch.empty() ? device.arch : flags.problem.arch;
  options.jobs = 1;
  ROOFGEN_TRY(auto compiler, make_nvrtc_compiler(options, session.cache, session.warn));
  std::optional<Result<Binary>> binary;
  compiler->compile_all({&program}, [&](CompileOutcome outcome) {
    binary = std::move(outcome.binary);
    return true;
  });
  if (!binary) return Error{Exit::kFailed, "the compiler gave no answer"};
  if (!*binary) return binary->error();
  session.out((*binary)->ptx);
  return give(std::move(**binary));
}

}  // namespace

Run declare_generate(FlagSet app) {
  auto flags = std::make_shared<GenerateFlags>();
  flags->problem.declare(app);
  app.add("--variant", flags->variant, "variant [the first]");
  app.add("--stage", flags->stage, "stage of the variant [its first]");
  app.add_switch("--ptx", flags->ptx, "print PTX instead of CUDA C++");
  app.add_switch("--list", flags->list, "list variants and stages");
  app.footer("Example: roofgen generate attention --L 2048 --d 64 --variant fused --set BM=128");
  return [flags](const Session& session) { return run(session, *flags); };
}

}  // namespace roofgen::cli

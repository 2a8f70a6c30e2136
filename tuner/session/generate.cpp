#include "tuner/session/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "base/target.h"
#include "runtime/compiler.h"

namespace roofgen {
namespace {

template <class Named>
std::vector<std::string> names(const std::vector<Named>& all) {
  std::vector<std::string> out;
  for (const Named& one : all) out.push_back(one.name);
  return out;
}

/// The one of that name; the first for no name; nullptr.
template <class Named>
const Named* find(const std::vector<Named>& all, const std::string& name) {
  const auto at = name.empty() ? all.begin() : std::ranges::find(all, name, &Named::name);
  return at == all.end() ? nullptr : &*at;
}

Result<Binary> compile(const Session& session, const Program& program, const std::string& arch) {
  CompileOptions options;
  options.arch = arch;
  options.jobs = 1;
  ROOFGEN_TRY(auto compiler, make_nvrtc_compiler(options, session.cache, session.warn));
  std::optional<Result<Binary>> binary;
  compiler->compile_all({&program}, [&](CompileOutcome outcome) {
    binary = std::move(outcome.binary);
    return true;
  });
  if (!binary) return Error{Exit::kFailed, "the compiler gave no answer"};
  return std::move(*binary);
}

}  // namespace

void GenerateRequest::declare(FlagSet app) {
  problem.declare(app);
  app.add("--variant", variant, "variant [the first]");
  app.add("--stage", stage, "stage of the variant [its first]");
  app.add_switch("--ptx", compile, "print PTX instead of CUDA C++");
  app.add_switch("--list", list, "list variants and stages");
}

Result<Generated> generate(const Session& session, const GenerateRequest& request) {
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const Op* op, find_op(files, request.problem.op));
  ROOFGEN_TRY(Problem partial, request.problem.problem());
  ROOFGEN_TRY(const Problem problem, op->complete(std::move(partial)));
  const std::string &asked = request.problem.device, &arch = request.problem.arch;
  ROOFGEN_TRY(Device device, load_device(files, asked.empty() ? kDefaultDevice : asked));
  limit_to(device, arch);
  ROOFGEN_TRY(const ProblemVariants at, variants_of(files, *op, limits(device), problem));
  Generated out;
  if (request.list) {
    for (const Variant& v : at.variants)
      for (const Stage& s : v.stages) out.text += fmt::format("{} {}  {}\n", v.name, s.name, v.description);
    return out;
  }
  const Variant* const variant = find(at.variants, request.variant);
  if (!variant) return no_variant(request.variant, at.conditions, names_of(at.variants), device.name);
  const Stage* const stage = find(variant->stages, request.stage);
  if (!stage)
    return Error{Exit::kUsage, fmt::format("unknown stage \"{}\"{}", request.stage,
                                           did_you_mean(request.stage, names(variant->stages)))};
  ROOFGEN_TRY(const auto pins, request.problem.pins());
  for (const auto& [name, value] : pins)
    if (!find(stage->params, name))
      return Error{Exit::kUsage,
                   fmt::format("--set {}: no such parameter{}", name, did_you_mean(name, names(stage->params)))};
  ROOFGEN_TRY(Schedule schedule, default_schedule(*variant, *stage, at.scope, pins));
  auto checked = check_schedule(*variant, *stage, std::move(schedule), at.scope);
  if (auto error = std::get_if<Error>(&checked)) return *error;
  if (auto rejected = std::get_if<Rejected>(&checked))
    return Error{Exit::kUnavailable, fmt::format("{} is illegal: {}", to_string(rejected->schedule), rejected->reason)};
  const Legal& legal = std::get<Legal>(checked);
  TunedKernel& kernel = out.kernels.emplace_back();
  ROOFGEN_TRY(kernel.program, generate(files, *stage, legal));
  ROOFGEN_TRY(kernel.launch, make_launch(*stage, legal));
  if (request.compile) {
    ROOFGEN_TRY(kernel.binary, compile(session, kernel.program, arch.empty() ? device.arch : arch));
  }
  out.text = request.compile ? kernel.binary.ptx : kernel.program.source;
  return out;
}

}  // namespace roofgen

// roofgen explain OP: work, roofs, regime and the next lever of one operator, by formula.
#include "roofline/explain.h"

#include <fmt/format.h>

#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/problem_flags.h"
#include "cli/profile.h"
#include "cli/work_flags.h"
#include "roofline/figures.h"
#include "roofline/views/views.h"
#include "roofline/work.h"

namespace roofgen::cli {
namespace {

struct ExplainFlags {
  std::string op, expression, device = kDefaultDevice, dtype, math_dtype, acc_dtype, ceilings = "datasheet";
  std::vector<std::string> dims;
  double softmax_flops = 0;
  std::string html;
  ProfileFlags profile;
  bool json = false;
  std::vector<std::string> rest;  ///< flags of the operator
};

Result<Exit> list_operators(const Session& session, const DataFiles& files) {
  for (const std::string& name : WorkFormula::names(files)) {
    ROOFGEN_TRY(const WorkFormula f, WorkFormula::load(files, name));
    session.out(fmt::format("{:<14} {}\n", name, f.title()));
  }
  session.out(
      fmt::format("{:<14} {}\n", "elementwise", "a chain of operations on tensors: --expr 'relu(x + bias[n])'"));
  return Exit::kOk;
}

Result<Exit> show(const Session& session, const DataFiles& files, const ExplainFlags& flags, OpWork work,
                  const WorkFormula* formula, const WorkRequest& request) {
  ROOFGEN_TRY(const Device device, find_device(files, flags.device, flags.profile, session.warn));
  ROOFGEN_TRY(const RoofSet set, parse_roof_set(flags.ceilings));
  ROOFGEN_TRY(const Explanation explanation, explain(device, std::move(work), set));
  const ExplainView view{explanation, formula ? ridge_crossing(*formula, request, explanation) : std::nullopt};
  if (flags.json || flags.html.empty()) session.out(flags.json ? explain_json(view) : explain_text(view));
  if (!flags.html.empty())
    return show_page(
        explain_page(device, explanation, formula ? intensity_lines(*formula, request, explanation) : std::nullopt),
        flags.html, files, session);
  return Exit::kOk;
}

/// `explain elementwise --expr '...' --rows M --cols N [--unfused]`.
Result<Exit> explain_elementwise(const Session& session, const DataFiles& files, const ExplainFlags& flags) {
  ElementwiseRequest e;
  e.expression = flags.expression;
  if (!flags.dtype.empty()) e.dtype = flags.dtype;
  // The same flags as for any operator: a formula of two dimensions and a flag.
  static const char* kFormula =
      R"({"schema": "roofgen.work/1", "op": "elementwise", "title": "a chain of operations on tensors, --expr 'relu(x + bias[n])'",
    "dims": [{"name": "rows", "help": "rows"}, {"name": "cols", "help": "elements of a row"}],
    "flags": [{"name": "unfused", "help": "every operation a kernel of its own"}], "forms": [{"name": "fused", "kernels": [{"name": "k"}]}]})";
  ROOFGEN_TRY(const WorkFormula shape, WorkFormula::parse(kFormula, "elementwise"));
  const std::vector<std::string>& arguments = flags.rest;
  if (e.expression.empty() || (arguments.empty() && flags.dims.empty())) {
    session.out(fmt::format(
        "{}\nFunctions of --expr; x is rows x cols, bias[n] one value per column, w[m] one per row, alpha, beta and "
        "scale are scalars:\n{}",
        work_help(shape), elementwise_functions()));
    return Exit::kOk;
  }
  std::vector<std::string> all = flags.dims;
  all.insert(all.end(), arguments.begin(), arguments.end());
  ROOFGEN_TRY(const WorkRequest request, parse_work_flags(shape, all));
  ROOFGEN_TRY(const OpWork checked, shape.evaluate(request));
  e.rows = checked.dims.at("rows");
  e.cols = checked.dims.at("cols");
  e.unfused = checked.flags.at("unfused");
  ROOFGEN_TRY(OpWork work, elementwise_work(e));
  return show(session, files, flags, std::move(work), nullptr, {});
}

Result<Exit> run(const Session& session, const ExplainFlags& flags) {
  if (!(flags.softmax_flops >= 0 && flags.softmax_flops <= 1000))
    return Error{Exit::kUsage, fmt::format("--softmax-flops {}: 0 to 1000 was expected", flags.softmax_flops)};
  const DataFiles files(session.data_dirs);
  if (flags.op.empty() || flags.op == "list") return list_operators(session, files);
  if (flags.op == "elementwise") return explain_elementwise(session, files, flags);
  ROOFGEN_TRY(const WorkFormula formula, WorkFormula::load(files, flags.op));
  std::vector<std::string> arguments = flags.rest;
  if (arguments.empty() && flags.dims.empty()) {
    session.out(work_help(formula));
    return Exit::kOk;
  }
  arguments.insert(arguments.begin(), flags.dims.begin(), flags.dims.end());
  ROOFGEN_TRY(WorkRequest request, parse_work_flags(formula, arguments));
  if (!flags.dtype.empty()) request.dtypes[""] = flags.dtype;
  request.math_dtype = flags.math_dtype;
  request.accumulate = flags.acc_dtype;
  request.softmax_flops = flags.softmax_flops;
  ROOFGEN_TRY(OpWork work, formula.evaluate(request));
  return show(session, files, flags, std::move(work), &formula, request);
}

}  // namespace

Run declare_explain(FlagSet app) {
  auto flags = std::make_shared<ExplainFlags>();
  app.keep_rest();
  app.add("op", flags->op, "operator; without a name: lists the operators; `explain OP` alone lists its flags");
  app.add("--expr", flags->expression, "of elementwise: the chain, like 'relu(x + bias[n])'");
  app.add("--dims", flags->dims, "dimensions as M=128,N=4096, instead of --M 128 --N 4096").split(',');
  app.add("--device", flags->device,
          fmt::format("device of the catalogue, or gpu: the one in this machine [{}]", kDefaultDevice));
  flags->profile.declare(app);
  app.add("--dtype", flags->dtype, "dtype of all operands that have no --<operand>-dtype [bf16]");
  app.add("--math-dtype", flags->math_dtype, "operand format of the matrix units [the widest operand]");
  app.add("--acc-dtype", flags->acc_dtype, "accumulator format of the matrix units [fp32, int32, fp64]");
  app.add("--softmax-flops", flags->softmax_flops, "FLOPs counted per softmax element, in addition to MMA FLOPs [0]");
  app.add("--ceilings", flags->ceilings, "datasheet or sustained [datasheet]");
  app.add("--html", flags->html, "write a self-contained page of figures here");
  app.add_switch("--json", flags->json, "as JSON (docs/use/explain.md)");
  app.footer("Example: roofgen explain gemm --M 128 --N 24576 --K 1536 --b-dtype fp4 --device b200");
  return [flags, app](const Session& session) {
    flags->rest = app.rest();
    return run(session, *flags);
  };
}

}  // namespace roofgen::cli

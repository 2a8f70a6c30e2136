#include "tuner/session/explain.h"

#include <fmt/format.h>

#include "roofline/analyses/explain.h"
#include "roofline/analyses/figures.h"
#include "roofline/views/views.h"
#include "roofline/work.h"
#include "tuner/session/work_flags.h"

namespace roofgen {
namespace {

Result<std::string> list_operators(const DataFiles& files) {
  std::string out;
  for (const std::string& name : WorkFormula::names(files)) {
    ROOFGEN_TRY(const WorkFormula f, WorkFormula::load(files, name));
    out += fmt::format("{:<14} {}\n", name, f.title());
  }
  return out +
         fmt::format("{:<14} {}\n", "elementwise", "a chain of operations on tensors: --expr 'relu(x + bias[n])'");
}

/// `formula`: nullptr for a chain of operations.
Result<std::string> shown(const Session& session, const DataFiles& files, const ExplainRequest& request, OpWork work,
                          const WorkFormula* formula, const WorkRequest& asked) {
  ROOFGEN_TRY(const Device device, find_device(files, request.device, request.profile, session.warn));
  ROOFGEN_TRY(const RoofSet set, parse_roof_set(request.ceilings));
  ROOFGEN_TRY(const Explanation explanation, explain(device, std::move(work), set));
  const ExplainView view{explanation, formula ? ridge_crossing(*formula, asked, explanation) : std::nullopt};
  if (!request.html.empty())
    ROOFGEN_CHECK(session.write_page(
        request.html,
        explain_page(device, explanation, formula ? intensity_lines(*formula, asked, explanation) : std::nullopt),
        files));
  return request.json ? explain_json(view) : request.html.empty() ? explain_text(view) : "";
}

/// `explain elementwise --expr '...' --rows M --cols N [--unfused]`.
Result<std::string> explain_elementwise(const Session& session, const DataFiles& files, const ExplainRequest& request,
                                        const std::vector<std::string>& arguments) {
  ElementwiseRequest e;
  e.expression = request.expression;
  if (!request.dtype.empty()) e.dtype = request.dtype;
  // The same flags as for any operator: a formula of two dimensions and a flag.
  static const char* kFormula =
      R"({"schema": "roofgen.work/1", "op": "elementwise", "title": "a chain of operations on tensors, --expr 'relu(x + bias[n])'",
    "dims": [{"name": "rows", "help": "rows"}, {"name": "cols", "help": "elements of a row"}],
    "flags": [{"name": "unfused", "help": "every operation a kernel of its own"}], "forms": [{"name": "fused", "kernels": [{"name": "k"}]}]})";
  ROOFGEN_TRY(const WorkFormula shape, WorkFormula::parse(kFormula, "elementwise"));
  if (e.expression.empty() || arguments.empty())
    return fmt::format(
        "{}\nFunctions of --expr; x is rows x cols, bias[n] one value per column, w[m] one per row, alpha, beta and "
        "scale are scalars:\n{}",
        work_help(shape), elementwise_functions());
  ROOFGEN_TRY(const WorkRequest asked, parse_work_flags(shape, arguments));
  ROOFGEN_TRY(const OpWork checked, shape.evaluate(asked));
  e.rows = checked.dims.at("rows");
  e.cols = checked.dims.at("cols");
  e.unfused = checked.flags.at("unfused");
  ROOFGEN_TRY(OpWork work, elementwise_work(e));
  return shown(session, files, request, std::move(work), nullptr, {});
}

}  // namespace

void ExplainRequest::declare(FlagSet app) {
  app.keep_rest();
  rest = [app] { return app.rest(); };
  app.add("op", op, "operator; without a name: lists the operators; `explain OP` alone lists its flags");
  app.add("--expr", expression, "of elementwise: the chain, like 'relu(x + bias[n])'");
  app.add("--dims", dims, "dimensions as M=128,N=4096, instead of --M 128 --N 4096").split(',');
  app.add("--device", device,
          fmt::format("device of the catalogue, or gpu: the one in this machine [{}]", kDefaultDevice));
  profile.declare(app);
  app.add("--dtype", dtype, "dtype of all operands that have no --<operand>-dtype [bf16]");
  app.add("--math-dtype", math_dtype, "operand format of the matrix units [the widest operand]");
  app.add("--acc-dtype", acc_dtype, "accumulator format of the matrix units [fp32, int32, fp64]");
  app.add("--softmax-flops", softmax_flops, "FLOPs counted per softmax element, in addition to MMA FLOPs [0]");
  app.add("--ceilings", ceilings, "datasheet or sustained [datasheet]");
  app.add("--html", html, "write a self-contained page of figures here");
  app.add_switch("--json", json, "as JSON (docs/use/explain.md)");
}

Result<std::string> explain(const Session& session, const ExplainRequest& request) {
  if (!(request.softmax_flops >= 0 && request.softmax_flops <= 1000))
    return Error{Exit::kUsage, fmt::format("--softmax-flops {}: 0 to 1000 was expected", request.softmax_flops)};
  const DataFiles files(session.data_dirs);
  if (request.op.empty() || request.op == "list") return list_operators(files);
  std::vector<std::string> arguments = request.dims;
  for (std::string& word : request.rest()) arguments.push_back(std::move(word));
  if (request.op == "elementwise") return explain_elementwise(session, files, request, arguments);
  ROOFGEN_TRY(const WorkFormula formula, WorkFormula::load(files, request.op));
  if (arguments.empty()) return work_help(formula);
  ROOFGEN_TRY(WorkRequest asked, parse_work_flags(formula, arguments));
  if (!request.dtype.empty()) asked.dtypes[""] = request.dtype;
  asked.math_dtype = request.math_dtype;
  asked.accumulate = request.acc_dtype;
  asked.softmax_flops = request.softmax_flops;
  ROOFGEN_TRY(OpWork work, formula.evaluate(asked));
  return shown(session, files, request, std::move(work), &formula, asked);
}

}  // namespace roofgen

// roofgen report RESULT.json: a result again, as text, page or data, without running anything.
#include <fmt/format.h>

#include <cmath>

#include "base/json_text.h"
#include "cli/cli.h"
#include "roofline/analyses/figures.h"
#include "roofline/analyses/model.h"
#include "roofline/plot/plot.h"
#include "roofline/views/views.h"
#include "roofline/work.h"
#include "tuner/session/profile_flags.h"
#include "tuner/views/json.h"
#include "tuner/views/page.h"
#include "tuner/whatif/whatif.h"

namespace roofgen::cli {
namespace {

struct ReportFlags {
  std::string file, html;
};

/// The work an explanation was about, and its formula where it has one (a chain of operations has none).
struct Explained {
  OpWork work;
  std::optional<WorkFormula> formula;
};

Result<Explained> explained(const Json& j, const WorkRequest& request, const DataFiles& files) {
  const std::string op = j.at("op").get<std::string>();
  if (op == "elementwise") {
    ElementwiseRequest e;
    e.expression = j.at("title").get<std::string>().substr(std::string("y = ").size());
    e.rows = request.dims.at("rows");
    e.cols = request.dims.at("cols");
    e.dtype = request.dtypes.at("x");
    e.unfused = request.flags.at("unfused");
    ROOFGEN_TRY(OpWork work, elementwise_work(e));
    return Explained{std::move(work), std::nullopt};
  }
  ROOFGEN_TRY(WorkFormula formula, WorkFormula::load(files, op));
  ROOFGEN_TRY(OpWork work, formula.evaluate(request));
  return Explained{std::move(work), std::move(formula)};
}

/// A number of the document is what is computed from it now; else the formulas or the document have changed.
Result<void> same_number(const Json& j, const char* key, double now, const std::string& file) {
  const double then = j.at(key).get<double>();
  if (std::fabs(then - now) <= 1e-9 * std::fabs(now)) return {};
  return Error{Exit::kUsage,
               fmt::format("{} is {:.17g} here and {:.17g} by the formulas of this roofgen: the result is of another "
                           "version, or was changed",
                           key, then, now),
               {file}};
}

/// An explanation is a formula: what the document asked for is evaluated again.
Result<plot::Page> explain_page_of(const Json& j, const std::string& file, const DataFiles& files) {
  try {
    WorkRequest request;
    ROOFGEN_GET(j, request, dims, flags)
    if (j.contains("dtypes")) j.at("dtypes").get_to(request.dtypes);
    ROOFGEN_GET(j, request, math_dtype, accumulate, softmax_flops)
    ROOFGEN_TRY(const RoofSet set, parse_roof_set(j.at("ceilings").get<std::string>()));
    ROOFGEN_TRY(const Device device, find_device(files, j.at("device").get<std::string>(), ProfileFlags{}, warn));
    ROOFGEN_TRY(Explained about, explained(j, request, files));
    ROOFGEN_TRY(const Explanation e, explain(device, std::move(about.work), set));
    ROOFGEN_CHECK(same_number(j, "flops", e.flops, file));
    ROOFGEN_CHECK(same_number(j, "dram_bytes", e.dram_bytes, file));
    return explain_page(device, e, about.formula ? intensity_lines(*about.formula, request, e) : std::nullopt);
  } catch (const std::exception& e) {
    // A member that is missing or of another type, or a title that is no expression.
    return Error{Exit::kUsage, fmt::format("not a whole explanation: {}", e.what()), {file}};
  }
}

/// So is a model's run.
Result<plot::Page> model_page_of(const Json& j, const std::string& file, const DataFiles& files) {
  try {
    ModelRequest request;
    j.at("weights").get_to(request.dtypes);
    ROOFGEN_GET(j, request, phase, tp)
    const Json& assumed = j.at("assumptions");
    ROOFGEN_GET(assumed, request, bandwidth_efficiency, compute_efficiency, softmax_flops)
    request.launches = assumed.at("launches") == "graph" ? Launches::kGraph : Launches::kSeparate;
    ROOFGEN_TRY(request.roofs, parse_roof_set(j.at("ceilings").get<std::string>()));
    ROOFGEN_TRY(const Model model, load_model(files, j.at("model").get<std::string>()));
    ROOFGEN_TRY(const Device device, find_device(files, j.at("device").get<std::string>(), ProfileFlags{}, warn));
    const auto phase = std::find_if(model.phases.begin(), model.phases.end(),
                                    [&](const ModelPhase& p) { return p.name == request.phase; });
    if (phase == model.phases.end())
      return Error{Exit::kUsage, fmt::format("{} has no phase \"{}\"", model.name, request.phase), {file}};
    std::vector<int64_t> batches, lengths;
    const auto add = [](std::vector<int64_t>& list, int64_t value) {
      if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
    };
    for (const Json& point : j.at("series")) {
      add(batches, point.at("batch").get<int64_t>());
      add(lengths, point.at(phase->length).get<int64_t>());
    }
    ModelView view{model, device, std::move(batches), std::move(lengths), {}, 0};
    ROOFGEN_TRY(view.parameters, parameter_count(model));
    ROOFGEN_TRY(view.runs, sweep_model(model, device, request, view.batches, view.lengths));
    for (const Json& point : j.at("series"))
      for (const ModelRun& r : view.runs)
        if (r.request.batch == point.at("batch").get<int64_t>() &&
            r.request.length == point.at(phase->length).get<int64_t>()) {
          ROOFGEN_CHECK(same_number(point, "flops", r.flops, file));
          ROOFGEN_CHECK(same_number(point, "dram_bytes", r.dram_bytes, file));
        }
    return model_page(view);
  } catch (const Json::exception& e) {
    return Error{Exit::kUsage, fmt::format("not a whole model run: {}", e.what()), {file}};
  }
}

Result<plot::Page> page_of(const JsonFile& file, const DataFiles& files) {
  const Json& j = file.root();
  const std::string schema =
      j.is_object() && j.contains("schema") && j["schema"].is_string() ? j["schema"].get<std::string>() : "";
  if (schema == kTuneSchema) return tune_page(j, file.file(), files);
  if (schema == kWhatIfSchema) return whatif_page(j, file.file(), files);
  if (schema == kExplainSchema) return explain_page_of(j, file.file(), files);
  if (schema == kModelSchema) return model_page_of(j, file.file(), files);
  if (schema == plot::kPageSchema) return plot::read_page(json_line(j), file.file());
  return Error{Exit::kUsage,
               schema.empty()
                   ? "no result of roofgen: a member \"schema\" was expected"
                   : fmt::format("no report is drawn of schema \"{}\"; {}, {}, {}, {} or {} was expected", schema,
                                 kTuneSchema, kWhatIfSchema, kExplainSchema, kModelSchema, plot::kPageSchema),
               schema.empty() ? Where{file.file()} : file.find(schema)};
}

Result<Exit> run(const Terminal& terminal, const ReportFlags& flags) {
  const DataFiles files(terminal.data_dirs);
  ROOFGEN_TRY(std::string text, read_input(flags.file));
  auto parsed = JsonFile::parse(std::move(text), flags.file);
  if (!parsed) {
    Error error = std::move(parsed).error();
    error.exit = Exit::kUsage;
    return error;
  }
  const JsonFile file = std::move(*parsed);
  ROOFGEN_TRY(const plot::Page page, page_of(file, files));
  return show_page(page, flags.html, files, terminal);
}

}  // namespace

Run declare_report(FlagSet app) {
  auto flags = std::make_shared<ReportFlags>();
  app.add("result", flags->file,
          "a document that tune, whatif, explain, model or roofline printed with --json; - is standard input")
      .required();
  app.add("--html", flags->html, "write a self-contained page here instead of text");
  app.footer("Example: roofgen report result.json --html result.html");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli

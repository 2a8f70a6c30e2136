#include "tuner/bundle/finished.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/build_id.h"
#include "base/target.h"
#include "generator/space/problem_json.h"
#include "runtime/sass/disassembler.h"
#include "tuner/bundle/saved_report.h"
#include "tuner/views/json.h"

namespace roofgen {
namespace {

/// All that a search depends on but the rows of the store. Nothing: it depends on a GPU, on a clock or on the other
/// problems of its run.
std::optional<StoreKey> key_of(const TuneContext& context, const std::vector<Problem>& problems,
                               const TuneOptions& options, double within) {
  const std::string version = finished_version();
  if (!context.store || context.gpu || options.time_limit_s > 0 || options.launches > 0 || !options.siblings.empty() ||
      version.empty())
    return std::nullopt;
  StoreKey out{"search", "", version, ""};
  for (const Problem& p : problems) out.slice += to_string(p) + "; ";
  if (problems.size() > 1) out.slice += fmt::format("within={}", within);
  for (const auto& [name, value] : options.pins) out.slice += fmt::format(" {}={}", name, to_string(value));
  out.slice += fmt::format(" variants={} strategy={} evals={} effort={} until={} cold={} seed={}",
                           fmt::join(options.variants, ","), options.strategy, options.evals, to_string(options.effort),
                           options.until, options.cold, options.seed);
  // The digest of an empty program is that of compiler, architecture and options.
  out.simulator += fmt::format(" {} {} nvdisasm={}", context.executor.info().name, context.compiler.digest({}),
                               context.timer ? sass::nvdisasm_path() : "");
  out.device = fmt::format("{} {} arch_specific={} family_specific={}", context.device.name, context.device.arch,
                           context.device.arch_specific, context.device.family_specific);
  for (const auto& [name, cell] : context.device.cells)
    out.device += fmt::format(" {}={} {}", name, cell.value, to_string(cell.origin));
  return out;
}

/// A pipeline of the manifest; `stages`: with the names of the kernels' stages.
template <class Stage>
Json pipeline_json(const Device& device, const std::string& variant, const std::vector<Stage>& stages,
                   std::string Stage::*name, const std::vector<TunedKernel>& kernels) {
  Json out{{"arch", device.arch},
           {"variant", variant},
           {"limits", limits_json({{"device", expr::Value(limits(device))}})},
           {"kernels", Json::array()}};
  for (size_t i = 0; i < kernels.size(); ++i) {
    out["kernels"].push_back(recorded_kernel_json(stages[i].*name, kernels[i].program, kernels[i].binary));
    if (is_specific(kernels[i].binary.arch)) out["arch"] = kernels[i].binary.arch;
  }
  return out;
}

/// `report`: of a single problem.
void put(const TuneContext& context, const StoreKey& key, const Problem& problem, Json pipelines, Json table,
         Json report) {
  Json manifest{{"schema", kManifestSchema},
                {"name", problem.op},
                {"problem", problem_json(problem)},
                {"compiler", context.compiler.description()},
                {"pipelines", std::move(pipelines)}};
  if (!table.is_null()) manifest["table"] = std::move(table);
  const std::string payload = json_line({{"manifest", std::move(manifest)}, {"report", std::move(report)}});
  // Another process with the same search has the same result.
  if (const auto claim = context.store->claim(key); claim && context.store->lookup(key) != payload)
    context.store->put(key, payload);
}

/// The stored result; an absent one has no members.
Json row_of(const TuneContext& context, const std::vector<Problem>& problems, const TuneOptions& options,
            double within) {
  const std::optional<StoreKey> key = key_of(context, problems, options, within);
  const auto payload = key ? context.store->lookup(*key) : std::nullopt;
  return payload ? parse_json(*payload) : Json();
}

}  // namespace

Json evidence(const TuneReport& report) {
  const Json all = tune_json(report);
  Json out;
  for (const char* member : {"device", "strategy", "floor", "score", "score_datasheet"}) out[member] = all[member];
  for (const Json& v : all["variants"])
    if (v["name"] == report.best_variant) out["variant"] = v;
  return out;
}

std::string finished_version() { return build_id(reinterpret_cast<const void*>(&finished_version)); }

void note_finished(const TuneContext& context, const Problem& problem, const TuneOptions& options,
                   const TuneResult& result) {
  const TuneReport& report = result.report;
  const std::optional<StoreKey> key = key_of(context, {problem}, options, 0);
  const auto winners = result.winners.find(report.best_variant);
  if (!key || report.interrupted || winners == result.winners.end()) return;
  Json pipeline = pipeline_json(context.device, report.best_variant, report.find(report.best_variant)->kernels,
                                &KernelReport::stage, winners->second);
  pipeline["result"] = evidence(report);
  put(context, *key, problem, Json::array({std::move(pipeline)}), {}, saved_report(report));
}

void note_finished(const TuneContext& context, const std::vector<Problem>& problems, const TuneOptions& options,
                   double within, const FamilyResult& result) {
  const std::optional<StoreKey> key = key_of(context, problems, options, within);
  if (!key) return;
  Json pipelines = Json::array();
  std::string arch = context.device.arch;
  for (size_t k = 0; k < result.kernels.size(); ++k) {
    const DispatchKernel& kernel = result.table.kernels[k];
    pipelines.push_back(
        pipeline_json(context.device, kernel.variant, kernel.stages, &DispatchKernel::Stage::name, result.kernels[k]));
    const auto own = pipelines.back()["arch"].get<std::string>();
    if (is_specific(own)) arch = own;
  }
  // The bundle is for devices that run all kernels of the table.
  for (Json& pipeline : pipelines) pipeline["arch"] = arch;
  put(context, *key, result.table.shapes.front().problem, std::move(pipelines), dispatch_json(result.table), {});
}

std::optional<Manifest> recall_finished(const TuneContext& context, const std::vector<Problem>& problems,
                                        const TuneOptions& options, double within) {
  const Json row = row_of(context, problems, options, within);
  if (!row.contains("manifest")) return std::nullopt;
  auto manifest = read_manifest(json_line(row["manifest"]), "the store", context.files);
  return manifest ? std::optional(std::move(*manifest)) : std::nullopt;
}

std::optional<TuneReport> recall_report(const TuneContext& context, const Problem& problem,
                                        const TuneOptions& options) {
  const Json row = row_of(context, {problem}, options, 0);
  if (!row.contains("report")) return std::nullopt;
  auto report = read_report(row["report"]);
  auto words = op_words(context.files, problem.op);
  if (!report || !words) return std::nullopt;
  report->problem = problem;
  report->words = std::move(*words);
  report->device = context.device;
  return report;
}

}  // namespace roofgen

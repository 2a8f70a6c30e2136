#include "tuner/bundle/finished.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/build_id.h"
#include "generator/problem_json.h"
#include "runtime/sass/disassembler.h"
#include "tuner/views/views.h"

namespace roofgen {
namespace {

/// All that a search depends on but the rows of the store. Nothing: it depends on a GPU, on a clock or on the other
/// problems of its run.
std::optional<StoreKey> key_of(const TuneContext& context, const Problem& problem, const TuneOptions& options) {
  const std::string version = finished_version();
  if (!context.store || context.gpu || options.time_limit_s > 0 || options.launches > 0 || !options.siblings.empty() ||
      version.empty())
    return std::nullopt;
  StoreKey out{"search", to_string(problem), version, ""};
  for (const auto& [name, value] : options.pins) out.slice += fmt::format(" {}={}", name, to_string(value));
  out.slice += fmt::format(" variants={} strategy={} evals={} effort={} until={} cold={} seed={}",
                           fmt::join(options.variants, ","), options.strategy, options.evals, to_string(options.effort),
                           options.until, options.cold, options.seed);
  // The digest of an empty program is that of compiler, architecture and options.
  out.simulator += fmt::format(" {} {} nvdisasm={}", context.executor.info().name, context.compiler.digest({}),
                               context.timer ? sass::nvdisasm_path() : "");
  out.device =
      fmt::format("{} {} arch_specific={}", context.device.name, context.device.arch, context.device.arch_specific);
  for (const auto& [name, cell] : context.device.cells)
    out.device += fmt::format(" {}={} {}", name, cell.value, to_string(cell.origin));
  return out;
}

}  // namespace

std::string evidence(const TuneReport& report) {
  const Json all = parse_json(tune_json(report));
  Json out;
  for (const char* member : {"device", "strategy", "floor", "score", "score_datasheet"}) out[member] = all[member];
  for (const Json& v : all["variants"])
    if (v["name"] == report.best_variant) out["variant"] = v;
  return json_line(out);
}

std::string finished_version() { return build_id(reinterpret_cast<const void*>(&finished_version)); }

void note_finished(const TuneContext& context, const Problem& problem, const TuneOptions& options,
                   const TuneResult& result) {
  const TuneReport& report = result.report;
  const std::optional<StoreKey> key = key_of(context, problem, options);
  const auto winners = result.winners.find(report.best_variant);
  if (!key || report.interrupted || winners == result.winners.end()) return;
  Json pipeline{{"arch", context.device.arch},
                {"variant", report.best_variant},
                {"limits", limits_json({{"device", expr::Value(limits(context.device))}})},
                {"kernels", Json::array()},
                {"result", parse_json(evidence(report))}};
  const std::vector<KernelReport>& kernels = report.find(report.best_variant)->kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const TunedKernel& k = winners->second[i];
    pipeline["kernels"].push_back(recorded_kernel_json(kernels[i].stage, k.program, k.binary));
    if (k.binary.arch.ends_with('a')) pipeline["arch"] = k.binary.arch;
  }
  const std::string payload = json_line({{"schema", kManifestSchema},
                                         {"name", problem.op},
                                         {"problem", problem_json(problem)},
                                         {"compiler", context.compiler.description()},
                                         {"pipelines", Json::array({pipeline})}});
  // Another process with the same search has the same result.
  if (const auto claim = context.store->claim(*key); claim && context.store->lookup(*key) != payload)
    context.store->put(*key, payload);
}

std::optional<Manifest> recall_finished(const TuneContext& context, const Problem& problem,
                                        const TuneOptions& options) {
  const std::optional<StoreKey> key = key_of(context, problem, options);
  const auto payload = key ? context.store->lookup(*key) : std::nullopt;
  if (!payload) return std::nullopt;
  auto manifest = read_manifest(*payload, "the store");
  return manifest ? std::optional(std::move(*manifest)) : std::nullopt;
}

}  // namespace roofgen

#include "tuner/session/winner.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "base/output_file.h"
#include "base/sha256.h"
#include "generator/space/problem_json.h"

namespace roofgen {
namespace {

constexpr const char* kSchema = "roofgen.winner.1";

/// The file of all searches that might give the same winner; empty: nothing is kept.
std::string path_of(const Session& session, const Workbench& bench, const TuneOptions& options) {
  if (session.cache.empty() || !session.data_dirs.empty()) return "";
  std::string key = fmt::format("{}\n{}\n{} {} {} {}\n{}\n", version(), to_string(bench.problem), bench.device.name,
                                bench.device.arch_specific, bench.device.family_specific, cells_text(bench.device),
                                bench.compiler->description());
  for (const auto& [name, value] : options.pins) key += fmt::format("{}={}\n", name, to_string(value));
  for (const std::string& variant : options.variants) key += variant + "\n";
  return session.cache + "/winners/" + sha256(key) + ".json";
}

/// The candidates that a search was to try; a search with another end than their number promises none.
uint64_t budget(const Workbench& bench, const TuneOptions& options) {
  if (options.time_limit_s > 0 || options.until > 0 || options.launches > 0) return 1;
  if (options.strategy == "exhaustive") return UINT64_MAX;
  if (options.evals > 0) return options.evals;
  if (options.effort == Effort::kNone) return 1;
  const uint64_t quick = std::max(bench.op->default_evals(), bench.gpu ? kDefaultGpuEvals : 0);
  return options.effort == Effort::kFull ? 10 * quick : quick;
}

/// Null: there is no such file, or it is damaged, which is the same.
Json read(const std::string& path) {
  const auto text = path.empty() ? Result<std::string>(Error{}) : read_input(path);
  if (!text) return {};
  const auto file = JsonFile::parse(*text, path);
  const auto text_of = [](const Json& object, const char* member) {
    return object.is_object() && object.contains(member) && object[member].is_string();
  };
  if (!file || !text_of(file->root(), "schema") || file->root()["schema"] != kSchema) return {};
  const Json& root = file->root();
  if (!text_of(root, "variant") || !root.contains("stages") || !root["stages"].is_array() ||
      !root.value("seconds", Json()).is_number() || !root.value("budget", Json()).is_number_unsigned() ||
      !root.value("measured", Json()).is_boolean())
    return {};
  for (const Json& stage : root["stages"])
    if (!text_of(stage, "stage") || !text_of(stage, "digest") || !stage.value("params", Json()).is_object()) return {};
  return root;
}

}  // namespace

void keep_winner(const Session& session, const Workbench& bench, const TuneOptions& options, const TuneReport& report) {
  const VariantReport* const best = report.find(report.best_variant);
  const std::string path = path_of(session, bench, options);
  if (path.empty() || report.interrupted || !best) return;
  const double seconds = best->seconds;
  const bool measured = report.time_origin() == Origin::kMeasured;
  uint64_t tried = budget(bench, options);
  Json stages = Json::array();
  for (const KernelReport& k : best->kernels)
    stages.push_back({{"stage", k.schedule.stage}, {"params", params_json(k.schedule.params)}, {"digest", k.digest}});
  Json winner{{"schema", kSchema}, {"problem", to_string(bench.problem)}, {"device", bench.device.name}};
  winner.update({{"variant", report.best_variant}, {"seconds", seconds}, {"measured", measured}, {"stages", stages}});
  if (const Json known = read(path); !known.is_null()) {
    const bool was_measured = known["measured"].get<bool>();
    if (was_measured && !measured) return;
    if (was_measured == measured) {
      tried = std::max(tried, known["budget"].get<uint64_t>());
      if (known["seconds"].get<double>() <= seconds) winner = known;
    }
  }
  winner["budget"] = tried;
  if (make_directory(session.cache + "/winners")) (void)write_output(path, json_document(winner));
}

void forget_winner(const Session& session, const Workbench& bench, const TuneOptions& options) {
  if (const std::string path = path_of(session, bench, options); !path.empty()) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
}

std::optional<KnownWinner> known_winner(const Session& session, const Workbench& bench, const TuneOptions& options,
                                        bool measured) {
  const Json known = read(path_of(session, bench, options));
  if (known.is_null() || known["budget"].get<uint64_t>() < budget(bench, options)) return std::nullopt;
  if (measured && !known["measured"].get<bool>()) return std::nullopt;
  KnownWinner out;
  ROOFGEN_GET(known, out, variant, seconds, measured)
  for (const Json& stage : known["stages"]) {
    KnownWinner::Stage& s = out.stages.emplace_back();
    stage.at("stage").get_to(s.name);
    stage.at("digest").get_to(s.digest);
    for (const auto& [name, value] : stage["params"].items()) {
      auto param = param_value(value);
      if (!param) return std::nullopt;
      s.params[name] = std::move(*param);
    }
  }
  return out;
}

}  // namespace roofgen

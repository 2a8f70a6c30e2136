// roofgen db: looks into the evaluation store, and exchanges its trials with other tools and other stores.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/json.h"
#include "base/paths.h"
#include "base/shell.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/cli.h"
#include "tuner/bundle/finished.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/store/exchange.h"
#include "tuner/timing/sm_model.h"
#include "tuner/verify/verify.h"

namespace roofgen::cli {
namespace {

struct DbFlags {
  std::string action;
  std::vector<std::string> files;
  TrialFilter filter;
  std::string store, times, format = "t4", output = "-";
  int limit = 20, older = 0;
  bool dry_run = false, json = false;
};

std::string time_cell(const StoredTrial& t) { return t.seconds ? time_text(*t.seconds) : "-"; }
std::string times_cell(const StoredTrial& t) { return t.time_model.empty() ? t.origin : t.time_model; }

void print(const Json& json) { fmt::print("{}", json_document(json)); }

// ---- list and show -----------------------------------------------------------------------------

/// Trials of one problem on one device, from one source.
struct ProblemTrials {
  const StoredTrial* any = nullptr;
  size_t trials = 0, verified = 0;
};

std::vector<ProblemTrials> problems_of(const std::vector<StoredTrial>& trials) {
  std::vector<ProblemTrials> out;
  for (const StoredTrial& t : trials) {
    const auto same = [&](const StoredTrial& a) {
      return a.source == t.source && a.op == t.op && a.problem == t.problem && a.device == t.device;
    };
    if (out.empty() || !same(*out.back().any)) out.push_back({&t});
    ProblemTrials& p = out.back();
    ++p.trials;
    p.verified += t.verified();
  }
  return out;
}

Result<Exit> list(Store& store, const DbFlags& flags) {
  ROOFGEN_TRY(const std::vector<StoredTrial> trials, store.trials(flags.filter));
  ROOFGEN_TRY(const StoredRows rows, store.count());
  const std::vector<ProblemTrials> problems = problems_of(trials);
  if (flags.json) {
    Json all = Json::array();
    for (const ProblemTrials& p : problems)
      all.push_back({{"op", p.any->op},
                     {"problem", p.any->problem},
                     {"device", p.any->device},
                     {"source", p.any->source},
                     {"trials", p.trials},
                     {"verified", p.verified}});
    print({{"schema", "roofgen.db-list.1"},
           {"evaluations", rows.evaluations},
           {"trials", rows.trials},
           {"problems", all}});
    return Exit::kOk;
  }
  fmt::print("store     {} evaluations, {} trials\n\n", rows.evaluations, rows.trials);
  TextTable table({"problem", "device", "source", "trials", "verified"});
  table.left(0).left(1).left(2);
  for (const ProblemTrials& p : problems)
    table.row({p.any->source == StoredTrial::kOwn ? p.any->problem : fmt::format("{} {}", p.any->op, p.any->problem),
               p.any->device, p.any->source, fmt::format("{}", p.trials), fmt::format("{}", p.verified)});
  fmt::print("{}", table.str());
  return Exit::kOk;
}

Json trial_json(const StoredTrial& t) {
  Json j{{"variant", t.variant}, {"stage", t.stage}, {"params", parse_json(t.params)}, {"outcome", t.outcome}};
  if (!t.reason.empty()) j["reason"] = t.reason;
  j["seconds"] = t.seconds;
  j["origin"] = t.origin;
  j["time_model"] = t.time_model;
  j["floor_seconds"] = t.floor_seconds;
  ROOFGEN_PUT(j, t, source, op, problem, device, binary, executor, compiler, release, created)
  return j;
}

std::string params_text(const StoredTrial& t) {
  std::string out;
  const Json params = parse_json(t.params);
  for (auto p = params.begin(); p != params.end(); ++p)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", p.key(), json_words(p.value()));
  return out;
}

/// A whole text means its problem, not the others in whose texts it is.
Result<std::vector<StoredTrial>> chosen_trials(Store& store, const TrialFilter& filter) {
  ROOFGEN_TRY(std::vector<StoredTrial> trials, store.trials(filter));
  const auto other = [&](const StoredTrial& t) { return t.problem != filter.problem; };
  if (!std::ranges::all_of(trials, other)) std::erase_if(trials, other);
  return trials;
}

Result<Exit> show(Store& store, const DbFlags& flags) {
  ROOFGEN_TRY(const std::vector<StoredTrial> trials, chosen_trials(store, flags.filter));
  const std::vector<ProblemTrials> problems = problems_of(trials);
  if (problems.empty()) return Error{Exit::kUsage, "no trial in the store fits; roofgen db list shows the problems"};
  if (problems.size() > 1) {
    Error error{Exit::kUsage, fmt::format("{} problems fit; choose one of them:", problems.size())};
    for (const ProblemTrials& p : problems)
      error.notes.push_back(fmt::format("  roofgen db show {} --device {} --source {}", shell_word(p.any->problem),
                                        shell_word(p.any->device), shell_word(p.any->source)));
    return error;
  }
  if (flags.json) {
    Json all = Json::array();
    for (const StoredTrial& t : trials) all.push_back(trial_json(t));
    print({{"schema", "roofgen.db-show.1"}, {"trials", all}});
    return Exit::kOk;
  }
  const StoredTrial& first = trials.front();
  fmt::print("problem   {}\ndevice    {}\nsource    {}\n", first.problem, first.device,
             first.source == StoredTrial::kOwn ? "roofgen" : first.source + ", recorded by another tool");
  std::string space;
  size_t shown = 0, left_out = 0;
  TextTable table({"time", "of", "outcome", "parameters"});
  table.left(1).left(2).left(3);
  TextTable none = table;
  const auto flush = [&] {
    if (shown > 0) fmt::print("{}", table.str());
    if (left_out > 0) fmt::print("... {} more (--limit)\n", left_out);
    table = none;
    shown = left_out = 0;
  };
  for (const StoredTrial& t : trials) {
    const std::string here = t.stage.empty() || t.stage == t.variant ? t.variant : t.variant + " " + t.stage;
    if (shown == 0 || here != space) {
      flush();
      space = here;
      fmt::print("\n{}\n", space.empty() ? "trials, best first" : space + ", best first");
    }
    if (shown >= static_cast<size_t>(flags.limit)) {
      ++left_out;
      continue;
    }
    ++shown;
    table.row({time_cell(t), times_cell(t), t.outcome, params_text(t)});
    if (!t.reason.empty()) table.row({"", "", "", "  " + t.reason.substr(0, t.reason.find('\n'))});
  }
  flush();
  return Exit::kOk;
}

// ---- Exchange ----------------------------------------------------------------------------------

Result<Exit> export_trials(const Terminal& terminal, Store& store, const DbFlags& flags) {
  if (flags.output != "-") ROOFGEN_CHECK(terminal.outputs().check({flags.output}));
  ROOFGEN_TRY(const std::vector<StoredTrial> trials, chosen_trials(store, flags.filter));
  ROOFGEN_TRY(const Exported out, recording_of(trials, flags.times));
  ROOFGEN_TRY(const std::string text, write_recording(out.recording, flags.format));
  if (flags.output == "-")
    fmt::print("{}", text);
  else
    ROOFGEN_CHECK(terminal.outputs().write(flags.output, text));
  fmt::print(stderr, "roofgen: db: {} points, times: {}{}\n", out.recording.points.size(), out.recording.origin,
             out.left_out > 0 ? fmt::format("; {} trials with other times were left out (--times)", out.left_out) : "");
  return Exit::kOk;
}

Result<void> need_files(const DbFlags& flags) {
  if (flags.files.empty()) return Error{Exit::kUsage, fmt::format("db {}: a file was expected", flags.action)};
  return {};
}

Result<Exit> import_files(Store& store, const DbFlags& flags) {
  ROOFGEN_CHECK(need_files(flags));
  // All files are read before the first row is written.
  std::vector<StoredTrial> all;
  for (const std::string& file : flags.files) {
    ROOFGEN_TRY(std::string bytes, read_input(file));
    ROOFGEN_TRY(const std::vector<Recording> recordings, read_recordings(std::move(bytes), file));
    for (const Recording& r : recordings)
      for (StoredTrial& t : trials_of(r)) all.push_back(std::move(t));
  }
  ROOFGEN_TRY(const int64_t added, store.add(all));
  if (flags.json)
    print({{"schema", "roofgen.db-import.1"}, {"points", all.size()}, {"added", added}});
  else
    fmt::print("{} points read, {} of them new\n", all.size(), added);
  return Exit::kOk;
}

Result<Exit> merge(Store& store, const DbFlags& flags) {
  ROOFGEN_CHECK(need_files(flags));
  for (const std::string& file : flags.files)
    if (!std::filesystem::exists(file)) return Error{Exit::kUsage, "no such file", {file}};
  StoredRows added;
  for (const std::string& file : flags.files) {
    ROOFGEN_TRY(const StoredRows rows, store.merge(file));
    added.evaluations += rows.evaluations;
    added.trials += rows.trials;
  }
  if (flags.json)
    print({{"schema", "roofgen.db-merge.1"}, {"evaluations", added.evaluations}, {"trials", added.trials}});
  else
    fmt::print("added     {} evaluations, {} trials\n", added.evaluations, added.trials);
  return Exit::kOk;
}

Result<Exit> collect(Store& store, const DbFlags& flags, const std::string& path) {
  std::error_code ignored;
  const auto before = static_cast<double>(std::filesystem::file_size(path, ignored));
  ROOFGEN_TRY(
      const StoredRows dropped,
      store.collect({{kEvaluationVersion, timing::model_version(), finished_version()}, flags.older, flags.dry_run}));
  const auto after = static_cast<double>(std::filesystem::file_size(path, ignored));
  if (flags.json)
    print({{"schema", "roofgen.db-gc.1"},
           {"dry_run", flags.dry_run},
           {"evaluations", dropped.evaluations},
           {"trials", dropped.trials}});
  else
    fmt::print("{} {} evaluations, {} trials{}\n", flags.dry_run ? "would drop" : "dropped", dropped.evaluations,
               dropped.trials,
               flags.dry_run ? "" : fmt::format("; {} before, {} after", bytes_text(before), bytes_text(after)));
  return Exit::kOk;
}

Result<Exit> run_db(const Terminal& terminal, const DbFlags& given) {
  DbFlags flags = given;
  static const std::vector<std::string> kActions = {"list", "show", "export", "import", "merge", "gc"};
  if (std::find(kActions.begin(), kActions.end(), flags.action) == kActions.end())
    return Error{Exit::kUsage,
                 fmt::format("unknown action \"{}\"{}", flags.action, did_you_mean(flags.action, kActions))};
  const bool takes_files = flags.action == "import" || flags.action == "merge";
  if (!takes_files && !flags.files.empty()) {
    flags.filter.problem = flags.files.front();
    if (flags.files.size() > 1 || flags.action == "gc")
      return Error{Exit::kUsage, fmt::format("db {}: \"{}\" was not expected", flags.action, flags.files.back())};
  }
  const bool named = !flags.store.empty();
  if (!named && data_home().empty())
    return Error{Exit::kUnavailable, "no folder for the store is known (ROOFGEN_DATA_HOME); --store FILE names one"};
  const std::string path = named ? flags.store : data_home() + "/evaluations.sqlite";
  if (named && flags.action != "merge" && flags.action != "import" && !std::filesystem::exists(path))
    return Error{Exit::kUsage, "no such file", {path}};
  // A file that the user names may be anything: it is not renamed.
  ROOFGEN_TRY(Store store, Store::open(path, warn, named ? Store::Damage::kAsItIs : Store::Damage::kRepair));
  if (flags.action == "list") return list(store, flags);
  if (flags.action == "show") return show(store, flags);
  if (flags.action == "export") return export_trials(terminal, store, flags);
  if (flags.action == "import") return import_files(store, flags);
  if (flags.action == "merge") return merge(store, flags);
  return collect(store, flags, path);
}

}  // namespace

Run declare_db(FlagSet app) {
  auto flags = std::make_shared<DbFlags>();
  app.add("ACTION", flags->action, "list, show, export, import, merge or gc").required();
  app.add("TEXT_OR_FILE", flags->files,
          "list, show, export: part of the problem's text; import: recorded spaces; merge: other stores");
  app.add("--op", flags->filter.op, "only of this op").group("Choice of trials");
  app.add("--device", flags->filter.device, "only of this device").group("Choice of trials");
  app.add("--variant", flags->filter.variant, "only of this variant").group("Choice of trials");
  app.add("--stage", flags->filter.stage, "only of this stage").group("Choice of trials");
  app.add("--source", flags->filter.source, "only from here: roofgen, or the format of an imported file")
      .group("Choice of trials");
  app.add("--times", flags->times, "export: interval model, event model, closed form, measured or recorded [most]");
  app.add("--format", flags->format,
          "export: cachefile (Kernel Tuner), t4, t1 (parameters alone) or wisdom (Kernel Launcher) [t4]");
  app.add("-o,--output", flags->output, "export: write to this file [standard output]");
  app.add("--limit", flags->limit, "show: trials of each space [20]").range(1, 1000000);
  app.add("--older", flags->older, "gc: drop rows older than so many days, too").range(1, 100000);
  app.add_switch("--dry-run", flags->dry_run, "gc: count the rows only");
  app.add("--store", flags->store, "another store than the data folder's");
  app.add_switch("--json", flags->json, "as JSON");
  app.footer(
      "Example: roofgen db export \"gemm bf16 K=64\" --format t4 -o space.json\ndocs/use/store.md explains the store "
      "and "
      "the formats.");
  return [flags](const Terminal& terminal) { return run_db(terminal, *flags); };
}

}  // namespace roofgen::cli

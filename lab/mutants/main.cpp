// roofgen_mutants: plants one fault at a time in verified kernels, and counts those that the default verification
// rejects (docs/evidence/mutants.md).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/json.h"
#include "base/pool.h"
#include "base/text_table.h"
#include "cli/progress.h"
#include "lab/mutants/kernel_file.h"
#include "tuner/session/flags.h"

namespace roofgen::mutants {
namespace {

struct Flags {
  std::string only, rule, group_name = "data";
  uint64_t sample = 100, seed = 1;
  int jobs = 0;
  bool list = false, json = false;
  double min_score = 0;

  int threads() const { return jobs > 0 ? jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency())); }
  Group group() const { return group_name == "order" ? Group::kOrder : Group::kData; }
  void declare(FlagSet app, const char* counted) {
    app.add("--template", only, "only kernels with this in their name or their template's");
    app.add("--rule", rule, "only rules with this in their name");
    app.add("--sample", sample, fmt::format("mutants of each {} [{}]", counted, sample));
    app.add("--seed", seed, "of the sample [1]");
    app.add("--jobs", jobs, "threads [cores]").range(1, 256);
    app.add_switch("--list", list, "print the mutants, test none");
    app.add_switch("--json", json, "one JSON document");
    app.add("--min-score", min_score,
            "exit 4 below this score, or when a mutant without its barrier, wait, fence or "
            "store survives")
        .number_from(0, 1, "a score");
  }
};

struct Tally {
  uint64_t by_fate[6] = {};
  void add(const Mutant& m) { ++by_fate[static_cast<size_t>(m.fate)]; }
  uint64_t of(Fate fate) const { return by_fate[static_cast<size_t>(fate)]; }
  uint64_t rejected() const { return of(Fate::kFinding) + of(Fate::kComparison); }
  uint64_t faults() const { return rejected() + of(Fate::kSurvived); }
  double score() const { return faults() ? static_cast<double>(rejected()) / static_cast<double>(faults()) : 1; }
};

using Tallies = std::map<std::string, Tally>;

Tallies tally(const std::vector<Mutant>& mutants, const std::function<std::string(const Mutant&)>& key) {
  Tallies out;
  for (const Mutant& m : mutants) out[key(m)].add(m);
  return out;
}

std::string table(const char* head, const Tallies& tallies) {
  TextTable out({head, "mutants", "refused", "equivalent", "tolerated", "finding", "comparison", "survived", "score"});
  out.left(0);
  Tally all;
  const auto row = [&](const std::string& name, const Tally& t) {
    const uint64_t mutants = t.faults() + t.of(Fate::kRefused) + t.of(Fate::kEquivalent) + t.of(Fate::kTolerated);
    out.row({name, std::to_string(mutants), std::to_string(t.of(Fate::kRefused)),
             std::to_string(t.of(Fate::kEquivalent)), std::to_string(t.of(Fate::kTolerated)),
             std::to_string(t.of(Fate::kFinding)), std::to_string(t.of(Fate::kComparison)),
             std::to_string(t.of(Fate::kSurvived)), fmt::format("{:.1f} %", 100 * t.score())});
  };
  for (const auto& [name, t] : tallies) {
    row(name, t);
    for (size_t i = 0; i < 6; ++i) all.by_fate[i] += t.by_fate[i];
  }
  row("all", all);
  return out.str();
}

std::string line_of(const Mutant& m) {
  const std::string ptx = m.ptx_line ? fmt::format(" ptx {}", m.ptx_line) : "";
  return fmt::format("{}: {}:{}{}: {}: {}  ->  {}", m.name(), m.where.file, m.where.line, ptx, m.rule, m.before,
                     m.after);
}

const std::string& by_template(const Mutant& m) { return m.source(); }

void print(const std::vector<Mutant>& mutants) {
  fmt::print("{}\n", table("template", tally(mutants, by_template)));
  fmt::print("{}\n", table("kernel", tally(mutants, [](const Mutant& m) { return m.name(); })));
  fmt::print("{}\n", table("rule", tally(mutants, [](const Mutant& m) { return m.rule; })));
  std::map<std::string, uint64_t> by;
  for (const Mutant& m : mutants)
    if (!m.by.empty()) ++by[fmt::format("{}: {}", to_string(m.fate), m.by)];
  for (const auto& [reason, count] : by) fmt::print("{:6}  {}\n", count, reason);
  for (const Fate fate : {Fate::kSurvived, Fate::kTolerated, Fate::kEquivalent}) {
    fmt::print("\n{}\n", to_string(fate));
    for (const Mutant& m : mutants)
      if (m.fate == fate) fmt::print("  {}{}\n", line_of(m), m.by.empty() ? "" : fmt::format("  ({})", m.by));
  }
}

Json json_of(const std::vector<Mutant>& mutants) {
  Json templates = Json::object(), list = Json::array();
  for (const auto& [name, t] : tally(mutants, by_template)) {
    templates[name]["score"] = t.score();
    for (size_t i = 0; i < 6; ++i) templates[name][to_string(static_cast<Fate>(i))] = t.by_fate[i];
  }
  for (const Mutant& m : mutants) {
    Json callers = Json::array();
    if (m.kernel && m.statement)
      for (const Where& call : m.kernel->callers(*m.statement))
        callers.push_back(fmt::format("{}:{}", call.file, call.line));
    list.push_back({{"kernel", m.name()},
                    {"template", by_template(m)},
                    {"rule", m.rule},
                    {"file", m.where.file},
                    {"line", m.where.line},
                    {"ptx_line", m.ptx_line},
                    {"before", m.before},
                    {"after", m.after},
                    {"fate", to_string(m.fate)},
                    {"by", m.by},
                    {"callers", callers},
                    {"message", m.message}});
  }
  return {{"templates", templates}, {"mutants", list}};
}

/// `decide` queues the mutants and calls its argument after each.
Result<Exit> finish(const Flags& flags, std::vector<Mutant> mutants,
                    const std::function<void(std::vector<Mutant>&, Pool&, const std::function<void()>&)>& decide) {
  if (flags.list) {
    for (const Mutant& m : mutants) fmt::print("{}\n", line_of(m));
    return Exit::kOk;
  }
  {
    std::atomic<uint64_t> done{0};
    const std::function<void()> count = [&] { ++done; };
    Pool pool(flags.threads());
    decide(mutants, pool, count);
    const Session session;
    cli::Progress progress(session, "mutants");
    pool.drain([&] { progress.show("testing mutants", done, mutants.size()); });
  }
  if (flags.json)
    fmt::print("{}", json_document(json_of(mutants)));
  else
    print(mutants);
  for (const auto& [name, t] : tally(mutants, by_template))
    if (t.score() < flags.min_score) {
      fmt::print(stderr, "roofgen_mutants: {} has a score of {:.4f}, below {}\n", name, t.score(), flags.min_score);
      return Exit::kBelowScore;
    }
  const bool unordered = std::any_of(mutants.begin(), mutants.end(), [](const Mutant& m) {
    // Of lines of a template, and of the group of order, no program decides whether the order is needed.
    return m.statement && m.group == Group::kData && m.orders && m.rule != "warp barrier dropped" &&
           m.fate == Fate::kSurvived;
  });
  return flags.min_score > 0 && unordered ? Exit::kBelowScore : Exit::kOk;
}

Result<Exit> run_files(const Flags& flags, const std::vector<std::string>& folders, int schedules) {
  ROOFGEN_TRY(const auto files, kernel_files(folders, flags.only, flags.threads()));
  return finish(flags, file_mutants(files, flags.rule), [&](auto& mutants, Pool& pool, const auto& done) {
    for (Mutant& m : mutants)
      pool.push([&] {
        decide_by_check(m, schedules);
        done();
      });
  });
}

Result<Exit> run(const Flags& flags, bool of_templates) {
  ROOFGEN_TRY(const Tools tools, make_tools(flags.threads()));
  ROOFGEN_TRY(const auto kernels, make_kernels(tools, flags.group(), flags.only, flags.threads()));
  if (of_templates)
    return finish(flags, template_mutants(tools, kernels, flags.sample, flags.seed, flags.rule),
                  [&](auto& mutants, Pool& pool, const auto& done) { decide_all(tools, mutants, pool, done); });
  return finish(flags, ptx_mutants(kernels, flags.group(), flags.sample, flags.seed, flags.rule),
                [](auto& mutants, Pool& pool, const auto& done) {
                  for (Mutant& m : mutants)
                    pool.push([&] {
                      decide(m);
                      done();
                    });
                });
}

int run(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "__compile-worker") == 0) return compile_worker_main();
  CommandLine line("roofgen_mutants", "plants faults in verified kernels and counts those that verification rejects",
                   "roofgen_mutants");
  Flags flags, of_templates;
  of_templates.sample = 5;
  const FlagSet ptx = line.add_command("ptx", "change one PTX instruction at a time");
  flags.declare(ptx, "kernel, besides all that drop a barrier, wait, fence or store");
  ptx.add("--group", flags.group_name,
          "data: values and addresses; order: semantics, scopes, fences, phases; all [data]")
      .one_of({"data", "order"});
  const FlagSet templates = line.add_command("templates", "change one line of a template at a time");
  of_templates.declare(templates, "kernel");
  const FlagSet files = line.add_command("files", "change the order in kernels that `roofgen check` finds nothing in");
  std::vector<std::string> folders;
  Flags of_files;
  int schedules = 1;
  files.add("--schedules", schedules, "runs of each mutant, as of roofgen check [1]").range(1, 1000);
  of_files.declare(files, "kernel; all are tested");
  files.add("folder", folders, "folders of kernels with their launches, as tests/check/right").required();
  Result<Exit> exit = Exit::kOk;
  if (const auto parsed = line.parse(argc, argv); !parsed)
    exit = parsed.error();
  else if (*parsed)
    exit = files.chosen()       ? run_files(of_files, folders, schedules)
           : templates.chosen() ? run(of_templates, true)
                                : run(flags, false);
  if (exit) return static_cast<int>(*exit);
  fmt::print(stderr, "roofgen_mutants: {}\n", to_string(exit.error()));
  return static_cast<int>(exit.error().exit);
}

}  // namespace
}  // namespace roofgen::mutants

int main(int argc, char** argv) { return roofgen::mutants::run(argc, argv); }

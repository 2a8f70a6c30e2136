#include "tuner/session/family.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json.h"
#include "base/scratch.h"
#include "tuner/bundle/finished.h"

namespace roofgen {
namespace {

/// "2%" -> 0.02
Result<double> parse_within(const std::string& text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, bad] = std::from_chars(text.data(), end, percent);
  if (bad == std::errc() && (rest == end || std::string_view(rest, end) == "%") && percent >= 0 && percent <= 100)
    return percent / 100;
  return Error{Exit::kUsage, fmt::format("--within {}: a percentage from 0 to 100 was expected, as in 2%", text)};
}

}  // namespace

void FamilyFlags::declare(FlagSet app, const std::vector<std::string>& single) {
  own.push_back(
      app.add("--table", table,
              "with a list of sizes, as in --L 512,1024: also write the dispatch table here (docs/use/dispatch.md)")
          .group("Family of sizes"));
  own.push_back(app.add("--within", within,
                        "with a list of sizes: as few kernels as keep each shape this close to its own best [2%]")
                    .group("Family of sizes"));
  for (const std::string& name : single) alien.push_back(app.find(name));
}

Result<void> check_no_family(const FamilyFlags& family) {
  for (const Flag& flag : family.own)
    if (flag.given())
      return Error{Exit::kUsage, fmt::format("{} needs a list of sizes, as in --L 512,1024", flag.name())};
  return {};
}

Result<void> check_family(const FamilyFlags& family) {
  for (const Flag& flag : family.alien)
    if (flag.given())
      return Error{Exit::kUsage, fmt::format("{} is for a single problem, not for a list of sizes", flag.name())};
  return {};
}

Result<const Op*> complete_all(const DataFiles& files, const std::string& op_name, std::vector<Problem>& problems) {
  ROOFGEN_TRY(const Op* op, find_op(files, op_name));
  for (Problem& p : problems) {
    ROOFGEN_TRY(p, op->complete(std::move(p)));
  }
  return op;
}

Result<FamilyRun> tune_family(const Session& session, const ProblemFlags& flags, const RunFlags& run,
                              const FamilyFlags& family, std::vector<Problem> problems) {
  ROOFGEN_CHECK(check_family(family));
  ROOFGEN_TRY(const double within, parse_within(family.within));
  ROOFGEN_TRY(const Op* op, complete_all(DataFiles(session.data_dirs), flags.op, problems));
  if (!family.table.empty()) ROOFGEN_CHECK(session.outputs().check({family.table}));
  // Shapes start from each other's results by way of a store, if not of this machine's, then of one for this run.
  std::optional<ScratchDirectory> scratch;
  RunFlags stored = run;
  if (run.no_store) {
    scratch.emplace("roofgen-store");
    stored.no_store = false;
    stored.open_store = [&]() -> std::unique_ptr<Evaluations> {
      auto store = Store::open(scratch->path() + "/evaluations.sqlite", session.warn);
      return store ? std::make_unique<Store>(std::move(*store)) : nullptr;
    };
  }
  ROOFGEN_TRY(Workbench bench, open_workbench(session, flags, stored));
  ROOFGEN_TRY(TuneOptions options, tune_options(session, bench, flags, stored));
  options.progress = session.progress("sizes of " + flags.op);
  bench.op = op;
  ROOFGEN_TRY(FamilyResult result, roofgen::tune_family({bench.resources(), *op}, problems, options, within));
  // Data files of the user may change, the key of the result does not.
  if (session.data_dirs.empty() && !run.no_store)
    note_finished({bench.resources(), *op}, problems, options, within, result);
  if (!family.table.empty()) ROOFGEN_CHECK(session.write(family.table, json_document(dispatch_json(result.table))));
  bench.store.reset();
  return FamilyRun{std::move(bench), std::move(result)};
}

Result<std::optional<Manifest>> finished_family(const Session& session, const ProblemFlags& flags, const RunFlags& run,
                                                const FamilyFlags& family, std::vector<Problem> problems) {
  if (!session.data_dirs.empty() || run.no_store) return std::optional<Manifest>();
  ROOFGEN_TRY(const double within, parse_within(family.within));
  ROOFGEN_TRY(const Op* op, complete_all(DataFiles(session.data_dirs), flags.op, problems));
  ROOFGEN_TRY(const Workbench bench, open_workbench(session, flags, run));
  ROOFGEN_TRY(const TuneOptions options, tune_options(session, bench, flags, run));
  auto finished = recall_finished({bench.resources(), *op}, problems, options, within);
  // The text as it was written: times in other units and back are not the same to the last bit.
  if (finished && !family.table.empty())
    ROOFGEN_CHECK(session.write(family.table, json_document(parse_json(finished->table_text))));
  return finished;
}

}  // namespace roofgen

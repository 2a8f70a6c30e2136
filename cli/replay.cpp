// roofgen replay: searches on recorded tuning spaces, without compiler and GPU.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/cli.h"
#include "tuner/recording/t1.h"
#include "tuner/replay/page.h"

namespace roofgen::cli {
namespace {

constexpr uint64_t kMostEvals = 1'000'000;

struct ReplayFlags {
  std::vector<std::string> files, strategies;
  std::string evals = "10,25,50,100,200", space, html;
  int seeds = 100, jobs = 0;
  bool rounds = false, json = false;
};

Result<std::vector<size_t>> parse_evals(const std::string& list) {
  std::vector<size_t> out;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    size_t number = 0;
    const auto [stop, error] = std::from_chars(list.data() + begin, list.data() + end, number);
    const bool whole = error == std::errc() && stop == list.data() + end;
    if (!whole || number == 0 || number > kMostEvals || (!out.empty() && number <= out.back()))
      return Error{Exit::kUsage, fmt::format("--evals \"{}\": expected ascending numbers from 1 to {}, as in 10,25,50",
                                             list, kMostEvals)};
    out.push_back(number);
    begin = end + 1;
  }
  return out;
}

struct Replayed {
  std::string file;
  RecordedSpace space;
  std::optional<SpaceComparison> described;
};

std::string difference_text(const char* what, uint64_t number, const std::vector<std::string>& examples) {
  std::string out = fmt::format("{} {}", number, what);
  for (const std::string& e : examples) out += fmt::format("{}{}", &e == &examples.front() ? ": " : "; ", e);
  return out + (number > examples.size() ? "; ..." : "");
}

std::string described_text(const SpaceComparison& c, const std::string& file) {
  return fmt::format("by {}: {} of {} combinations are legal\n          {}\n          {}\n", file, c.legal,
                     c.combinations, difference_text("recorded points are illegal", c.illegal, c.illegal_examples),
                     difference_text("legal points are not recorded", c.unrecorded, c.unrecorded_examples));
}

std::string replay_text(const std::vector<Replayed>& spaces, const std::vector<SearchCurve>& curves,
                        const ReplayFlags& flags) {
  std::string out;
  for (const Replayed& r : spaces) {
    const RecordedSpace& space = r.space;
    out +=
        fmt::format("space     {}: {}{}{}, {} points of {} parameters, {} failed, best {}\n", r.file, space.format,
                    space.kernel.empty() ? "" : ", " + space.kernel, space.device.empty() ? "" : " on " + space.device,
                    space.results.size(), space.space.points.axes().size(), space.failed, time_text(space.best));
    if (r.described) out += "          " + described_text(*r.described, flags.space);
  }
  out += fmt::format("seeds     1 to {}; fractions of the optimum, means over the seeds\n\n", flags.seeds);
  TextTable table({"space", "strategy", "evaluations", "fraction", "+-", "random", "P_t"});
  table.left(0).left(1);
  std::vector<SearchCurve> all = curves;
  if (spaces.size() > 1) std::ranges::copy(mean_of_spaces(curves, flags.strategies.size()), std::back_inserter(all));
  for (const SearchCurve& curve : all)
    for (const ReplayPoint& p : curve.points)
      table.row({curve.space, curve.strategy, fmt::format("{}", p.evals), fmt::format("{:.3f}", p.fraction),
                 fmt::format("{:.3f}", p.standard_error), fmt::format("{:.3f}", p.random),
                 fmt::format("{:.3f}", p.score)});
  return wrapped(out, 10) + table.str();
}

/// The value of each number of evaluations.
template <class F>
Json by_evals(const SearchCurve& curve, const F& value) {
  Json out;
  for (const ReplayPoint& p : curve.points) out[std::to_string(p.evals)] = value(p);
  return out;
}

Json strategy_json(const std::vector<Replayed>& all, const std::vector<SearchCurve>& curves, const ReplayFlags& flags,
                   size_t strategy) {
  const size_t strategies = flags.strategies.size();
  const auto fraction = [](const ReplayPoint& p) { return p.fraction; };
  Json spaces = Json::array();
  for (size_t i = 0; i < all.size(); ++i) {
    const Replayed& r = all[i];
    const SearchCurve& curve = curves[i * strategies + strategy];
    spaces.push_back({{"file", r.file},
                      {"format", r.space.format},
                      {"device", r.space.device},
                      {"kernel", r.space.kernel},
                      {"points", r.space.results.size()},
                      {"failed", r.space.failed},
                      {"best_seconds", r.space.best},
                      {"mean_fraction_of_optimum", by_evals(curve, fraction)},
                      {"standard_error", by_evals(curve, [](const ReplayPoint& p) { return p.standard_error; })},
                      {"percentile_10", by_evals(curve, [](const ReplayPoint& p) { return p.fractions.low; })},
                      {"percentile_90", by_evals(curve, [](const ReplayPoint& p) { return p.fractions.high; })},
                      {"random_fraction_of_optimum", by_evals(curve, [](const ReplayPoint& p) { return p.random; })},
                      {"score", by_evals(curve, [](const ReplayPoint& p) { return p.score; })}});
    if (const auto& c = r.described)
      spaces.back()["described"] = {{"file", flags.space},
                                    {"combinations", c->combinations},
                                    {"legal", c->legal},
                                    {"illegal", c->illegal},
                                    {"illegal_examples", c->illegal_examples},
                                    {"unrecorded", c->unrecorded},
                                    {"unrecorded_examples", c->unrecorded_examples}};
  }
  return {{"strategy", flags.strategies[strategy]},
          {"seeds", flags.seeds},
          {"mean_fraction_of_optimum", by_evals(mean_of_spaces(curves, strategies)[strategy], fraction)},
          {"spaces", spaces}};
}

std::string replay_json(const std::vector<Replayed>& all, const std::vector<SearchCurve>& curves,
                        const ReplayFlags& flags) {
  Json out = {{"schema", "roofgen.search-replay.1"}};
  if (flags.strategies.size() == 1) {
    out.update(strategy_json(all, curves, flags, 0));
  } else {
    for (size_t s = 0; s < flags.strategies.size(); ++s)
      out["strategies"].push_back(strategy_json(all, curves, flags, s));
  }
  return json_document(out);
}

Result<Exit> run_replay(const Terminal& terminal, ReplayFlags flags) {
  if (flags.strategies.empty()) flags.strategies = {"portfolio"};
  std::vector<const StrategyKind*> strategies;
  for (const std::string& name : flags.strategies) {
    ROOFGEN_TRY(strategies.emplace_back(), find_strategy(name));
  }
  ROOFGEN_TRY(const std::vector<size_t> evals, parse_evals(flags.evals));
  ReplayOptions options;
  options.evals = evals;
  if (!flags.html.empty()) ROOFGEN_CHECK(terminal.outputs().check({flags.html}));
  // A curve has more points, but for rounds: each of theirs is a search of its own.
  if (!flags.html.empty() && !flags.rounds) {
    options.evals.clear();
    std::ranges::set_union(evals, curve_evals(evals.back()), std::back_inserter(options.evals));
  }
  options.seeds = static_cast<size_t>(flags.seeds);
  options.rounds = flags.rounds;
  options.jobs = flags.jobs ? flags.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::optional<DescribedSpace> described;
  if (!flags.space.empty()) {
    ROOFGEN_TRY(std::string text, read_input(flags.space));
    ROOFGEN_TRY(described, read_t1(std::move(text), flags.space));
  }
  std::vector<Replayed> spaces;
  std::vector<SearchCurve> curves;
  double overhead = 0;
  for (const std::string& file : flags.files) {
    ROOFGEN_TRY(std::string bytes, read_input(file));
    std::optional<SpaceComparison> compared;
    if (described) {
      ROOFGEN_TRY(const std::vector<Recording> recordings, read_recordings(bytes, file));
      auto result = compare(recordings.front(), *described);
      if (!result) return Error{result.error().exit, result.error().message, {file}};
      compared = std::move(*result);
    }
    ROOFGEN_TRY(RecordedSpace space, read_recorded(std::move(bytes), file));
    for (const StrategyKind* strategy : strategies) {
      options.strategy = strategy;
      SearchReplay replay = replay_search(space, options);
      overhead = std::max(overhead, replay.seconds_per_evaluation);
      curves.push_back({std::filesystem::path(file).filename(), strategy->name, std::move(replay.points)});
    }
    spaces.push_back({file, std::move(space), std::move(compared)});
  }
  if (!flags.html.empty()) {
    const plot::Page page = replay_page(curves, strategies.size(), evals, options.seeds);
    ROOFGEN_CHECK(show_page(page, flags.html, DataFiles(terminal.data_dirs), terminal));
    for (SearchCurve& curve : curves)
      std::erase_if(curve.points, [&](const ReplayPoint& p) { return std::ranges::count(evals, p.evals) == 0; });
  }
  fmt::print("{}", flags.json ? replay_json(spaces, curves, flags) : replay_text(spaces, curves, flags));
  fmt::print(stderr, "roofgen: replay: the strategy took {} of processor time an evaluation{}\n", time_text(overhead),
             curves.size() > 1 ? ", at most" : "");
  return Exit::kOk;
}

}  // namespace

Run declare_replay(FlagSet app) {
  auto flags = std::make_shared<ReplayFlags>();
  app.add("FILE", flags->files, "recorded space: Kernel Tuner cachefile, T4 or output of KTT, also packed by gzip")
      .required();
  app.add("--strategy", flags->strategies, fmt::format("{} [portfolio]; several with commas", strategy_names()))
      .split(',');
  app.add("--evals", flags->evals, "numbers of evaluations at which the best time is compared [10,25,50,100,200]");
  app.add("--seeds", flags->seeds, "searches, each with a seed of its own [100]").range(1, 100000);
  app.add("--jobs", flags->jobs, "searches that run at a time; the result is the same [cores]").range(1, 256);
  app.add("--space", flags->space,
          "T1 file that describes the space: say which recorded points are illegal, and which legal ones are missing");
  app.add_switch("--rounds", flags->rounds,
                 "each number of evaluations is a search of its own, which asks for all of its points, as in tune");
  app.add_switch("--json", flags->json, "as JSON");
  app.add("--html", flags->html, "also write a self-contained page here: curves with bands, a line for each strategy");
  app.footer(
      "Example: roofgen replay gemm_RTX_3090.json.gz --strategy portfolio --evals 50,100\ndocs/internals/search.md "
      "explains the strategies and the numbers.");
  return [flags](const Terminal& terminal) { return run_replay(terminal, *flags); };
}

}  // namespace roofgen::cli

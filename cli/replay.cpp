// roofgen replay: searches on recorded tuning spaces, without compiler and GPU.
#include "tuner/replay/replay.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <thread>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"
#include "cli/cli.h"
#include "tuner/recording/t1.h"

namespace roofgen::cli {
namespace {

constexpr uint64_t kMostEvals = 1'000'000;

struct ReplayFlags {
  std::vector<std::string> files;
  std::string strategy = "portfolio", evals = "10,25,50,100,200", space;
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
  SearchReplay replay;
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

std::string replay_text(const std::vector<Replayed>& all, const ReplayFlags& flags) {
  std::string out;
  for (const Replayed& r : all) {
    const RecordedSpace& space = r.space;
    out +=
        fmt::format("space     {}: {}{}{}, {} points of {} parameters, {} failed, best {}\n", r.file, space.format,
                    space.kernel.empty() ? "" : ", " + space.kernel, space.device.empty() ? "" : " on " + space.device,
                    space.results.size(), space.space.points.axes().size(), space.failed, time_text(space.best));
    if (r.described) out += "          " + described_text(*r.described, flags.space);
  }
  out += fmt::format("strategy  {}, seeds 1 to {}; fractions of the optimum, means over the seeds\n\n", flags.strategy,
                     flags.seeds);
  TextTable table({"space", "evaluations", "fraction", "+-", "random", "P_t"});
  table.left(0);
  for (const Replayed& r : all)
    for (const ReplayPoint& p : r.replay.points)
      table.row({std::filesystem::path(r.file).filename(), fmt::format("{}", p.evals),
                 fmt::format("{:.3f}", p.fraction), fmt::format("{:.3f}", p.standard_error),
                 fmt::format("{:.3f}", p.random), fmt::format("{:.3f}", p.score)});
  if (all.size() > 1)
    for (size_t k = 0; k < all[0].replay.points.size(); ++k) {
      double fraction = 0, random = 0, score = 0;
      for (const Replayed& r : all) {
        const double share = 1 / static_cast<double>(all.size());
        fraction += share * r.replay.points[k].fraction;
        random += share * r.replay.points[k].random;
        score += share * r.replay.points[k].score;
      }
      table.row({"mean", fmt::format("{}", all[0].replay.points[k].evals), fmt::format("{:.3f}", fraction), "",
                 fmt::format("{:.3f}", random), fmt::format("{:.3f}", score)});
    }
  return out + table.str();
}

std::string replay_json(const std::vector<Replayed>& all, const ReplayFlags& flags) {
  Json spaces = Json::array(), mean = Json::object();
  for (const Replayed& r : all) {
    Json fraction, error, random, score;
    for (const ReplayPoint& p : r.replay.points) {
      const std::string evals = std::to_string(p.evals);
      fraction[evals] = p.fraction;
      error[evals] = p.standard_error;
      random[evals] = p.random;
      score[evals] = p.score;
      mean[evals] = mean.value(evals, 0.0) + p.fraction / static_cast<double>(all.size());
    }
    spaces.push_back({{"file", r.file},
                      {"format", r.space.format},
                      {"device", r.space.device},
                      {"kernel", r.space.kernel},
                      {"points", r.space.results.size()},
                      {"failed", r.space.failed},
                      {"best_seconds", r.space.best},
                      {"mean_fraction_of_optimum", fraction},
                      {"standard_error", error},
                      {"random_fraction_of_optimum", random},
                      {"score", score}});
    if (const auto& c = r.described)
      spaces.back()["described"] = {{"file", flags.space},
                                    {"combinations", c->combinations},
                                    {"legal", c->legal},
                                    {"illegal", c->illegal},
                                    {"illegal_examples", c->illegal_examples},
                                    {"unrecorded", c->unrecorded},
                                    {"unrecorded_examples", c->unrecorded_examples}};
  }
  return json_document(Json{{"schema", "roofgen.search-replay.1"},
                            {"strategy", flags.strategy},
                            {"seeds", flags.seeds},
                            {"mean_fraction_of_optimum", mean},
                            {"spaces", spaces}});
}

Result<Exit> run_replay(const Session&, const ReplayFlags& flags) {
  ReplayOptions options;
  ROOFGEN_TRY(options.strategy, find_strategy(flags.strategy));
  ROOFGEN_TRY(options.evals, parse_evals(flags.evals));
  options.seeds = static_cast<size_t>(flags.seeds);
  options.rounds = flags.rounds;
  options.jobs = flags.jobs ? flags.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::optional<DescribedSpace> described;
  if (!flags.space.empty()) {
    ROOFGEN_TRY(std::string text, read_input(flags.space));
    ROOFGEN_TRY(described, read_t1(std::move(text), flags.space));
  }
  std::vector<Replayed> all;
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
    SearchReplay replayed = replay_search(space, options);
    overhead = std::max(overhead, replayed.seconds_per_evaluation);
    all.push_back({file, std::move(space), std::move(replayed), std::move(compared)});
  }
  fmt::print("{}", flags.json ? replay_json(all, flags) : replay_text(all, flags));
  fmt::print(stderr, "roofgen: replay: the strategy took {} of processor time an evaluation{}\n", time_text(overhead),
             all.size() > 1 ? ", in the slowest space" : "");
  return Exit::kOk;
}

}  // namespace

Run declare_replay(FlagSet app) {
  auto flags = std::make_shared<ReplayFlags>();
  app.add("FILE", flags->files, "recorded space: Kernel Tuner cachefile, T4 or output of KTT, also packed by gzip")
      .required();
  app.add("--strategy", flags->strategy, fmt::format("{} [portfolio]", strategy_names()));
  app.add("--evals", flags->evals, "numbers of evaluations at which the best time is compared [10,25,50,100,200]");
  app.add("--seeds", flags->seeds, "searches, each with a seed of its own [100]").range(1, 100000);
  app.add("--jobs", flags->jobs, "searches that run at a time; the result is the same [cores]").range(1, 256);
  app.add("--space", flags->space,
          "T1 file that describes the space: say which recorded points are illegal, and which legal ones are missing");
  app.add_switch("--rounds", flags->rounds,
                 "each number of evaluations is a search of its own, which asks for all of its points, as in tune");
  app.add_switch("--json", flags->json, "as JSON");
  app.footer(
      "Example: roofgen replay gemm_RTX_3090.json.gz --strategy portfolio --evals 50,100\ndocs/search.md "
      "explains the strategies and the numbers.");
  return [flags](const Session& session) { return run_replay(session, *flags); };
}

}  // namespace roofgen::cli

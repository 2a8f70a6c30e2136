// The time of each strategy: searches of 200 evaluations on a space as large as the recorded one of a GEMM.
#include <benchmark/benchmark.h>

#include <cmath>

#include "base/mix.h"
#include "tuner/replay/replay.h"

namespace {

/// Ten axes as those of CLBlast's GEMM; of their 82,944 combinations a random share is legal, 18,000 or so.
roofgen::RecordedSpace space() {
  std::vector<roofgen::Axis> axes;
  for (const size_t size : {4, 4, 3, 3, 3, 3, 4, 4, 2, 2}) {
    roofgen::Axis& axis = axes.emplace_back(roofgen::Axis{"axis" + std::to_string(axes.size()), {}, {}});
    for (size_t i = 0; i < size; ++i) {
      axis.numbers.push_back(std::exp2(i));
      axis.labels.push_back(std::to_string(1 << i));
    }
  }
  roofgen::RecordedSpace out;
  out.best = HUGE_VAL;
  std::vector<uint16_t> rows;
  for (uint64_t combination = 0; combination < 82'944; ++combination) {
    if (roofgen::mix(combination) % 1000 >= 217) continue;
    double log = 0;
    uint64_t rest = combination;
    for (size_t axis = 0; axis < axes.size(); rest /= axes[axis++].size()) {
      rows.push_back(static_cast<uint16_t>(rest % axes[axis].size()));
      log += std::pow(rows.back() - 1.3, 2) / (4 + static_cast<double>(axis));
    }
    out.results.push_back({.seconds = 1e-3 * std::exp(log)});
    out.best = std::min(out.best, out.results.back().seconds);
  }
  out.space.points = roofgen::PointSpace(std::move(axes), std::move(rows));
  return out;
}

void evaluations(benchmark::State& state, const roofgen::StrategyKind& kind) {
  static const roofgen::RecordedSpace recorded = space();
  constexpr size_t kEvals = 200, kSeeds = 5;
  for (auto _ : state)
    benchmark::DoNotOptimize(replay_search(recorded, {.strategy = &kind, .evals = {kEvals}, .seeds = kSeeds}));
  state.SetItemsProcessed(static_cast<int64_t>(kEvals * kSeeds) * state.iterations());
  state.counters["points"] = static_cast<double>(recorded.results.size());
}

}  // namespace

int main(int argc, char** argv) {
  // `prior` and `exhaustive` need predicted times.
  for (const roofgen::StrategyKind& kind : roofgen::strategies())
    if (const std::string name = kind.name; name != "prior" && name != "exhaustive")
      benchmark::RegisterBenchmark(kind.name, evaluations, kind)
          ->MeasureProcessCPUTime()  // searches run on a thread of their own
          ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

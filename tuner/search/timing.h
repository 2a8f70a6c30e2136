// The times of verified candidates, and the winner of each stage: measured on a GPU, or else by the model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/search/runner.h"

namespace roofgen {

/// Times candidates by their machine code. Returns why one of them has no time; empty: all have one.
std::string time_code(const SearchRun& run, const SearchPlan& plan, const std::vector<TimedTask*>& tasks,
                      TimeModel model);
/// The machine code of these is not needed any more.
void forget_code(const SearchRun& run, const std::vector<TimedTask*>& tasks);

struct StageTimes {
  std::vector<TimedTask> tasks;     ///< the verified ones, in the order tried
  std::vector<size_t> ranking;      ///< GPU only: indices of the timed ones, fastest first
  std::vector<Finalist> finalists;  ///< GPU only: the best, timed again in pairs
  std::optional<size_t> winner;
  const TimedTask& best() const { return tasks[*winner]; }
  TimedTask& best() { return tasks[*winner]; }
};

/// Kernels that a model finds this many times as slow as the fastest have no time of a better model, and variants few
/// candidates: twice the closed form's error.
inline constexpr double kHopelessRatio = 1.7;
/// The same of variants by the interval model, where only the best one matters (assumption).
inline constexpr double kHopelessAlone = 1.3;
/// Times of the model closer than this count as equal; the kernel with fewer resources wins.
inline constexpr double kTie = 0.01;

struct VariantTimes {
  std::string variant;
  std::vector<StageTimes> stages;          ///< up to the first without a winner
  bool complete = false;                   ///< every stage has a winner
  Verification verification;               ///< of the winners in a row
  std::optional<Measurement> measurement;  ///< GPU only: of the winners in a row
  std::vector<const Task*> winners() const;
};

struct Timings {
  std::vector<VariantTimes> variants;  ///< as the plan's reports
  std::vector<VariantPair> pairs;      ///< GPU only: of each variant with the fastest, that one first
  Origin origin = Origin::kModel;      ///< kModel also where nothing was timed
  Tally tally;
  uint64_t timed = 0;   ///< candidates
  int buffer_sets = 1;  ///< the fewest of any stage
  std::vector<std::string> notes;
  std::string lost_because;         ///< empty: the GPU was there to the end
  std::string closed_form_because;  ///< why the machine code gave some candidate no time; empty: it did
  bool interrupted = false;
};

Result<Timings> time_on_gpu(const SearchRun& run, const SearchPlan& plan, const Trials& trials, Runner& runner);
Timings time_by_model(const SearchRun& run, const SearchPlan& plan, const Trials& trials, Runner& runner);

/// Verifies winners in a row, and on the whole grid. False: the tally says why.
bool verify_together(const SearchRun& run, Runner& runner, VariantTimes& winners, Tally& tally);

/// Notes the final times in the store: of the finalists by the better model, or measured.
void note_times(const SearchRun& run, const SearchPlan& plan, const Timings& timings);

}  // namespace roofgen

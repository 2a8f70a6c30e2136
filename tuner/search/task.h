// What the search loop keeps of each candidate, and how a finished one becomes a line of the report.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "generator/generate.h"
#include "tuner/report.h"
#include "tuner/verify/verify.h"

namespace roofgen {

/// One candidate on its way through the loop.
struct Task {
  Candidate candidate;
  Program program;
  Launch launch;  ///< of the real problem
  Occupancy occupancy;
  std::optional<Evaluation> evaluation;
  std::optional<Measurement> measurement;  ///< GPU only
  double compile_s = 0, check_s = 0;       ///< 0: remembered
  bool verified() const { return evaluation && evaluation->verification.passed; }
};

/// One stage of one variant, and the order in which its points are executed, the default first.
/// Points that spill or fail are replaced by the next ones until `share` are verified.
struct StagePlan {
  const Variant* variant = nullptr;
  size_t index = 0;
  std::vector<Legal> legal;
  std::vector<double> predicted;
  size_t preset = 0;
  size_t share = 1;
  std::vector<size_t> order;
  std::deque<Task> tasks;           ///< of order[0 .. tasks.size())
  std::vector<Task*> ranking;       ///< GPU only: the timed ones, the fastest first
  std::vector<Finalist> finalists;  ///< GPU only: the paired re-run of the best

  size_t verified() const {
    return static_cast<size_t>(std::count_if(tasks.begin(), tasks.end(), [](const Task& t) { return t.verified(); }));
  }
};

/// What turns an evaluation into a report: all of it arithmetic on counts and device data.
struct ReportContext {
  const Device& device;
  DType dtype;
  const expr::Map& problem_scope;
  double floor_seconds;  ///< T_problem at sustained rates
};
KernelReport kernel_report(const ReportContext& context, const Task& task);

/// Fastest verified task of a stage by the model; among ties fewer registers, then less shared memory, then the
/// order of the schedule text. nullptr when none is verified.
const Task* winner(const ReportContext& context, const StagePlan& plan);

/// The verified ones of a stage, the fastest first: by the clock where they were timed, else by the model.
std::vector<Schedule> ranked(const ReportContext& context, const StagePlan& plan);

}  // namespace roofgen

// A verified candidate with its report.
#pragma once

#include <optional>

#include "tuner/search/plan.h"
#include "tuner/verify/verify.h"

namespace roofgen {

struct Task;

/// The report is arithmetic on the evaluation and on device data. The report's time is the
/// measured one, else the machine code's, else the closed form's.
class TimedTask {
 public:
  TimedTask(const SearchRun& run, const SearchPlan& plan, const Task& verified);
  const Task& task() const { return *task_; }
  const Evaluation& evaluation() const { return evaluation_; }
  const KernelReport& report() const { return report_; }
  bool verified() const { return report_.verification.passed; }
  /// Whatever else timed it.
  double closed_form_seconds() const;

  /// Of a finalist that ran on the GPU first: with the simulator's counts.
  void set_evaluation(Evaluation evaluation);
  void set_verification(Verification verification);
  void set_code(std::optional<CodeTime> code);                ///< without a GPU
  void set_measurement(std::optional<Measurement> measured);  ///< GPU only

 private:
  void count();
  void set_time();

  const SearchRun* run_;
  const SearchPlan* plan_;
  const Task* task_;
  Evaluation evaluation_;
  Work work_;  ///< by the counts of its PTX
  KernelReport report_;
};

}  // namespace roofgen

// A TuneReport as text. Text and JSON show the same numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tuner/report.h"

namespace roofgen {

/// The answer in lines that need no legend, and all tables and reasons. `color`: ANSI colours.
std::string tune_text(const TuneReport& report, bool color);
std::string details_text(const TuneReport& report, bool color);
std::string problem_text(const TuneReport& report);  ///< "softmax, bf16 rows=64 cols=1024"
uint64_t illegal_points(const TuneReport& report);   ///< that a constraint or the launch rules out
/// Every rejection with its reason, grouped by stage; the most common reasons first.
std::string explain_text(const TuneReport& report);
/// Pairs of a name and a reason, those with one reason joined: "split_k2, split_k4".
using Reasons = std::vector<std::pair<std::string, std::string>>;
Reasons joined(const Reasons& each);
std::string params_text(const Schedule& schedule);  ///< "BM=128 stages=2"

/// The kernels of several variants or partitions.
template <class Report>
std::vector<const KernelReport*> kernels_of(const std::vector<Report>& reports) {
  std::vector<const KernelReport*> out;
  for (const Report& r : reports)
    for (const KernelReport& k : r.kernels) out.push_back(&k);
  return out;
}
/// "event model (error band 17 %), closed form (30 %)": the models of the kernels' times.
std::string models_text(const std::vector<const KernelReport*>& kernels);

}  // namespace roofgen

#include "tuner/timing/placement.h"

#include <algorithm>
#include <queue>
#include <vector>

namespace roofgen::timing {
namespace {

/// Time from the first start to the last end, where an SM does one unit of work in a unit of time.
double makespan(const Placement& p, const std::function<double(uint64_t)>& work) {
  // An SM's progress is the work that each of its CTAs has done since the beginning: a CTA ends when the progress has
  // grown by its work.
  struct Sm {
    double at = 0, progress = 0;
    std::priority_queue<double, std::vector<double>, std::greater<>> ends;  ///< by progress
  };
  std::vector<Sm> sms(static_cast<size_t>(p.sms));
  const auto rate = [&](const Sm& sm) { return std::min(p.alone, 1.0 / static_cast<double>(sm.ends.size())); };
  struct End {
    double time;
    size_t sm;
    uint64_t change;  ///< number of the SM's changes when this end was computed
    bool operator>(const End& other) const { return time != other.time ? time > other.time : sm > other.sm; }
  };
  std::vector<uint64_t> changes(sms.size());
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  const auto plan = [&](size_t s) {
    Sm& sm = sms[s];
    ++changes[s];
    if (!sm.ends.empty()) ends.push({sm.at + (sm.ends.top() - sm.progress) / rate(sm), s, changes[s]});
  };
  uint64_t next = 0;
  for (int round = 0; round < p.resident; ++round)
    for (Sm& sm : sms)
      if (next < p.ctas) sm.ends.push(work(next++));
  for (size_t s = 0; s < sms.size(); ++s) plan(s);
  double last = 0;
  while (!ends.empty()) {
    const End e = ends.top();
    ends.pop();
    if (e.change != changes[e.sm]) continue;
    Sm& sm = sms[e.sm];
    sm.progress = sm.ends.top();
    sm.at = last = e.time;
    sm.ends.pop();
    if (next < p.ctas) sm.ends.push(sm.progress + work(next++));
    plan(e.sm);
  }
  return last;
}

}  // namespace

double imbalance(const Placement& p) {
  if (p.ctas == 0 || p.ctas > kMostPlaced) return 1;
  double sum = 0;
  for (uint64_t k = 0; k < p.ctas; ++k) sum += p.work(k);
  const double mean = sum / static_cast<double>(p.ctas);
  const double alike = makespan(p, [&](uint64_t) { return mean; });
  return alike > 0 ? makespan(p, p.work) / alike : 1;
}

}  // namespace roofgen::timing

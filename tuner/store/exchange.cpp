#include "tuner/store/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace roofgen {
namespace {

/// What the times of a trial are: "interval model", "measured".
const std::string& times_of(const StoredTrial& t) { return t.time_model.empty() ? t.origin : t.time_model; }

std::string space_text(const StoredTrial& t) {
  std::string out = fmt::format("{} on {}", t.problem, t.device);
  if (!t.variant.empty()) out += fmt::format(", {}", t.variant);
  if (!t.stage.empty() && t.stage != t.variant) out += fmt::format(" {}", t.stage);
  if (t.source != StoredTrial::kOwn) out += fmt::format(" ({})", t.source);
  return out;
}

std::string most_common_times(const std::vector<StoredTrial>& trials) {
  std::map<std::string, size_t> counts;
  for (const StoredTrial& t : trials)
    if (t.seconds) ++counts[times_of(t)];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
  return most == counts.end() ? "" : most->first;
}

}  // namespace

std::vector<StoredTrial> trials_of(const Recording& r) {
  std::vector<StoredTrial> out;
  for (const Recording::Point& p : r.points) {
    StoredTrial& t = out.emplace_back();
    t.source = r.format;
    t.op = r.kernel;
    t.problem = r.problem.is_null() ? "" : json_words(r.problem);
    t.device = r.device;
    t.params = json_line(r.configuration(p));
    t.outcome = p.failure.empty() ? StoredTrial::kVerified : p.failure;
    t.reason = p.reason;
    if (!p.failure.empty()) continue;
    t.seconds = p.seconds;
    t.origin = r.origin;
  }
  return out;
}

Result<Exported> recording_of(const std::vector<StoredTrial>& trials, const std::string& time_model) {
  std::vector<std::string> spaces;
  for (const StoredTrial& t : trials)
    if (const std::string space = space_text(t); spaces.empty() || spaces.back() != space) spaces.push_back(space);
  if (spaces.empty()) return Error{Exit::kUsage, "no trial in the store fits"};
  if (spaces.size() > 1) {
    Error error{Exit::kUsage,
                fmt::format("trials of {} spaces fit; one was expected (a part of the problem's text, --op, --device, "
                            "--variant, --stage, --source):",
                            spaces.size())};
    for (const std::string& s : spaces) error.notes.push_back("  " + s);
    return error;
  }
  Exported out;
  out.times = time_model.empty() ? most_common_times(trials) : time_model;
  if (out.times.empty()) return Error{Exit::kUsage, "no trial that fits has a time"};
  std::vector<const StoredTrial*> in_order;
  for (const StoredTrial& t : trials) in_order.push_back(&t);
  std::ranges::stable_sort(in_order, {}, &StoredTrial::created);
  const StoredTrial& any = trials.front();
  const bool own = any.source == StoredTrial::kOwn;
  RecordingBuilder builder(any.source);
  Recording& r = builder.recording();
  r.device = any.device;
  r.kernel = any.op + (any.variant.empty() ? "" : "-" + any.variant) +
             (any.stage.empty() || any.stage == any.variant ? "" : "-" + any.stage);
  r.problem = any.problem;
  if (!own) {
    const Json size = parse_json(any.problem);
    if (any.problem.empty() || !size.is_discarded()) r.problem = any.problem.empty() ? Json() : size;
  }
  for (const StoredTrial* t : in_order) {
    if (t->seconds && times_of(*t) != out.times) {
      ++out.left_out;
      continue;
    }
    Recording::Point point;
    if (t->seconds) {
      point.seconds = *t->seconds;
      r.origin = t->time_model.empty() ? t->origin : t->origin + ": " + t->time_model;
    } else {
      point.failure = own ? t4_invalidity(t->outcome) : t->outcome;
      point.reason = own ? t->outcome + ": " + t->reason : t->reason;
    }
    const Json params = parse_json(t->params);
    std::string wrong = params.is_object() ? "" : "expected an object";
    for (auto p = params.begin(); wrong.empty() && p != params.end(); ++p) wrong = builder.value(p.key(), p.value());
    if (wrong.empty()) wrong = builder.finish(std::move(point));
    if (!wrong.empty()) return Error{Exit::kFailed, fmt::format("the trial {}: {}", t->params, wrong)};
  }
  out.recording = std::move(r);
  return out;
}

}  // namespace roofgen

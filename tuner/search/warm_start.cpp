#include "tuner/search/warm_start.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include "base/json.h"

namespace roofgen {
namespace {

/// Of the evaluations of a stage one in so many. With 4 the strategy learnt too little from a small share: of three
/// GEMM problems (`--variant fused --evals 8`, modelled for h200-sxm) two ended 4 and 5 % slower than without warm
/// starts, with 8 none did.
constexpr size_t kFraction = 8;

/// Takes `name=NUMBER` with a space before it from the front of the text.
std::optional<double> take_number(std::string_view& text, const std::string& name) {
  const std::string head = " " + name + "=";
  if (!text.starts_with(head)) return std::nullopt;
  double value = 0;
  const char* const begin = text.data() + head.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

/// The point with these values, as texts by axis, if it is in the space.
template <class ValueOf>
std::optional<size_t> find_point(const PointSpace& space, const ValueOf& value_of) {
  std::vector<uint16_t> row;
  for (const Axis& axis : space.axes()) {
    const std::optional<std::string> value = value_of(axis.name);
    const auto label = value ? std::ranges::find(axis.labels, *value) : axis.labels.end();
    if (label == axis.labels.end()) return std::nullopt;
    row.push_back(static_cast<uint16_t>(label - axis.labels.begin()));
  }
  return space.find(row);
}

/// The point of a schedule as the store keeps it.
std::optional<size_t> stored_point(const PointSpace& space, const std::string& params) {
  const Json values = parse_json(params);
  if (!values.is_object() || values.size() != space.axes().size()) return std::nullopt;
  return find_point(space, [&](const std::string& name) {
    const auto value = values.find(name);
    return value == values.end() ? std::nullopt : std::optional(json_words(*value));
  });
}

}  // namespace

std::optional<double> problem_distance(const Problem& problem, const std::string& stored) {
  // The text is taken apart in the order in which to_string() writes it.
  Problem rest = problem;
  rest.dims.clear();
  rest.flags.clear();
  rest.reals.clear();
  rest.texts.clear();
  rest.dtypes.clear();
  rest.args.clear();
  const std::string head = to_string(rest);
  std::string_view text = stored;
  if (!text.starts_with(head)) return std::nullopt;
  text.remove_prefix(head.size());
  double distance = 0;
  for (const auto& [name, size] : problem.dims) {
    const auto other = take_number(text, name);
    if (!other) return std::nullopt;
    if (*other == static_cast<double>(size)) continue;
    if (*other <= 0 || size <= 0) return std::nullopt;
    distance += std::abs(std::log2(*other / static_cast<double>(size)));
  }
  const auto take = [&](const Problem& part) {
    const std::string expected = to_string(part).substr(head.size());
    if (!text.starts_with(expected)) return false;
    text.remove_prefix(expected.size());
    return true;
  };
  rest.flags = problem.flags;
  if (!take(rest)) return std::nullopt;
  for (const auto& [name, value] : problem.reals)
    if (!take_number(text, name)) return std::nullopt;
  rest.flags.clear();
  rest.dtypes = problem.dtypes;
  rest.texts = problem.texts;
  rest.args = problem.args;
  if (!take(rest) || !text.empty()) return std::nullopt;
  return distance;
}

/// A parameter that a schedule lacks, because only this problem has it, keeps its default.
std::vector<size_t> first_points(const SearchRun& run, const StagePlan& stage) {
  std::vector<size_t> out;
  const Schedule preset = stage.points.schedule(*stage.space.preset);
  const auto value_in = [](const Schedule& schedule, const std::string& name) -> std::optional<std::string> {
    const auto at = std::ranges::find(schedule.params, name, &std::pair<std::string, ParamValue>::first);
    return at == schedule.params.end() ? std::nullopt : std::optional(to_string(at->second));
  };
  for (const Schedule& schedule : run.options.first) {
    if (schedule.variant != stage.variant->name || schedule.stage != preset.stage) continue;
    const auto point = find_point(stage.space.points, [&](const std::string& name) {
      const auto own = value_in(schedule, name);
      return own ? own : value_in(preset, name);
    });
    if (point && point != stage.space.preset && !std::ranges::count(out, *point)) out.push_back(*point);
  }
  return out;
}

std::vector<WarmPoint> warm_start(const SearchRun& run, const StagePlan& stage) {
  const size_t most = stage.share / kFraction;
  if (most == 0 || run.options.cold || !run.context.store || stage.share == stage.points.number) return {};
  TrialFilter filter;
  filter.source = StoredTrial::kOwn;
  filter.op = run.problem.op;
  filter.variant = stage.variant->name;
  filter.stage = stage.stage().name;
  filter.outcome = StoredTrial::kVerified;
  const auto trials = run.context.store->trials(filter);
  if (!trials) return {};

  struct RatedTrial {
    bool other_arch, other_device;
    double distance;
    const StoredTrial* trial;
    std::tuple<bool, double, bool> rank() const { return {other_arch, distance, other_device}; }
  };
  const std::string own = to_string(run.problem);
  std::map<std::string, bool> other_arch;
  std::vector<RatedTrial> sources;
  for (const StoredTrial& t : *trials) {
    if (!t.seconds || (t.problem == own && t.device == run.context.device.name) ||
        run.options.siblings.contains(t.problem))
      continue;
    const auto distance = problem_distance(run.problem, t.problem);
    if (!distance) continue;
    const auto [arch, is_new] = other_arch.try_emplace(t.device, true);
    if (is_new) {
      const auto device = load_device(run.context.files, t.device);
      arch->second = t.device != run.context.device.name && (!device || device->arch != run.context.device.arch);
    }
    sources.push_back({arch->second, t.device != run.context.device.name, *distance, &t});
  }
  // Equal ranks keep the order of the store: by problem and device, the best first.
  std::ranges::stable_sort(sources, {}, &RatedTrial::rank);

  std::vector<WarmPoint> out;
  for (const RatedTrial& s : sources) {
    const auto point = stored_point(stage.space.points, s.trial->params);
    if (!point || point == stage.space.preset ||
        std::ranges::any_of(out, [&](const WarmPoint& w) { return w.point == *point; }))
      continue;
    out.push_back({*point, s.trial->problem, s.trial->device});
    if (out.size() == most) break;
  }
  return out;
}

}  // namespace roofgen

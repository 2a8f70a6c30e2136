// The page of a model: its operators on the device's roofs, the time of each operator, and the effect of larger
// batches.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "roofline/analyses/figures.h"
#include "roofline/views/model_parts.h"

namespace roofgen {
namespace {

std::string length_text(const ModelView& v, const ModelRun& r) {
  return fmt::format("{} {}", phase_of(v).length, r.request.length);
}

/// Time under the slowest roof of each kernel, without the request's efficiencies and launches. Models have no
/// shared-memory roof.
struct Floor {
  double seconds = 0;
  std::string roof;  ///< the roof of the longest kernel
};

Floor floor_of(const OperatorRun& o) {
  Floor out;
  double longest = 0;
  for (const KernelExplanation& k : o.explanation.kernels) {
    const auto slowest = std::find_if(k.bounds.begin(), k.bounds.end(),
                                      [](const RoofTime& t) { return t.resource != Resource::kSharedMemory; });
    if (slowest == k.bounds.end()) continue;
    out.seconds += static_cast<double>(o.count) * slowest->seconds;
    if (slowest->seconds > longest) longest = slowest->seconds, out.roof = slowest->name;
  }
  return out;
}

plot::Roofline operators_on_roofs(const ModelView& v, const ModelRun& r) {
  plot::Roofline out = device_roofline(v.device);
  out.title = fmt::format("Operators of {}, {} at batch {}, {}, on {}", v.model.name, r.request.phase, r.request.batch,
                          length_text(v, r), v.device.name);
  for (const OperatorRun& o : r.operators) {
    if (o.flops <= 0 || o.dram_bytes <= 0) continue;
    const Floor floor = floor_of(o);
    plot::Point p;
    p.name = o.name;
    p.ai = o.explanation.arithmetic_intensity;
    p.tflops = o.flops / o.seconds / 1e12;
    p.roof_tflops = o.flops / floor.seconds / 1e12;
    p.bound_by = floor.roof;
    p.time_us = 1e6 * o.seconds;
    p.share = o.share;
    p.origin = Origin::kModel;
    p.details = {{"operator", o.explanation.work->op},    {"times", fmt::to_string(o.count)},
                 {"FLOPs", count_text(o.flops)},          {"DRAM", bytes_text(o.dram_bytes)},
                 {"ceiling", o.explanation.compute.name}, {"limit", to_string(o.regime)}};
    out.points.push_back(std::move(p));
  }
  return out;
}

plot::Bars time_bars(const ModelView& v, const ModelRun& r) {
  plot::Bars out{fmt::format("Time of each operator at batch {}, {}", r.request.batch, length_text(v, r)),
                 "ms in a step",
                 false,
                 {},
                 {{"ms", {}}}};
  for (const OperatorRun* o : operators_by_time(r)) {
    if (o->share < 0.001) continue;  // too many to show, and invisibly small
    out.labels.push_back(o->name);
    out.series[0].values.push_back(1e3 * o->seconds);
  }
  return out;
}

/// One line per length, over the batches.
plot::Lines over_batches(const ModelView& v, const std::string& title, const std::string& y,
                         double (*value)(const ModelRun&)) {
  plot::Lines out{title, "batch", y, true, true, {}, {}};
  for (size_t l = 0; l < v.lengths.size(); ++l) {
    plot::Lines::Series series{length_text(v, v.at(l, 0)), {}};
    for (size_t b = 0; b < v.batches.size(); ++b)
      series.points.emplace_back(static_cast<double>(v.batches[b]), value(v.at(l, b)));
    std::sort(series.points.begin(), series.points.end());
    out.series.push_back(std::move(series));
  }
  return out;
}

plot::Heatmap heatmap_of(const ModelView& v) {
  const std::string length = phase_of(v).length == "kv" ? "cache length" : "sequence length";
  const std::string assumed = assumed_ridge_text(v.runs.front());
  plot::Heatmap out{
      fmt::format("Arithmetic intensity by batch and {}{}{}", length, assumed.empty() ? "" : ". ", assumed),
      length,
      "batch",
      "FLOP/byte",
      {},
      {},
      {},
      v.runs.front().ridge,
      "MEM",
      "COMP"};
  for (int64_t l : v.lengths) out.x_labels.push_back(fmt::to_string(l));
  for (size_t b = 0; b < v.batches.size(); ++b) {
    out.y_labels.push_back(fmt::to_string(v.batches[b]));
    out.values.emplace_back();
    for (size_t l = 0; l < v.lengths.size(); ++l) out.values.back().push_back(v.at(l, b).arithmetic_intensity());
  }
  return out;
}

}  // namespace

plot::Page model_page(const ModelView& v) {
  plot::Page page;
  page.title = v.model.name;
  if (v.runs.empty()) return page;
  const ModelRun& first = v.runs.front();
  const ModelRequest& q = first.request;
  page.title =
      fmt::format("{}, {} on {}{}", v.model.name, q.phase, q.tp > 1 ? fmt::format("{} x ", q.tp) : "", v.device.name);
  const std::string assumed = assumed_ridge_text(first);
  page.facts = {{"model", v.model.title},
                {"parameters", count_text(v.parameters)},
                {"stored as", q.dtypes},
                {"device", v.device.title},
                {"assumed", assumed_text(q)},
                {"ridge", fmt::format("{:.1f} FLOP/byte ({}){}{}", first.ridge, first.compute.name,
                                      assumed.empty() ? "" : ". ", assumed)},
                {"origin", "model"}};
  const auto speed = [](const ModelRun& r) {
    return fmt::format("{:.1f} {}/s, {:.3f} ms a step", r.units_per_s(), r.unit, 1e3 * r.seconds);
  };
  if (v.runs.size() == 1) {
    page.facts.insert(page.facts.begin(),
                      {{"speed", speed(first)},
                       {"memory", fmt::format("{} of {}{}", bytes_text(first.memory.total()),
                                              bytes_text(first.memory.capacity), q.tp > 1 ? " on each GPU" : "")},
                       {"AI", fmt::format("{:.2f} FLOP/byte", first.arithmetic_intensity())}});
  } else {
    const auto fastest = std::ranges::max_element(v.runs, {}, &ModelRun::units_per_s);
    page.facts.insert(page.facts.begin(),
                      {"highest throughput", fmt::format("{} at batch {}, {}", speed(*fastest), fastest->request.batch,
                                                         length_text(v, *fastest))});
  }
  for (const ModelRun& r : v.runs)
    for (const Warning& w : r.warnings) page.warnings.push_back(w.rule + " " + w.text);
  if (v.batches.size() > 1) {
    plot::Lines ai = over_batches(v, "Arithmetic intensity against batch", "FLOP/byte",
                                  [](const ModelRun& r) { return r.arithmetic_intensity(); });
    ai.marks.emplace_back("ridge", first.ridge);
    page.blocks.emplace_back(std::move(ai));
    page.blocks.emplace_back(over_batches(v, "Throughput against batch", first.unit + "/s",
                                          [](const ModelRun& r) { return r.units_per_s(); }));
  }
  if (v.batches.size() > 1 && v.lengths.size() > 1) page.blocks.emplace_back(heatmap_of(v));
  page.blocks.emplace_back(operators_on_roofs(v, v.runs.back()));
  page.blocks.emplace_back(time_bars(v, v.runs.back()));
  page.blocks.emplace_back(operator_table(v.runs.back()));
  if (v.runs.size() > 1) page.blocks.emplace_back(sweep_table(v));
  return page;
}

}  // namespace roofgen

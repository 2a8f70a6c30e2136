#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.h"
#include "base/units.h"
#include "roofline/json.h"
#include "roofline/lint/json.h"
#include "roofline/views/model_parts.h"

namespace roofgen {
namespace {

const ModelDtypes& dtypes_of(const ModelView& v) {
  return *std::find_if(v.model.dtypes.begin(), v.model.dtypes.end(),
                       [&](const ModelDtypes& d) { return d.name == v.runs.front().request.dtypes; });
}

std::string flop_convention(const ModelRequest& r) {
  std::string out = "MMA FLOPs only, 2 per multiply-add; the allowed half of a causal mask";
  if (r.softmax_flops > 0) out += fmt::format("; and {:g} per softmax element", r.softmax_flops);
  return out;
}

std::string head(const ModelView& v) {
  const ModelRun& r = v.runs.front();
  const ModelRequest& q = r.request;
  std::string out =
      fmt::format("model     {}: {}; {} parameters", v.model.name, v.model.title, count_text(v.parameters));
  if (v.model.published_parameters > 0)
    out += fmt::format(" (published: {})", count_text(v.model.published_parameters));
  std::string roles;
  for (const auto& [role, format] : dtypes_of(v).roles)
    roles += fmt::format("{}{}:{}", roles.empty() ? "" : " ", role, format->name);
  out += fmt::format("\nphase     {}: {}\n", q.phase, phase_of(v).help);
  out += fmt::format("stored    {} ({})\n", q.dtypes, roles);
  out += fmt::format("device    {}{}, {} ceilings; {} {:.4g} TFLOP/s, ridge {:.1f}\n",
                     q.tp > 1 ? fmt::format("{} x ", q.tp) : "", v.device.name, to_string(q.roofs), r.compute.name,
                     r.compute.rate / 1e12, r.ridge);
  out += fmt::format("assumed   {}\n", assumed_text(q));
  out += fmt::format("FLOPs     {}\n\n", flop_convention(q));
  return out;
}

std::string text_of(const plot::TableBlock& block, std::initializer_list<size_t> left) {
  TextTable table(block.head);
  for (const size_t i : left) table.left(i);
  for (const auto& row : block.rows) table.row(row);
  return table.str() + "\n";
}

std::string parallel(const ModelRun& r) {
  const ModelParallel& p = r.parallel;
  return fmt::format(
      "group     {} GPUs: {} over NVLink by each, {} at bandwidth alone ({:.1f} % of the step)\n"
      "          {:.1f} % of the time on one GPU is not divided: at most {:.2f}x; with the exchange {:.2f}x\n",
      r.request.tp, bytes_text(p.link_bytes), time_text(p.collective_seconds), 100 * p.collective_seconds / r.seconds,
      100 * p.unsharded_share, p.amdahl_bound, p.speedup);
}

std::string totals(const ModelRun& r) {
  const std::string each = r.request.tp > 1 ? " on each GPU" : "";
  std::string out = fmt::format("step      {} FLOPs", count_text(r.flops));
  if (r.vector_flops > 0) out += fmt::format(" and {} outside the matrix units", count_text(r.vector_flops));
  out += fmt::format(", {} of DRAM traffic{}, {} (model)\n", bytes_text(r.dram_bytes), each, time_text(r.seconds));
  out += fmt::format("AI        {:.2f} FLOP/byte, {} the ridge at {:.1f}", r.arithmetic_intensity(),
                     r.below_ridge() ? "left of" : "right of", r.ridge);
  if (r.ai_limit) out += fmt::format("; {:.2f} as the batch grows", *r.ai_limit);
  if (const std::string assumed = assumed_ridge_text(r); !assumed.empty()) out += ". " + assumed;
  out += fmt::format("\nregime    {}\n", to_string(r.regime));
  out += fmt::format("speed     {:.1f} {}/s; {:.3f} ms a step, {:.3f} ms a request", r.units_per_s(), r.unit,
                     1e3 * r.seconds, r.ms_per_request());
  if (r.units_per_s_limit) out += fmt::format("; at most {:.0f} {}/s as the batch grows", *r.units_per_s_limit, r.unit);
  if (r.kv_units_per_s) out += fmt::format(" (reading the cache alone allows {:.0f})", *r.kv_units_per_s);
  out += fmt::format("\nmemory    {} weights + {} cache + {} activations = {} of {}{}: {}\n",
                     bytes_text(r.memory.weights), bytes_text(r.memory.kv_cache), bytes_text(r.memory.activations),
                     bytes_text(r.memory.total()), bytes_text(r.memory.capacity), each,
                     r.memory.fits() ? fmt::format("fits, up to batch {}", r.largest_batch) : "does not fit");
  if (r.request.tp > 1) out += parallel(r);
  return out;
}

std::string sweep(const ModelView& v) {
  std::string out = text_of(sweep_table(v), {10});
  for (size_t l = 0; l < v.lengths.size(); ++l) {
    const ModelRun& r = v.at(l, 0);
    out += fmt::format("{} {}: ", phase_of(v).length, v.lengths[l]);
    out += r.largest_batch > 0 ? fmt::format("batch {} is the largest that fits", r.largest_batch)
                               : "not even one sequence fits";
    if (r.ai_limit) out += fmt::format("; as the batch grows, AI {:.2f}", *r.ai_limit);
    if (r.units_per_s_limit) out += fmt::format(" and {:.0f} {}/s", *r.units_per_s_limit, r.unit);
    if (r.kv_units_per_s) out += fmt::format(" (reading the cache alone allows {:.0f})", *r.kv_units_per_s);
    out += "\n";
  }
  return out;
}

std::string heatmap(const ModelView& v) {
  std::vector<std::string> columns = {"AI: batch \\ " + phase_of(v).length};
  for (int64_t l : v.lengths) columns.push_back(std::to_string(l));
  TextTable table(columns);
  double most = 0;
  for (size_t b = 0; b < v.batches.size(); ++b) {
    std::vector<std::string> row = {std::to_string(v.batches[b])};
    for (size_t l = 0; l < v.lengths.size(); ++l) {
      const ModelRun& r = v.at(l, b);
      most = std::max(most, r.arithmetic_intensity());
      row.push_back(fmt::format("{:.1f} {:<4}", r.arithmetic_intensity(), r.below_ridge() ? "MEM" : "COMP"));
    }
    table.row(std::move(row));
  }
  const std::string assumed = assumed_ridge_text(v.runs.front());
  return fmt::format("\n{}the largest is {:.1f}; MEM is left of the ridge at {:.1f}, COMP right of it{}{}\n",
                     table.str(), most, v.runs.front().ridge, assumed.empty() ? "" : ". ", assumed);
}

Json series_item(const ModelRun& r) {
  Json j{{"batch", r.request.batch}, {"kv", r.kv}, {"seq", r.seq}};
  j["arithmetic_intensity"] = r.arithmetic_intensity();
  j[r.unit + "_per_s"] = r.units_per_s();
  j["step_ms"] = 1e3 * r.seconds;
  j["ms_per_request"] = r.ms_per_request();
  ROOFGEN_PUT(j, r, flops, vector_flops, dram_bytes)
  j["regime"] = to_string(r.regime);
  j["compute_roof"] = r.compute.name;
  j["ridge"] = r.ridge;
  j["assumed_ridge"] = r.assumed_ridge();
  j["below_ridge"] = r.below_ridge();
  j["arithmetic_intensity_limit"] = r.ai_limit;
  j[r.unit + "_per_s_limit"] = r.units_per_s_limit;
  j["cache_" + r.unit + "_per_s"] = r.kv_units_per_s;
  j["memory"] = {{"weights_bytes", r.memory.weights},
                 {"cache_bytes", r.memory.kv_cache},
                 {"activation_bytes", r.memory.activations},
                 {"total_bytes", r.memory.total()},
                 {"device_bytes", r.memory.capacity}};
  j["fits"] = r.memory.fits();
  j["largest_batch"] = r.largest_batch;
  if (r.request.tp > 1)
    j["parallel"] = {{"link_bytes", r.parallel.link_bytes},
                     {"collective_ms", 1e3 * r.parallel.collective_seconds},
                     {"unsharded_share", r.parallel.unsharded_share},
                     {"amdahl_bound", r.parallel.amdahl_bound},
                     {"speedup", r.parallel.speedup}};
  return j;
}

Json operator_json(const OperatorRun& o) {
  const OpWork& w = *o.explanation.work;
  Json j{{"name", o.name}, {"op", w.op}, {"form", w.form}, {"count", o.count}, {"dims", w.dims}};
  for (const auto& [role, format] : w.dtypes) j["dtypes"][role] = format->name;
  ROOFGEN_PUT(j, o, flops, dram_bytes)
  if (o.link_bytes > 0) j["link_bytes"] = o.link_bytes;
  j["arithmetic_intensity"] = o.explanation.arithmetic_intensity;
  j["compute_roof"] = o.explanation.compute.name;
  if (!o.explanation.compute_note.empty()) j["compute_note"] = o.explanation.compute_note;
  j["regime"] = to_string(o.regime);
  j["time_us"] = 1e6 * o.seconds;
  ROOFGEN_PUT(j, o, share, sharded)
  return j;
}

}  // namespace

std::string model_text(const ModelView& v) {
  if (v.runs.empty()) return fmt::format("model     {}: {}; nothing was run\n", v.model.name, v.model.title);
  std::string out = head(v);
  if (v.runs.size() == 1) {
    out += text_of(operator_table(v.runs.front()), {0, 1, 8}) + totals(v.runs.front());
  } else {
    out += sweep(v);
    if (v.batches.size() > 1 && v.lengths.size() > 1) out += heatmap(v);
  }
  for (const std::string& note : notes_of(v)) out += fmt::format("note      {}\n", note);
  for (const ModelRun& r : v.runs)
    for (const Warning& w : r.warnings) out += fmt::format("warning   {} {}\n", w.rule, w.text);
  return wrapped(out, 10);
}

std::string model_json(const ModelView& v) {
  Json j{{"schema", kModelSchema}, {"model", v.model.name}, {"source", v.model.source}, {"parameters", v.parameters}};
  if (v.runs.empty()) {
    j["series"] = Json::array();
    return json_document(j);
  }
  const ModelRequest& q = v.runs.front().request;
  j["phase"] = q.phase;
  j["weights"] = q.dtypes;
  for (const auto& [role, format] : dtypes_of(v).roles) j["dtypes"][role] = format->name;
  j["device"] = v.device.name;
  j["ceilings"] = to_string(q.roofs);
  j["tp"] = q.tp;
  Json& assumptions = j["assumptions"];
  ROOFGEN_PUT(assumptions, q, bandwidth_efficiency, compute_efficiency)
  assumptions["launches"] = q.launches == Launches::kGraph ? "graph" : "separate";
  assumptions["softmax_flops"] = q.softmax_flops;
  assumptions["flop_convention"] = flop_convention(q);
  j["origin"] = "model";
  j["series"] = Json::array();
  for (const ModelRun& r : v.runs) j["series"].push_back(series_item(r));
  if (v.runs.size() == 1) {
    j["operators"] = Json::array();
    for (const OperatorRun& o : v.runs.front().operators) j["operators"].push_back(operator_json(o));
  }
  j["notes"] = notes_of(v);
  j["warnings"] = Json::array();
  for (const ModelRun& r : v.runs)
    for (const Warning& w : r.warnings) j["warnings"].push_back(w);
  return json_document(j);
}

std::string models_text(const std::vector<Model>& models) {
  TextTable table({"model", "phases", "stored as", "description"});
  for (size_t i : {0, 1, 2, 3}) table.left(i);
  const auto joined = [](const auto& items) {
    std::string out;
    for (const auto& i : items) out += (out.empty() ? "" : ", ") + i.name;
    return out;
  };
  for (const Model& m : models) table.row({m.name, joined(m.phases), joined(m.dtypes), m.title});
  return table.str();
}

const ModelPhase& phase_of(const ModelView& v) {
  return *std::find_if(v.model.phases.begin(), v.model.phases.end(),
                       [&](const ModelPhase& p) { return p.name == v.runs.front().request.phase; });
}

std::string assumed_text(const ModelRequest& q) {
  return fmt::format(
      "{:g} % of each bandwidth, {:g} % of each arithmetic rate, {}", 100 * q.bandwidth_efficiency,
      100 * q.compute_efficiency,
      q.launches == Launches::kGraph ? "no gaps between kernels (CUDA graph)" : "one launch before each kernel");
}

std::string assumed_ridge_text(const ModelRun& r) {
  if (std::fabs(r.assumed_ridge() - r.ridge) <= 1e-9 * r.ridge) return "";
  return fmt::format("With these assumptions the ridge is at {:.1f}; the limits use that ridge", r.assumed_ridge());
}

std::vector<std::string> notes_of(const ModelView& v) {
  std::vector<std::string> out = v.model.notes;
  for (const ModelRun& r : v.runs)
    for (const std::string& note : r.notes)
      if (std::find(out.begin(), out.end(), note) == out.end()) out.push_back(note);
  return out;
}

std::vector<const OperatorRun*> operators_by_time(const ModelRun& r) {
  std::vector<const OperatorRun*> out;
  for (const OperatorRun& o : r.operators) out.push_back(&o);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  return out;
}

plot::TableBlock operator_table(const ModelRun& r) {
  plot::TableBlock out{"Operators", {"operator", "op", "times", "FLOPs", "DRAM", "AI", "time", "share", "limit"}, {}};
  for (const OperatorRun* o : operators_by_time(r))
    out.rows.push_back({o->name, o->explanation.work->op, fmt::to_string(o->count), count_text(o->flops),
                        bytes_text(o->dram_bytes), fmt::format("{:.2f}", o->explanation.arithmetic_intensity),
                        time_text(o->seconds), fmt::format("{:.1f} %", 100 * o->share), to_string(o->regime)});
  return out;
}

plot::TableBlock sweep_table(const ModelView& v) {
  plot::TableBlock out{"Steps",
                       {"batch", phase_of(v).length, "FLOPs", "DRAM", "AI", v.runs.front().unit + "/s", "ms/step",
                        "ms/request", "memory", "fits", "limit"},
                       {}};
  for (const ModelRun& r : v.runs)
    out.rows.push_back({fmt::to_string(r.request.batch), fmt::to_string(r.kv), count_text(r.flops),
                        bytes_text(r.dram_bytes), fmt::format("{:.2f}", r.arithmetic_intensity()),
                        fmt::format("{:.1f}", r.units_per_s()), fmt::format("{:.3f}", 1e3 * r.seconds),
                        fmt::format("{:.3f}", r.ms_per_request()), bytes_text(r.memory.total()),
                        r.memory.fits() ? "yes" : "no", to_string(r.regime)});
  return out;
}

}  // namespace roofgen

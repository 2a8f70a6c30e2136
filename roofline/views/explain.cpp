#include <fmt/format.h>

#include "base/text_table.h"
#include "base/units.h"
#include "roofline/json.h"
#include "roofline/lint/json.h"
#include "roofline/views/views.h"

namespace roofgen {
namespace {

std::string inputs_line(const OpWork& w) {
  std::string out = fmt::format("{} ({}): {}\n         ", w.op, w.form, w.title);
  for (const auto& [name, value] : w.dims) out += fmt::format(" {}={}", name, value);
  for (const auto& [name, on] : w.flags)
    if (on) out += " " + name;
  for (const auto& [role, format] : w.dtypes) out += fmt::format(" {}:{}", role, format->name);
  return out;
}

std::string limit_line(const ExplainView& v) {
  const OpWork& w = *v.explanation.work;
  std::string out = fmt::format("AI grows to {:.1f} as {} does", *w.ai_limit, w.ai_limit_of);
  if (v.crossing)
    out += fmt::format("; it reaches the ridge at {} = {}", w.ai_limit_of, *v.crossing);
  else if (*w.ai_limit < v.explanation.ridge)
    out += "; it never reaches the ridge";
  return out;
}

Json kernel_json(const KernelExplanation& k) {
  const KernelWork& work = *k.work;
  Json j{{"name", work.name}, {"flops", k.flops}};
  ROOFGEN_PUT(j, work, mma_flops, vector_flops, exps)
  j["dram_bytes"] = work.dram_bytes();
  j["l2_bytes"] = work.l2_bytes;
  j["smem_bytes"] = k.smem_bytes;
  if (work.link_bytes > 0) j["link_bytes"] = work.link_bytes;
  j["arithmetic_intensity"] = k.arithmetic_intensity;
  j["ctas"] = work.ctas;
  j["waves"] = k.waves;
  j["regime"] = to_string(k.regime);
  j["time_us"] = 1e6 * k.seconds;
  for (const RoofTime& b : k.bounds) j["roofs"].push_back({{"roof", b.name}, {"time_us", 1e6 * b.seconds}});
  for (const OperandWork& o : work.operands)
    j["operands"].push_back({{"name", o.name},
                             {"access", o.write ? "write" : "read"},
                             {"dtype", o.format->name},
                             {"elements", o.elements},
                             {"bytes", o.bytes()}});
  return j;
}

}  // namespace

std::string explain_text(const ExplainView& v) {
  const Explanation& e = v.explanation;
  const OpWork& w = *e.work;
  std::string out = fmt::format("operator  {}\n", inputs_line(w));
  out += fmt::format("device    {}, {} ceilings; {} {:.4g} TFLOP/s\n", e.device, to_string(e.roofs), e.compute.name,
                     e.compute.rate / 1e12);
  if (!e.compute_note.empty()) out += fmt::format("          {}\n", e.compute_note);
  out += fmt::format("FLOPs     {} ({})\n", count_text(e.flops), w.flop_convention());
  out += fmt::format("bytes     {} of DRAM traffic; {} exps\n\n", bytes_text(e.dram_bytes), count_text(e.exps));

  TextTable operands({"kernel", "operand", "access", "dtype", "elements", "bytes"});
  for (size_t i : {0, 1, 2, 3}) operands.left(i);
  for (const KernelExplanation& k : e.kernels)
    for (const OperandWork& o : k.work->operands)
      operands.row({k.work->name, o.name, o.write ? "write" : "read", o.format->name, count_text(o.elements),
                    bytes_text(o.bytes())});
  out += operands.str() + "\n";

  TextTable kernels(
      {"kernel", "FLOPs", "DRAM", "AI", "exps", "CTAs", "waves", "time", "limit", "under each roof alone"});
  for (size_t i : {0, 8, 9}) kernels.left(i);
  for (const KernelExplanation& k : e.kernels) {
    std::string roofs;
    for (const RoofTime& b : k.bounds)
      roofs += fmt::format("{}{} {}", roofs.empty() ? "" : ", ", b.name, time_text(b.seconds));
    kernels.row({k.work->name, count_text(k.flops), bytes_text(k.work->dram_bytes()),
                 intensity_text(k.arithmetic_intensity), count_text(k.work->exps), fmt::format("{:.0f}", k.work->ctas),
                 fmt::format("{:.2f}", k.waves), time_text(k.seconds), to_string(k.regime), roofs});
  }
  out += kernels.str() + "\n";

  out += fmt::format("AI        {} FLOP/byte, {} the ridge at {:.1f}\n", intensity_text(e.arithmetic_intensity),
                     e.below_ridge() ? "left of" : "right of", e.ridge);
  if (w.ai_limit) out += fmt::format("          {}\n", limit_line(v));
  out += fmt::format("regime    {}; of the roofs, {} binds\n", to_string(e.regime),
                     e.binding_roof.empty() ? "none" : e.binding_roof);
  if (e.flops > 0)
    out += fmt::format("ceiling   {:.4g} TFLOP/s attainable, {:.3g} % of {}\n", e.attainable_flops_per_s / 1e12,
                       100 * e.attainable_flops_per_s / e.compute.rate, e.compute.name);
  out += fmt::format("time      {} at best (model: launches, waves and roofs)\n", time_text(e.seconds));
  out += fmt::format("lever     {}\n", e.next_lever);
  for (const Warning& x : e.warnings) out += fmt::format("warning   {} {}\n", x.rule, x.text);
  return wrapped(out, 10);
}

std::string explain_json(const ExplainView& v) {
  const Explanation& e = v.explanation;
  const OpWork& w = *e.work;
  Json j{{"schema", kExplainSchema}};
  ROOFGEN_PUT(j, w, op, form, title, dims, flags)
  for (const auto& [role, format] : w.dtypes) j["dtypes"][role] = format->name;
  j["math_dtype"] = w.math;
  ROOFGEN_PUT(j, w, accumulate, softmax_flops)
  j["device"] = e.device;
  j["ceilings"] = to_string(e.roofs);
  j["flops"] = e.flops;
  j["flop_convention"] = w.flop_convention();
  ROOFGEN_PUT(j, e, dram_bytes, exps, arithmetic_intensity, ridge)
  j["below_ridge"] = e.below_ridge();
  j["arithmetic_intensity_limit"] = w.ai_limit;
  j["ridge_crossing"] = v.crossing ? Json{{w.ai_limit_of, *v.crossing}} : Json(nullptr);
  j["regime"] = to_string(e.regime);
  j["binding_roof"] = e.binding_roof;
  j["compute_roof"] = {{"name", e.compute.name},
                       {"tflops", e.compute.rate / 1e12},
                       {"origin", e.compute.origin},
                       {"cell", e.compute.cell}};
  if (!e.compute_note.empty()) j["compute_roof"]["note"] = e.compute_note;
  j["attainable_tflops"] = e.attainable_flops_per_s / 1e12;
  j["time_us"] = 1e6 * e.seconds;
  j["origin"] = "model";
  j["next_lever"] = e.next_lever;
  j["passes"] = Json::array();
  for (const KernelExplanation& k : e.kernels) j["passes"].push_back(kernel_json(k));
  j["warnings"] = e.warnings;
  return json_document(j);
}

}  // namespace roofgen

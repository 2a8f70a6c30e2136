#include "roofline/analyses/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/units.h"

namespace roofgen {
namespace {

/// Two rates that would be drawn as one line.
bool close_to(double a, double b) { return std::fabs(a - b) <= 0.01 * std::max(a, b); }

bool is_lesser(const Roof& r) {
  return r.accumulate == "fp16" || r.math == "int4" ||
         (r.resource != Resource::kTensor && r.math != "fp32" && r.math != "fp64");
}

/// "BF16 tensor" of "BF16 tensor, FP32 accumulate": on a line there is room for no more.
std::string short_name(const Roof& r) { return is_lesser(r) ? r.name : r.name.substr(0, r.name.find(',')); }

/// "BF16/FP16 tensor" for two units of one kind, otherwise "FP64 tensor, FP32 CUDA cores".
std::string shared_name(const std::string& a, const std::string& b) {
  const size_t cut = a.find(' '), other = b.find(' ');
  return a.substr(cut) == b.substr(other) ? a.substr(0, cut) + "/" + b : a + ", " + b;
}

}  // namespace

double attainable_tflops(const Device& device, const std::string& math, double ai) {
  const auto peak = matrix_roof(device, math, "fp32", RoofSet::kDatasheet);
  return std::min(peak ? peak->rate : 0, ai * roof_of(device, Resource::kDram, RoofSet::kDatasheet).rate) / 1e12;
}

plot::Roofline device_roofline(const Device& device, bool everything) {
  plot::Roofline out;
  out.title = fmt::format("Roofline of {}", device.title.empty() ? device.name : device.title);
  out.subtitle = "dense, FP32 (INT8: INT32) accumulation; dashed: datasheet, solid: sustained or measured";
  const auto sustained = bandwidth_roofs(device, RoofSet::kSustained);
  for (const Roof& b : bandwidth_roofs(device, RoofSet::kDatasheet)) {
    if (b.name == "NVLink") continue;  // bytes between devices are no kernel's x axis
    out.slopes.push_back({b.name, b.rate / 1e9, b.origin == Origin::kMeasured ? Origin::kDatasheet : b.origin});
    for (const Roof& s : sustained)
      if (s.name == b.name && (b.name == "DRAM" || (b.name == "L2" && s.origin == Origin::kMeasured)) &&
          !close_to(s.rate, b.rate))
        out.slopes.push_back({s.name, s.rate / 1e9, s.origin, true});
  }
  for (const Roof& r : compute_roofs(device, RoofSet::kDatasheet)) {
    if (is_lesser(r) && !everything) continue;
    const auto twin = std::find_if(out.ceilings.begin(), out.ceilings.end(),
                                   [&](const plot::Ceiling& c) { return close_to(c.tflops, r.rate / 1e12); });
    if (twin == out.ceilings.end())
      out.ceilings.push_back({short_name(r), r.rate / 1e12, r.origin, "DRAM"});
    else
      twin->name = shared_name(twin->name, short_name(r));
  }
  // The rates of matrix instructions that were measured on this GPU, at the clock under that load.
  for (const Roof& r : compute_roofs(device, RoofSet::kDatasheet))
    for (MatrixInstruction instruction : kMatrixInstructions) {
      const std::string math = r.accumulate == "fp16" ? r.math + "_acc16" : r.math;
      const auto cell = device.cells.find(rate_cell(instruction, math));
      if (r.resource != Resource::kTensor || (is_lesser(r) && !everything) || cell == device.cells.end() ||
          cell->second.origin != Origin::kMeasured)
        continue;
      const double tflops = 1e-12 * instruction_roof(device, instruction, math, RoofSet::kSustained).rate;
      const auto twin = std::find_if(out.ceilings.begin(), out.ceilings.end(),
                                     [&](const plot::Ceiling& c) { return c.sustained && close_to(c.tflops, tflops); });
      std::string name = r.math;
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
      name += fmt::format(" {}", to_string(instruction));
      if (twin == out.ceilings.end())
        out.ceilings.push_back({name, tflops, Origin::kMeasured, "DRAM", true});
      else
        twin->name = shared_name(twin->name, name);
    }
  return out;
}

std::vector<plot::Point> operator_points(const std::string& name, const Explanation& e, bool levels) {
  plot::Point p;
  p.name = name;
  p.ai = e.arithmetic_intensity;
  p.time_us = 1e6 * e.seconds;
  p.tflops = e.seconds > 0 ? e.flops / e.seconds / 1e12 : 0;
  p.roof_tflops = e.attainable_flops_per_s / 1e12;
  p.bound_by = e.binding_roof;
  p.origin = Origin::kModel;
  p.details = {{"operator", fmt::format("{} ({})", e.work->op, e.work->form)},
               {"FLOPs", count_text(e.flops)},
               {"DRAM", bytes_text(e.dram_bytes)},
               {"exps", count_text(e.exps)},
               {"ridge", fmt::format("{:.0f} FLOP/byte ({})", e.ridge, e.compute.name)},
               {"limit", to_string(e.regime)},
               {"launches", fmt::to_string(e.kernels.size())},
               {"next", e.next_lever}};
  std::vector<plot::Point> out{p};
  if (!levels) return out;
  double l2 = 0, smem = 0;
  for (const KernelExplanation& k : e.kernels) {
    l2 += k.work->l2_bytes;
    smem += k.smem_bytes;
  }
  const auto add = [&](const char* level, double bytes) {
    if (bytes <= 0) return;
    p.level = level;
    p.ai = e.flops / bytes;
    p.roof_tflops = 0;
    out.push_back(p);
  };
  add("L2", l2);
  add("shared memory", smem);
  return out;
}

std::optional<plot::Lines> intensity_lines(const WorkFormula& formula, WorkRequest request, const Explanation& e) {
  if (formula.dims().empty()) return std::nullopt;
  const std::string dim = formula.grows().empty() ? formula.dims().front().name : formula.grows().front();
  // Dimensions whose preset is the swept dimension (kv_len defaults to L) follow the sweep unless the user set them.
  request.dims = e.work->dims;
  for (const WorkDim& d : formula.dims())
    if (d.preset && d.preset->text() == dim && request.dims[d.name] == request.dims[dim]) request.dims.erase(d.name);
  plot::Lines out;
  out.title = fmt::format("Arithmetic intensity against {}", dim);
  out.x_title = dim;
  out.y_title = "FLOP/byte";
  out.log_y = true;
  out.series.push_back({e.work->form, {}});
  double least = 0, most = 0;
  for (int64_t value = 1; value <= (1 << 16); value *= 2) {
    request.dims[dim] = value;
    const auto work = formula.evaluate(request);
    if (!work || !(work->arithmetic_intensity() > 0)) continue;
    const double ai = work->arithmetic_intensity();
    least = least > 0 ? std::min(least, ai) : ai;
    most = std::max(most, ai);
    out.series[0].points.emplace_back(static_cast<double>(value), ai);
  }
  if (!(most > 1.05 * least)) return std::nullopt;
  out.marks.emplace_back("ridge", e.ridge);
  if (e.work->ai_limit) out.marks.emplace_back("limit of the shape", *e.work->ai_limit);
  return out;
}

plot::Page explain_page(const Device& device, const Explanation& e, std::optional<plot::Lines> lines) {
  plot::Page page;
  page.title = fmt::format("{} on {}", e.work->op, device.name);
  std::string dims;
  for (const auto& [name, value] : e.work->dims) dims += fmt::format("{}{}={}", dims.empty() ? "" : " ", name, value);
  page.facts = {{"answer", fmt::format("{}; binding roof: {}", to_string(e.regime), e.binding_roof)},
                {"operator", e.work->title},
                {"dimensions", dims},
                {"device", device.title},
                {"FLOPs", count_text(e.flops) + " (" + e.work->flop_convention() + ")"},
                {"DRAM", bytes_text(e.dram_bytes)},
                {"AI", fmt::format("{:.2f} FLOP/byte, ridge {:.1f}", e.arithmetic_intensity, e.ridge)},
                {"next lever", e.next_lever},
                {"origin", "model"}};
  for (const Warning& w : e.warnings) page.warnings.push_back(w.rule + " " + w.text);
  plot::Roofline roofline = device_roofline(device);
  if (e.flops > 0 && e.dram_bytes > 0) roofline.points = operator_points(e.work->op, e, true);
  page.blocks.emplace_back(std::move(roofline));
  plot::Bars bars{"DRAM bytes of each kernel", "MB", false, {}, {{"DRAM MB", {}}}};
  plot::TableBlock table{"Kernels", {"kernel", "FLOPs", "DRAM", "AI", "exps", "CTAs", "waves", "time", "limit"}, {}};
  for (const KernelExplanation& k : e.kernels) {
    const double bytes = k.work->dram_bytes();
    bars.labels.push_back(k.work->name);
    bars.series[0].values.push_back(bytes / 1e6);
    table.rows.push_back({k.work->name, count_text(k.flops), bytes_text(bytes),
                          fmt::format("{:.2f}", k.arithmetic_intensity), count_text(k.work->exps),
                          fmt::format("{:.0f}", k.work->ctas), fmt::format("{:.2f}", k.waves), time_text(k.seconds),
                          to_string(k.regime)});
  }
  page.blocks.emplace_back(std::move(bars));
  if (lines) page.blocks.emplace_back(std::move(*lines));
  page.blocks.emplace_back(std::move(table));
  return page;
}

}  // namespace roofgen

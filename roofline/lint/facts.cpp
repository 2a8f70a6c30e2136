#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "roofline/lint/rules.h"

namespace roofgen::lint_rules {

bool near(double a, double b, double tolerance) { return std::fabs(a - b) <= tolerance * std::fabs(b); }

std::string number_text(double v) {
  const double size = std::fabs(v);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return fmt::format("{:.3g}", v);
  if (size >= 1000) return fmt::format("{:.0f}", v);
  return fmt::format("{:.4g}", v);
}

std::string math_of(const Claim& c) {
  if (c.work && c.work->uses_matrix_units()) return c.work->math;
  if (c.matrix_work == false) return "fp32";
  const std::string& name = !c.ceiling_dtype.empty() ? c.ceiling_dtype : c.dtype;
  if (name.empty()) return "";
  const auto format = find_number_format(name);
  return format ? (*format)->math : "";
}

std::optional<Roof> ceiling_of(const Claim& c) {
  if (!c.device) return {};
  if (c.matrix_work == false) return vector_roof(*c.device, RoofSet::kDatasheet);
  const std::string math = math_of(c);
  if (math.empty()) return {};
  const auto roof = matrix_roof(*c.device, math, c.accumulate.empty() ? "fp32" : c.accumulate, RoofSet::kDatasheet);
  return roof ? std::optional(*roof) : std::nullopt;
}

std::optional<double> bandwidth_of(const Claim& c) {
  if (c.bandwidth_gb_s) return c.bandwidth_gb_s;
  if (c.device) return c.device->at("dram_gb_s");
  return {};
}

std::optional<double> ai_of(const Claim& c) {
  if (c.ai) return c.ai;
  if (c.flops && c.bytes && *c.bytes > 0) return *c.flops / *c.bytes;
  return {};
}

std::optional<double> roof_at(const Claim& c) {
  std::optional<double> peak = c.peak_tflops;
  if (!peak)
    if (const auto roof = ceiling_of(c)) peak = roof->rate / 1e12;
  if (!peak && c.device) peak = compute_roofs(*c.device, RoofSet::kDatasheet).front().rate / 1e12;
  const auto ai = ai_of(c), bandwidth = bandwidth_of(c);
  if (!ai || !bandwidth) return peak;
  const double slope = *ai * *bandwidth / 1000;
  return peak ? std::min(*peak, slope) : slope;
}

double fastest_vector_roof(const Device& device) {
  double out = 0;
  for (const Roof& r : compute_roofs(device, RoofSet::kDatasheet))
    if (r.resource != Resource::kTensor) out = std::max(out, r.rate);
  return out;
}

std::vector<ClaimedPeak> claimed_peaks(const Claim& c) {
  std::vector<ClaimedPeak> out;
  const auto bandwidth = bandwidth_of(c), ai = ai_of(c);
  if (c.peak_tflops)
    out.push_back({"peak", *c.peak_tflops, fmt::format("{} TFLOPS", number_text(*c.peak_tflops))});
  else if (c.ridge && bandwidth)
    out.push_back({"ridge", *c.ridge * *bandwidth / 1000,
                   fmt::format("a ridge of {} at {} GB/s ({} TFLOPS)", number_text(*c.ridge), number_text(*bandwidth),
                               number_text(*c.ridge * *bandwidth / 1000))});
  if (c.attainable_tflops && !(ai && bandwidth && near(*c.attainable_tflops, *ai * *bandwidth / 1000, 0.03)))
    out.push_back({"attainable", *c.attainable_tflops, fmt::format("{} TFLOPS", number_text(*c.attainable_tflops))});
  return out;
}

double working_set(const OpWork& w) {
  double out = 0;
  for (const KernelWork& k : w.kernels)
    for (const OperandWork& o : k.operands) {
      bool counted = false;
      for (const KernelWork* p = w.kernels.data(); p <= &k; ++p)
        for (const OperandWork& x : p->operands) counted |= x.name == o.name && (p != &k || &x < &o);
      if (!counted) out += o.bytes();
    }
  return out;
}

double decode_ai(double batch, double weight_bytes, double kv_bytes, double element_bytes) {
  return batch * (weight_bytes + kv_bytes) * 2 / element_bytes / (weight_bytes + batch * kv_bytes);
}

std::optional<DecodeBytes> decode_bytes(const Claim& c) {
  DecodeBytes out;
  if (!c.dtype.empty())
    if (const auto format = find_number_format(c.dtype)) out.element_bytes = (*format)->bytes;
  const double layers = c.layers.value_or(1);
  if (c.weight_bytes)
    out.weights = *c.weight_bytes;
  else if (c.hidden)
    out.weights = 12 * *c.hidden * *c.hidden * layers * out.element_bytes;
  else
    return {};
  if (c.kv_bytes)
    out.cache = *c.kv_bytes;
  else if (c.hidden && c.kv_len)
    out.cache = 2 * *c.hidden * *c.kv_len * layers * out.element_bytes;
  else
    return {};
  // Weights and cache must cover the same layers: one, or all.
  if (!c.layers && c.weight_bytes.has_value() != c.kv_bytes.has_value()) return {};
  if (!(out.weights > 0) || !(out.cache > 0)) return {};
  return out;
}

}  // namespace roofgen::lint_rules

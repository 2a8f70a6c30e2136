#include <fmt/format.h>

#include "base/text_table.h"
#include "base/units.h"
#include "roofline/json.h"
#include "roofline/roofs.h"
#include "roofline/views/views.h"

namespace roofgen {
namespace {

/// Four significant digits, without an exponent.
std::string rate_text(double value) {
  return value >= 9999.5 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string peak(const Device& d, const char* cell) { return d.has(cell) ? rate_text(d.at(cell)) : "-"; }

/// The ridge of half-precision matrix work: BF16, or FP16 on devices without BF16.
std::string ridge_text(const Device& d) {
  const auto roof = matrix_roof(d, d.has("peak_bf16_tflops") ? "bf16" : "fp16", "fp32", RoofSet::kDatasheet);
  return roof ? fmt::format("{:.0f}", ridge(d, *roof, RoofSet::kDatasheet)) : "-";
}

std::string value_text(const Cell& c) {
  if (c.unit == "bytes") return fmt::format("{:.0f}", c.value);
  return fmt::format("{:.10g}", c.value);
}

}  // namespace

std::string devices_text(const std::vector<Device>& devices) {
  TextTable t({"device", "arch", "SMs", "DRAM GB/s", "memory", "L2", "FP64", "FP32", "TF32", "BF16", "FP16", "FP8",
               "INT8", "FP4", "ridge 16-bit", "title"});
  t.left(0).left(1).left(15);
  for (const Device& d : devices)
    t.row({d.name, d.arch, peak(d, "sms"), peak(d, "dram_gb_s"), bytes_text(d.at("memory_bytes")),
           d.has("l2_bytes") ? bytes_text(d.at("l2_bytes")) : "-", peak(d, "peak_fp64_tflops"),
           peak(d, "peak_fp32_tflops"), peak(d, "peak_tf32_tflops"), peak(d, "peak_bf16_tflops"),
           peak(d, "peak_fp16_tflops"), peak(d, "peak_fp8_tflops"), peak(d, "peak_int8_tflops"),
           peak(d, "peak_fp4_tflops"), ridge_text(d), d.title});
  return t.str() +
         "\nDense peaks in TFLOP/s (INT8: TOP/s), FP32 accumulation; ridge in FLOP per DRAM byte.\n"
         "`roofgen devices NAME` has every cell with its source.\n";
}

std::string device_text(const Device& d) {
  std::string out = fmt::format("{}  {} ({})\n\n", d.name, d.title, d.arch);
  TextTable roofs({"ceiling", "TFLOP/s", "ridge", "sustained", "origin"});
  roofs.left(0).left(4);
  const std::vector<Roof> sustained = compute_roofs(d, RoofSet::kSustained);
  for (const Roof& r : compute_roofs(d, RoofSet::kDatasheet)) {
    double held = 0;
    for (const Roof& s : sustained)
      if (s.cell == r.cell) held = s.rate;
    roofs.row({r.name, rate_text(r.rate / 1e12), fmt::format("{:.1f}", ridge(d, r, RoofSet::kDatasheet)),
               rate_text(held / 1e12), to_string(r.origin)});
  }
  out += roofs.str() + "\n";
  TextTable slopes({"bandwidth", "GB/s", "sustained", "origin"});
  slopes.left(0).left(3);
  const std::vector<Roof> held = bandwidth_roofs(d, RoofSet::kSustained);
  const std::vector<Roof> spec = bandwidth_roofs(d, RoofSet::kDatasheet);
  for (const Roof& b : spec)
    for (const Roof& h : held)
      if (h.name == b.name)
        slopes.row(
            {b.name, fmt::format("{:.5g}", b.rate / 1e9), fmt::format("{:.5g}", h.rate / 1e9), to_string(b.origin)});
  slopes.row({"special functions",
              fmt::format("{:.3g} T/s", roof_of(d, Resource::kSpecial, RoofSet::kDatasheet).rate / 1e12),
              fmt::format("{:.3g} T/s", roof_of(d, Resource::kSpecial, RoofSet::kSustained).rate / 1e12), "model"});
  out += slopes.str() + "\n";
  TextTable cells({"cell", "value", "unit", "origin", "source"});
  for (size_t i : {0, 2, 3, 4}) cells.left(i);
  for (const auto& [name, c] : d.cells) cells.row({name, value_text(c), c.unit, to_string(c.origin), c.source});
  return out + cells.str();
}

namespace {

void put(Json& j, const Device& d) {
  ROOFGEN_PUT(j, d, name, title, arch)
  for (const Roof& r : compute_roofs(d, RoofSet::kDatasheet)) {
    Json& ceiling = j["ceilings"].emplace_back();
    ROOFGEN_PUT(ceiling, r, name, math, accumulate)
    ceiling["tflops"] = r.rate / 1e12;
    ceiling["ridge"] = ridge(d, r, RoofSet::kDatasheet);
    ROOFGEN_PUT(ceiling, r, origin, cell)
  }
  for (const Roof& b : bandwidth_roofs(d, RoofSet::kDatasheet))
    j["bandwidths"].push_back({{"level", b.name}, {"gb_s", b.rate / 1e9}, {"origin", b.origin}});
  j["cells"] = d.cells;
}

}  // namespace

std::string device_json(const Device& d) {
  Json j{{"schema", kDevicesSchema}};
  put(j, d);
  return json_document(j);
}

std::string devices_json(const std::vector<Device>& devices) {
  Json j{{"schema", kDevicesSchema}, {"devices", Json::array()}};
  for (const Device& d : devices) put(j["devices"].emplace_back(), d);
  return json_document(j);
}

}  // namespace roofgen

#include "roofline/roofs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "roofline/device_cells.h"

namespace roofgen {
namespace {

/// How a peak cell reads: peak_<key>_tflops.
struct PeakCell {
  const char* key;
  const char* name;
  const char* math;
  const char* accumulate;  ///< "": CUDA cores
};

constexpr PeakCell kPeaks[] = {
    {"fp4", "FP4 tensor, FP32 accumulate", "fp4", "fp32"},
    {"fp8", "FP8 tensor, FP32 accumulate", "fp8", "fp32"},
    {"fp8_acc16", "FP8 tensor, FP16 accumulate", "fp8", "fp16"},
    {"int4", "INT4 tensor, INT32 accumulate", "int4", "int32"},
    {"int8", "INT8 tensor, INT32 accumulate", "int8", "int32"},
    {"bf16", "BF16 tensor, FP32 accumulate", "bf16", "fp32"},
    {"fp16", "FP16 tensor, FP32 accumulate", "fp16", "fp32"},
    {"fp16_acc16", "FP16 tensor, FP16 accumulate", "fp16", "fp16"},
    {"tf32", "TF32 tensor, FP32 accumulate", "tf32", "fp32"},
    {"fp64_tensor", "FP64 tensor", "fp64", "fp64"},
    {"int8_cuda", "INT8 CUDA cores (dp4a)", "int8", ""},
    {"fp16_cuda", "FP16 CUDA cores", "fp16", ""},
    {"bf16_cuda", "BF16 CUDA cores", "bf16", ""},
    {"fp32", "FP32 CUDA cores", "fp32", ""},
    {"fp64", "FP64 CUDA cores", "fp64", ""},
};

/// What an operand is widened to, exactly, where the device cannot multiply it. FP8 fits FP16; BF16 does not.
struct Wider {
  const char* from;
  const char* to;
};
constexpr Wider kWider[] = {{"fp4", "fp8"}, {"fp8", "fp16"}, {"int4", "int8"}, {"bf16", "fp32"}};

/// The sustained clock as a share of the one that a rate is stated at.
double clock_scale(const Device& d, RoofSet set, double stated_mhz) {
  if (set == RoofSet::kDatasheet || !d.has("clock_sustained_mhz")) return 1;
  return std::min(1.0, d.at("clock_sustained_mhz") / stated_mhz);
}

/// Stated; or FP32 of the CUDA cores, which follows from lanes and clock, and which every analysis needs.
bool has_peak(const Device& d, const PeakCell& p) {
  return d.has(fmt::format("peak_{}_tflops", p.key)) || std::string_view(p.key) == "fp32";
}

ComputeRoof roof_of(const Device& d, const PeakCell& p, RoofSet set) {
  ComputeRoof out{
      p.name, p.math, p.accumulate, *p.accumulate != 0, 0, Origin::kDatasheet, fmt::format("peak_{}_tflops", p.key)};
  const auto parts = peak_parts(d, out.cell);
  const double scale = clock_scale(d, set, parts ? parts->mhz : d.at("clock_tensor_mhz"));
  const bool stated = d.has(out.cell);
  out.flops_per_s = 1e12 * (stated ? d.at(out.cell) : parts ? parts->tflops() : 0) * scale;
  out.origin = stated && scale == 1 ? d.cells.at(out.cell).origin : Origin::kModel;
  return out;
}

}  // namespace

const char* to_string(RoofSet set) { return set == RoofSet::kDatasheet ? "datasheet" : "sustained"; }

Result<RoofSet> parse_roof_set(const std::string& name) {
  for (RoofSet set : {RoofSet::kDatasheet, RoofSet::kSustained})
    if (name == to_string(set)) return set;
  return Error{Exit::kUsage,
               fmt::format("unknown ceilings \"{}\"{}", name, did_you_mean(name, {"datasheet", "sustained"}))};
}

std::vector<ComputeRoof> compute_roofs(const Device& d, RoofSet set) {
  std::vector<ComputeRoof> out;
  for (const PeakCell& p : kPeaks)
    if (has_peak(d, p)) out.push_back(roof_of(d, p, set));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.flops_per_s > b.flops_per_s; });
  return out;
}

std::vector<BandwidthRoof> bandwidth_roofs(const Device& d, RoofSet set) {
  std::vector<BandwidthRoof> out;
  const auto add = [&](const char* level, const char* spec, const char* sustained) {
    const char* cell = set == RoofSet::kSustained && d.has(sustained) ? sustained : spec;
    if (d.has(cell)) out.push_back({level, 1e9 * d.at(cell), d.cells.at(cell).origin});
  };
  add("DRAM", "dram_gb_s", "dram_sustained_gb_s");
  add("L2", "l2_gb_s", "l2_sustained_gb_s");
  if (d.has("smem_bytes_per_clk"))
    out.push_back({"shared memory", d.at("sms") * d.at("smem_bytes_per_clk") * sm_clock_hz(d, set),
                   set == RoofSet::kSustained ? Origin::kModel : d.cells.at("smem_bytes_per_clk").origin});
  add("NVLink", "nvlink_gb_s", "nvlink_gb_s");
  return out;
}

double sm_clock_hz(const Device& d, RoofSet set) {
  return 1e6 * d.at("clock_tensor_mhz") * clock_scale(d, set, d.at("clock_tensor_mhz"));
}

double special_function_rate(const Device& d, RoofSet set) {
  return d.at("sms") * d.at("mufu_lanes") * sm_clock_hz(d, set);
}

Result<ComputeRoof> matrix_roof(const Device& d, const std::string& math, const std::string& accumulate, RoofSet set,
                                std::string* note) {
  std::string wanted = math;
  while (true) {
    const PeakCell* found = nullptr;
    for (const PeakCell& p : kPeaks) {
      if (wanted != p.math || !has_peak(d, p)) continue;
      // The stated accumulator first; then any matrix unit of that format; CUDA cores last.
      const auto fit = [&](const PeakCell& x) { return !*x.accumulate ? 0 : accumulate == x.accumulate ? 2 : 1; };
      if (!found || fit(p) > fit(*found)) found = &p;
    }
    if (found && (*found->accumulate || wanted == "fp32" || wanted == "fp64")) {
      if (note && wanted != math)
        *note = fmt::format("{} has no {} matrix units: operands are widened, the work runs at the {} rate", d.name,
                            math, wanted == "fp32" ? "FP32 CUDA core" : wanted);
      if (note && *found->accumulate && accumulate != found->accumulate)
        *note += fmt::format("{}{} states no {} rate with {} accumulation: {} is taken", note->empty() ? "" : "; ",
                             d.name, wanted, accumulate, found->name);
      return roof_of(d, *found, set);
    }
    const auto* wider =
        std::find_if(std::begin(kWider), std::end(kWider), [&](const Wider& w) { return wanted == w.from; });
    if (wider == std::end(kWider)) break;
    wanted = wider->to;
  }
  std::vector<std::string> known;
  for (const ComputeRoof& r : compute_roofs(d, set))
    if (r.matrix_units && std::find(known.begin(), known.end(), r.math) == known.end()) known.push_back(r.math);
  return Error{Exit::kUsage, fmt::format("{} has no matrix units for {}{}", d.name, math, did_you_mean(math, known))};
}

ComputeRoof vector_roof(const Device& d, RoofSet set) {
  for (const PeakCell& p : kPeaks)
    if (std::string_view(p.key) == "fp32") return roof_of(d, p, set);
  return {};
}

double ridge(const Device& d, const ComputeRoof& roof, RoofSet set) {
  for (const BandwidthRoof& b : bandwidth_roofs(d, set))
    if (b.level == "DRAM") return roof.flops_per_s / b.bytes_per_s;
  return 0;
}

}  // namespace roofgen

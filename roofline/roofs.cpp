#include "roofline/roofs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "roofline/device_cells.h"

namespace roofgen {
namespace {

/// The cell peak_<key>_tflops.
struct PeakCell {
  const char* key;
  const char* name;
  const char* math;
  const char* accumulate;  ///< "": CUDA cores
};

constexpr PeakCell kPeaks[] = {
    {"fp4", "FP4 tensor, FP32 accumulate", "fp4", "fp32"},
    {"mxfp8", "MXFP8 tensor, FP32 accumulate", "mxfp8", "fp32"},
    {"fp8", "FP8 tensor, FP32 accumulate", "fp8", "fp32"},
    {"fp6", "FP6 tensor, FP32 accumulate", "fp6", "fp32"},
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

/// The next format that holds every value of an operand which the device cannot multiply. FP8 fits FP16; BF16 does not.
struct Wider {
  const char* from;
  const char* to;
};
constexpr Wider kWider[] = {{"fp4", "fp8"},  {"fp6", "fp8"},   {"mxfp8", "fp8"},
                            {"fp8", "fp16"}, {"int4", "int8"}, {"bf16", "fp32"}};

/// A unit of an SM: its amount per clock is one cell.
struct FunctionUnit {
  Resource resource;
  const char* name;
  const char* cell;
};
constexpr FunctionUnit kUnits[] = {{Resource::kSpecial, "SFU", "mufu_lanes"},
                                   {Resource::kFp32, "FP32", "fp32_lanes"},
                                   {Resource::kAlu, "ALU", "int_lanes"},
                                   {Resource::kSharedMemory, "shared memory", "smem_bytes_per_clk"},
                                   {Resource::kIssue, "issue", "issue_per_clk"}};

/// The families of matrix instructions, in the order of MatrixInstruction.
constexpr struct {
  const char* name;
  const char* roof;
} kFamilies[] = {{"mma.sync", "tensor (mma.sync)"}, {"wgmma", "tensor (wgmma)"}, {"tcgen05", "tensor (tcgen05)"}};

/// A level that all SMs share.
struct Level {
  Resource resource;
  const char* name;
  const char* datasheet;
  const char* sustained;
};
constexpr Level kLevels[] = {{Resource::kL2, "L2", "l2_gb_s", "l2_sustained_gb_s"},
                             {Resource::kDram, "DRAM", "dram_gb_s", "dram_sustained_gb_s"},
                             {Resource::kNvlink, "NVLink", "nvlink_gb_s", "nvlink_gb_s"}};

/// The sustained clock over the clock that a rate is stated at.
double clock_scale(const Device& d, RoofSet set, double stated_mhz) {
  return set == RoofSet::kSustained && d.has("clock_sustained_mhz") ? d.at("clock_sustained_mhz") / stated_mhz : 1;
}

/// Whether the device states the peak. FP32 on the CUDA cores always has one: it follows from lanes and clock.
bool has_peak(const Device& d, const PeakCell& p) {
  return d.has(fmt::format("peak_{}_tflops", p.key)) || std::string_view(p.key) == "fp32";
}

/// Clocks per second of all SMs together.
double sm_clocks(const Device& d, RoofSet set) { return d.at("sms") * sm_clock_hz(d, set); }

Roof sm_roof(const Device& d, const char* name, Resource resource, const std::string& cell, double clocks,
             RoofSet set) {
  const auto at = d.cells.find(cell);
  if (at == d.cells.end()) return {name, resource};
  return {name, resource, at->second.value * clocks, set == RoofSet::kSustained ? Origin::kModel : at->second.origin};
}

Roof level_roof(const Device& d, const Level& level, RoofSet set) {
  auto at = d.cells.find(set == RoofSet::kSustained ? level.sustained : level.datasheet);
  if (at == d.cells.end()) at = d.cells.find(level.datasheet);
  if (at == d.cells.end()) return {level.name, level.resource};
  return {level.name, level.resource, 1e9 * at->second.value, at->second.origin};
}

Roof peak_roof(const Device& d, const PeakCell& p, RoofSet set) {
  Roof out{p.name, *p.accumulate ? Resource::kTensor : Resource::kVector};
  out.cell = fmt::format("peak_{}_tflops", p.key);
  out.math = p.math;
  out.accumulate = p.accumulate;
  const auto parts = peak_parts(d, out.cell);
  const double scale = clock_scale(d, set, parts ? parts->mhz : d.at("clock_tensor_mhz"));
  const bool stated = d.has(out.cell);
  out.rate = (stated ? d.at(out.cell) : parts ? parts->tflops() : 0) * (1e12 * scale);
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

std::vector<Roof> compute_roofs(const Device& d, RoofSet set) {
  std::vector<Roof> out;
  for (const PeakCell& p : kPeaks)
    if (has_peak(d, p)) out.push_back(peak_roof(d, p, set));
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.rate > b.rate; });
  return out;
}

std::vector<RoofTime> roof_times(const std::vector<Roof>& roofs, const Amounts& amounts) {
  std::vector<RoofTime> out;
  for (const Roof& r : roofs)
    out.push_back({r.name, r.resource, amounts[r.resource] == 0 ? 0 : amounts[r.resource] / r.rate});
  return out;
}

Roof roof_of(const Device& d, Resource resource, RoofSet set) {
  for (const FunctionUnit& u : kUnits)
    if (u.resource == resource) return sm_roof(d, u.name, resource, u.cell, sm_clocks(d, set), set);
  for (const Level& l : kLevels)
    if (l.resource == resource) return level_roof(d, l, set);
  return {"", resource};
}

std::vector<Roof> bandwidth_roofs(const Device& d, RoofSet set) {
  std::vector<Roof> out;
  for (Resource r : {Resource::kDram, Resource::kL2, Resource::kSharedMemory, Resource::kNvlink})
    if (Roof roof = roof_of(d, r, set); roof.rate > 0) out.push_back(std::move(roof));
  return out;
}

double sm_clock_hz(const Device& d, RoofSet set) {
  const bool sustained = set == RoofSet::kSustained && d.has("clock_sustained_mhz");
  return 1e6 * d.at(sustained ? "clock_sustained_mhz" : "clock_tensor_mhz");
}

Result<Roof> matrix_roof(const Device& d, const std::string& math, const std::string& accumulate, RoofSet set,
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
      return peak_roof(d, *found, set);
    }
    const auto* wider =
        std::find_if(std::begin(kWider), std::end(kWider), [&](const Wider& w) { return wanted == w.from; });
    if (wider == std::end(kWider)) break;
    wanted = wider->to;
  }
  std::vector<std::string> known;
  for (const Roof& r : compute_roofs(d, set))
    if (r.resource == Resource::kTensor && std::find(known.begin(), known.end(), r.math) == known.end())
      known.push_back(r.math);
  return Error{Exit::kUsage, fmt::format("{} has no matrix units for {}{}", d.name, math, did_you_mean(math, known))};
}

Roof vector_roof(const Device& d, RoofSet set) {
  for (const PeakCell& p : kPeaks)
    if (std::string_view(p.key) == "fp32") return peak_roof(d, p, set);
  return {};
}

const char* to_string(MatrixInstruction instruction) { return kFamilies[static_cast<size_t>(instruction)].name; }

MatrixInstruction matrix_instruction(std::string_view ptx) {
  if (ptx.find("tcgen05.mma") != ptx.npos) return MatrixInstruction::kTcgen05;
  return ptx.find("wgmma.mma_async") != ptx.npos ? MatrixInstruction::kWgmma : MatrixInstruction::kMmaSync;
}

std::string rate_cell(MatrixInstruction instruction, const std::string& math) {
  return std::string(kTensorUnits[static_cast<size_t>(instruction)]) + "_flops_per_clk_" + math;
}

Roof instruction_roof(const Device& d, MatrixInstruction instruction, const std::string& math, RoofSet set) {
  return sm_roof(d, kFamilies[static_cast<size_t>(instruction)].roof, Resource::kTensor, rate_cell(instruction, math),
                 sm_clocks(d, set), set);
}

std::vector<Roof> kernel_roofs(const Device& d, MatrixInstruction instruction, const std::string& math, RoofSet set) {
  const double clocks = sm_clocks(d, set);
  std::vector<Roof> out;
  out.reserve(1 + std::size(kUnits) + std::size(kLevels));
  out.push_back(sm_roof(d, kFamilies[static_cast<size_t>(instruction)].roof, Resource::kTensor,
                        rate_cell(instruction, math), clocks, set));
  for (const FunctionUnit& u : kUnits) out.push_back(sm_roof(d, u.name, u.resource, u.cell, clocks, set));
  for (const Level& l : kLevels)
    if (l.resource != Resource::kNvlink) out.push_back(level_roof(d, l, set));
  return out;
}

double ridge(const Device& d, const Roof& roof, RoofSet set) {
  return roof.rate / roof_of(d, Resource::kDram, set).rate;
}

}  // namespace roofgen

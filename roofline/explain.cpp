#include "roofline/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"

namespace roofgen {
namespace {

/// Wave quantisation applies to kernels of matrix tiles, whose CTAs fill an SM. CTAs of vector kernels are small, and
/// many share an SM.
double wave_efficiency(const KernelWork& k, double sms) {
  if (k.ctas <= 0) return 1;
  if (k.mma_flops > 0) return k.ctas / (std::ceil(k.ctas / sms) * sms);
  return std::min(1.0, k.ctas / sms);
}

/// With fewer CTAs than SMs and less than this fraction of SMs busy, parallelism is the limit.
constexpr double kFewCtas = 0.67;

struct Rates {
  ComputeRoof compute, vector;
  double special = 0, dram = 0, l2 = 0, smem = 0, nvlink = 0, port = 0, sms = 0, launch_s = 0;
  double mma_tile_m = 64, mma_tile_n = 64;  ///< a warp tile in registers, unless the device states another
};

Rates rates(const Device& d, const ComputeRoof& compute, RoofSet set) {
  Rates r;
  r.compute = compute;
  r.vector = vector_roof(d, set);
  r.special = special_function_rate(d, set);
  for (const BandwidthRoof& b : bandwidth_roofs(d, set)) {
    if (b.level == "DRAM")
      r.dram = b.bytes_per_s;
    else if (b.level == "L2")
      r.l2 = b.bytes_per_s;
    else if (b.level == "shared memory")
      r.smem = b.bytes_per_s;
    else
      r.nvlink = b.bytes_per_s;
  }
  r.sms = d.at("sms");
  r.port = d.has("l2_bytes_per_clk_sm") ? d.at("l2_bytes_per_clk_sm") * sm_clock_hz(d, set) : 0;
  if (d.has("mma_tile_m")) r.mma_tile_m = d.at("mma_tile_m");
  if (d.has("mma_tile_n")) r.mma_tile_n = d.at("mma_tile_n");
  r.launch_s = 1e-6 * d.at("launch_us");
  return r;
}

KernelExplanation explain_kernel(const OpWork& op, const KernelWork& k, const Rates& r) {
  KernelExplanation out;
  out.work = &k;
  out.flops = op.flops(k);
  const double bytes = k.dram_bytes();
  out.arithmetic_intensity = bytes > 0 ? out.flops / bytes : 0;
  const auto bound = [&](const std::string& roof, Regime regime, double amount, double rate) {
    if (amount > 0 && rate > 0) out.bounds.push_back({roof, regime, amount / rate});
  };
  bound("DRAM", Regime::kMemory, bytes, r.dram);
  bound(r.compute.name, Regime::kCompute, k.mma_flops, r.compute.flops_per_s);
  bound(r.vector.name, Regime::kCompute, k.vector_flops, r.vector.flops_per_s);
  bound("special functions", Regime::kSpecialFunction, k.exps, r.special);
  bound("L2", Regime::kL2, k.l2_bytes, r.l2);
  out.smem_bytes = k.smem_a / r.mma_tile_n + k.smem_b / r.mma_tile_m;
  bound("shared memory", Regime::kSharedMemory, out.smem_bytes, r.smem);
  bound("NVLink", Regime::kNvlink, k.link_bytes, r.nvlink);
  std::stable_sort(out.bounds.begin(), out.bounds.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });

  out.waves = k.ctas / r.sms;
  out.efficiency = wave_efficiency(k, r.sms);
  double roofs = 0, stretched = 0;
  for (const RoofBound& b : out.bounds) {
    const bool chip_wide = b.regime == Regime::kMemory || b.regime == Regime::kL2 || b.regime == Regime::kNvlink;
    roofs = std::max(roofs, b.seconds);
    stretched = std::max(stretched, chip_wide ? b.seconds : b.seconds / out.efficiency);
  }
  // An SM's L2 traffic is limited by the bandwidth of its own port.
  if (k.ctas > 0 && r.port > 0) stretched = std::max(stretched, k.l2_bytes / (std::min(k.ctas, r.sms) * r.port));
  out.seconds = r.launch_s + stretched;
  if (!out.bounds.empty()) out.regime = out.bounds.front().regime;
  if (r.launch_s > stretched)
    out.regime = Regime::kLaunch;
  else if (k.ctas > 0 && k.ctas < kFewCtas * r.sms && stretched > 1.2 * roofs)
    out.regime = Regime::kParallelism;
  return out;
}

std::string lever(const Explanation& e) {
  const OpWork& w = *e.work;
  const auto flag_exists = [&](const char* name) { return w.flags.count(name) != 0; };
  switch (e.regime) {
    case Regime::kMemory:
      if (w.op == "attention" && w.form != "flash")
        return "do not write the score matrix: --passes 0 (flash) removes its traffic";
      if (flag_exists("unfused") && w.flags.at("unfused"))
        return "fuse: the intermediate results then never reach memory";
      if (w.ai_limit && *w.ai_limit > e.ridge && *w.ai_limit > 1.05 * e.arithmetic_intensity)
        return fmt::format("more {} per weight read: the arithmetic intensity can grow to {:.0f}, the ridge is {:.0f}",
                           w.ai_limit_of, *w.ai_limit, e.ridge);
      if (w.ai_limit && *w.ai_limit <= e.ridge)
        return fmt::format(
            "fewer bytes: narrower operands, or fusion with a neighbour; no {} reaches the ridge ({:.0f}; the limit is "
            "{:.0f})",
            w.ai_limit_of, e.ridge, *w.ai_limit);
      return "fewer bytes: narrower operands, or fusion with a neighbour";
    case Regime::kCompute:
      return w.uses_matrix_units() ? "a narrower arithmetic (a higher ceiling), or fewer FLOPs: masked tiles skipped"
                                   : "fewer operations per element, or half-precision pairs";
    case Regime::kSpecialFunction:
      return "exponentials on the FMA pipe beside the special-function units, and fewer rescales";
    case Regime::kL2: return "larger tiles: each byte read from L2 is used for more FLOPs";
    case Regime::kSharedMemory: return "larger warp tiles, or operands in registers";
    case Regime::kNvlink:
      return "fewer bytes on the link: reduce-scatter with the next operator, narrower payload, or overlap with "
             "compute";
    case Regime::kParallelism:
      return "more CTAs: smaller tiles, split the summed or the key dimension, or a larger batch";
    case Regime::kLaunch: return "fewer launches: fuse kernels, CUDA graphs, or programmatic dependent launch";
  }
  return "";
}

}  // namespace

const char* to_string(Regime regime) {
  switch (regime) {
    case Regime::kMemory: return "memory-bound";
    case Regime::kCompute: return "compute-bound";
    case Regime::kSpecialFunction: return "special-function-bound";
    case Regime::kL2: return "L2-bound";
    case Regime::kSharedMemory: return "shared-memory-bound";
    case Regime::kNvlink: return "NVLink-bound";
    case Regime::kParallelism: return "parallelism-bound";
    case Regime::kLaunch: return "launch-bound";
  }
  return "";
}

Result<Explanation> explain(const Device& device, OpWork work, RoofSet set) {
  Explanation e;
  e.work = std::make_shared<const OpWork>(std::move(work));
  const OpWork& w = *e.work;
  e.device = device.name;
  e.roofs = set;
  if (w.uses_matrix_units()) {
    ROOFGEN_TRY(e.compute, matrix_roof(device, w.math, w.accumulate, set, &e.compute_note));
  } else {
    e.compute = vector_roof(device, set);
  }
  const Rates r = rates(device, e.compute, set);
  for (const KernelWork& k : w.kernels)
    if (k.link_bytes > 0 && r.nvlink == 0)
      return Error{Exit::kUsage, fmt::format("{} has no NVLink; a device with nvlink_gb_s was expected", device.name)};
  e.flops = w.flops();
  e.dram_bytes = w.dram_bytes();
  e.exps = w.exps();
  e.arithmetic_intensity = w.arithmetic_intensity();
  e.ridge = ridge(device, e.compute, set);

  std::map<Regime, double> by_regime;
  std::map<std::string, double> by_roof;
  double roofs = 0;
  for (const KernelWork& k : w.kernels) {
    KernelExplanation x = explain_kernel(w, k, r);
    e.seconds += x.seconds;
    by_regime[x.regime] += x.seconds;
    if (!x.bounds.empty()) {
      by_roof[x.bounds.front().roof] += x.bounds.front().seconds;
      roofs += x.bounds.front().seconds;
    }
    e.kernels.push_back(std::move(x));
  }
  const auto by_time = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (!by_regime.empty()) e.regime = std::max_element(by_regime.begin(), by_regime.end(), by_time)->first;
  if (!by_roof.empty()) e.binding_roof = std::max_element(by_roof.begin(), by_roof.end(), by_time)->first;
  e.attainable_flops_per_s = roofs > 0 ? e.flops / roofs : 0;
  e.next_lever = lever(e);

  Claim claim;
  claim.name = w.op;
  claim.device = &device;
  claim.work = &w;
  claim.flops = e.flops;
  claim.bytes = e.dram_bytes;
  claim.ai = e.arithmetic_intensity;
  claim.time_us = 1e6 * e.seconds;
  claim.launches = static_cast<double>(w.kernels.size());
  claim.origin = "model";
  e.warnings = lint(claim);
  return e;
}

std::optional<int64_t> ridge_crossing(const WorkFormula& formula, WorkRequest request, const Explanation& e) {
  const std::vector<std::string>& grows = formula.grows();
  if (grows.size() != 1 || !e.work->ai_limit || *e.work->ai_limit <= e.ridge) return std::nullopt;
  const auto reaches = [&](int64_t value) {
    request.dims[grows[0]] = value;
    const auto work = formula.evaluate(request);
    return work && work->arithmetic_intensity() >= e.ridge;
  };
  // The AI of batched work never falls as the batch grows (more FLOPs on the same weights), so bisection applies.
  int64_t low = 0, high = 1;
  while (high < (int64_t{1} << 32) && !reaches(high)) low = std::exchange(high, 2 * high);
  while (low + 1 < high) (reaches((low + high) / 2) ? high : low) = (low + high) / 2;
  return reaches(high) ? std::optional(high) : std::nullopt;
}

}  // namespace roofgen

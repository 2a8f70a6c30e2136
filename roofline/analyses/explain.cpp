#include "roofline/analyses/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"

namespace roofgen {
namespace {

/// Waves matter for kernels of matrix tiles, where one CTA fills an SM. CTAs of vector kernels are small and share SMs.
double wave_efficiency(const KernelWork& k, double sms) {
  if (k.ctas <= 0) return 1;
  if (k.mma_flops > 0) return k.ctas / (std::ceil(k.ctas / sms) * sms);
  return std::min(1.0, k.ctas / sms);
}

/// With CTAs on less than this share of the SMs, an operator is bound by parallelism.
constexpr double kFewCtas = 0.67;

/// K and V above this share of an attention's bytes: the query and the output hardly count.
constexpr double kMostlyCache = 0.9;

/// The roofs for the kernels of an operator, and other limits of the device.
struct Rates {
  std::vector<Roof> roofs;
  double port = 0, sms = 0, launch_s = 0;
  double mma_tile_m = 64, mma_tile_n = 64;  ///< the matrix tile of a warp, where the device states no other
};

Rates rates(const Device& d, Roof compute, RoofSet set) {
  Rates r;
  // A device without matrix units for the format does this work on its CUDA cores.
  compute.resource = Resource::kTensor;
  Roof special = roof_of(d, Resource::kSpecial, set);
  special.name = "special functions";
  r.roofs = {roof_of(d, Resource::kDram, set),
             std::move(compute),
             vector_roof(d, set),
             std::move(special),
             roof_of(d, Resource::kL2, set),
             roof_of(d, Resource::kSharedMemory, set),
             roof_of(d, Resource::kNvlink, set)};
  std::erase_if(r.roofs, [](const Roof& roof) { return roof.rate == 0; });
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
  out.smem_bytes = k.smem_a / r.mma_tile_n + k.smem_b / r.mma_tile_m;
  Amounts amounts{};
  amounts[Resource::kDram] = bytes;
  amounts[Resource::kTensor] = k.mma_flops;
  amounts[Resource::kVector] = k.vector_flops;
  amounts[Resource::kSpecial] = k.exps;
  amounts[Resource::kL2] = k.l2_bytes;
  amounts[Resource::kSharedMemory] = out.smem_bytes;
  amounts[Resource::kNvlink] = k.link_bytes;
  out.bounds = roof_times(r.roofs, amounts);
  std::erase_if(out.bounds, [](const RoofTime& t) { return t.seconds <= 0; });
  std::stable_sort(out.bounds.begin(), out.bounds.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });

  out.waves = k.ctas / r.sms;
  out.efficiency = wave_efficiency(k, r.sms);
  double roofs = 0, stretched = 0;
  for (const RoofTime& b : out.bounds) {
    roofs = std::max(roofs, b.seconds);
    stretched = std::max(stretched, per_sm(b.resource) ? b.seconds / out.efficiency : b.seconds);
  }
  // An SM reads from L2 at most at the rate of its port.
  if (k.ctas > 0 && r.port > 0) stretched = std::max(stretched, k.l2_bytes / (std::min(k.ctas, r.sms) * r.port));
  out.seconds = r.launch_s + stretched;
  if (!out.bounds.empty()) out.regime = regime_of(out.bounds.front().resource);
  if (r.launch_s > stretched)
    out.regime = Regime::kLaunch;
  else if (k.ctas > 0 && k.ctas < kFewCtas * r.sms && stretched > 1.2 * roofs)
    out.regime = Regime::kParallelism;
  return out;
}

/// The lever of so few queries that the cache is nearly all of the bytes; else empty.
std::string cache_lever(const OpWork& w) {
  if (w.cache.empty()) return "";
  double cache = 0;
  for (const OperandWork& o : w.kernels[0].operands)
    if (std::ranges::count(w.cache, o.name) > 0) cache += o.bytes();
  const double share = cache / w.dram_bytes();
  if (share < kMostlyCache) return "";
  const int64_t group = w.dims.at("heads") / w.dims.at("kv_heads");
  return fmt::format(
      "fewer bytes of the cache: {} are {:.1f} % of all bytes, each key is read once for {}; a narrower "
      "cache (--kv-dtype), or more queries for each key (L, heads / kv_heads); a larger batch raises no intensity",
      fmt::join(w.cache, " and "), 100 * share, counted(static_cast<double>(w.dims.at("L") * group), "query row"));
}

std::string lever(const Explanation& e) {
  const OpWork& w = *e.work;
  const auto flag_exists = [&](const char* name) { return w.flags.count(name) != 0; };
  switch (e.regime) {
    case Regime::kMemory:
      if (!w.lever.empty()) return w.lever;
      if (const std::string cache = cache_lever(w); !cache.empty()) return cache;
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

Regime regime_of(Resource resource) {
  switch (resource) {
    case Resource::kDram: return Regime::kMemory;
    case Resource::kL2: return Regime::kL2;
    case Resource::kNvlink: return Regime::kNvlink;
    case Resource::kSharedMemory: return Regime::kSharedMemory;
    case Resource::kSpecial: return Regime::kSpecialFunction;
    default: return Regime::kCompute;
  }
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
    if (k.link_bytes > 0 && !device.has("nvlink_gb_s"))
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
      by_roof[x.bounds.front().name] += x.bounds.front().seconds;
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
  // The AI never falls as the batch grows, because each weight is used for more FLOPs.
  int64_t low = 0, high = 1;
  while (high < (int64_t{1} << 32) && !reaches(high)) low = std::exchange(high, 2 * high);
  while (low + 1 < high) (reaches((low + high) / 2) ? high : low) = (low + high) / 2;
  return reaches(high) ? std::optional(high) : std::nullopt;
}

}  // namespace roofgen

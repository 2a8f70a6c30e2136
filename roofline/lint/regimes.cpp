// Rules about the binding roof and about the conditions of a measurement.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/units.h"
#include "roofline/lint/rules.h"

namespace roofgen::lint_rules {
namespace {

/// A measurement may exceed the datasheet by this factor because of clocks and rounding.
constexpr double kAbove = 1.02;

/// Below five times the launch overhead, tuning the kernel itself gains little.
constexpr double kFewLaunches = 5;

/// Rows by time that no other row beats in both time and intensity: the longer the time, the lower the intensity.
class Slowest {
 public:
  void add(double time, double ai, size_t row) {
    auto at = rows_.lower_bound(time);
    if (at != rows_.end() && at->second.first >= ai) return;
    if (at != rows_.end() && at->first == time) at = rows_.erase(at);
    while (at != rows_.begin() && std::prev(at)->second.first <= ai) at = rows_.erase(std::prev(at));
    rows_.emplace(time, std::pair(ai, row));
  }
  /// A row with both a longer time and a higher intensity.
  std::optional<size_t> slower_with_more(double time, double ai) const {
    const auto at = rows_.upper_bound(time);
    if (at == rows_.end() || at->second.first <= ai) return {};
    return at->second.second;
  }

 private:
  std::map<double, std::pair<double, size_t>> rows_;  ///< time: AI, row
};

bool measured(const Claim& c) { return c.origin.empty() || c.origin == "measured" || c.origin == "counter"; }

}  // namespace

void fits_l2(const Claim& c, Findings& out) {
  if (!c.device || !c.device->has("l2_bytes")) return;
  const double bytes = c.work ? working_set(*c.work) : c.bytes.value_or(0), l2 = c.device->at("l2_bytes");
  if (bytes > l2 || bytes <= 0 || c.cache == "cold" || c.cache == "flushed") return;
  out.add("", fmt::format("the working set of {} fits the {} L2 of {}: with a warm cache, DRAM traffic "
                          "differs from the formula; compare with the L2 roof",
                          bytes_text(bytes), bytes_text(l2), c.device->name));
}

void few_ctas(const Claim& c, Findings& out) {
  if (!c.device) return;
  const double sms = c.device->at("sms");
  if (c.ctas) {
    if (*c.ctas < sms)
      out.add("ctas", fmt::format("{} CTAs for {} SMs: the roofs assume that all SMs work", number_text(*c.ctas),
                                  number_text(sms)));
    return;
  }
  if (!c.work) return;
  for (const KernelWork& k : c.work->kernels) {
    if (k.ctas <= 0) continue;
    if (k.ctas < sms)
      return out.add("", fmt::format("{} has {} for {:g} SMs: the roofs assume that all SMs work", k.name,
                                     counted(k.ctas, "CTA"), sms));
    const double waves = k.ctas / sms, idle = 1 - waves / std::ceil(waves);
    if (k.mma_flops > 0 && idle > 0.2)
      return out.add("", fmt::format("{} has {:.2f} waves of CTAs: {:.0f} % of the SMs' time is a partial last wave",
                                     k.name, waves, 100 * idle));
  }
}

void above_roof(const Claim& c, Findings& out) {
  const auto roof = roof_at(c);
  const auto over = [&](const char* field, std::optional<double> tflops) {
    if (!tflops || !roof || *tflops <= kAbove * *roof) return;
    const auto ai = ai_of(c), bandwidth = bandwidth_of(c);
    const bool slope = ai && bandwidth && near(*roof, *ai * *bandwidth / 1000, 0.001);
    out.add(field,
            fmt::format("{} TFLOPS lies above its roof of {}{}: FLOPs, bytes or the ceiling are counted wrong, or "
                        "the bytes came from a cache",
                        number_text(*tflops), number_text(*roof),
                        slope ? fmt::format(" (AI {} x {} GB/s)", number_text(*ai), number_text(*bandwidth)) : ""));
  };
  over("achieved", c.achieved_tflops);
  over("attainable", c.attainable_tflops);
  const auto bandwidth = bandwidth_of(c);
  if (c.time_us && *c.time_us > 0 && c.bytes && bandwidth) {
    const double gb_s = *c.bytes / *c.time_us / 1000;
    if (gb_s > kAbove * *bandwidth)
      out.add(
          "time",
          fmt::format("{} in {} are {} GB/s; the memory gives {}: the bytes are counted wrong, or came from a cache",
                      bytes_text(*c.bytes), time_text(*c.time_us / 1e6), number_text(gb_s), number_text(*bandwidth)));
  }
}

void contradiction(const Claim& c, Findings& out) {
  const auto ai = ai_of(c), bandwidth = bandwidth_of(c);
  if (c.ridge && c.peak_tflops && c.bandwidth_gb_s && *c.bandwidth_gb_s > 0) {
    const double right = 1000 * *c.peak_tflops / *c.bandwidth_gb_s;
    if (!near(*c.ridge, right, 0.03))
      out.add("ridge", fmt::format("ridge {}, but {} TFLOPS / {} GB/s is {}", number_text(*c.ridge),
                                   number_text(*c.peak_tflops), number_text(*c.bandwidth_gb_s), number_text(right)));
  }
  if (c.ai && c.flops && c.bytes && *c.bytes > 0) {
    const double right = *c.flops / *c.bytes;
    // A factor of 1000 or of GiB/GB is a unit slip (R07).
    if (!near(*c.ai, right, 0.1) && *c.ai / right < 500 && right / *c.ai < 500)
      out.add("ai", fmt::format("AI {}, but {} FLOPs / {} is {}", number_text(*c.ai), count_text(*c.flops),
                                bytes_text(*c.bytes), number_text(right)));
  }
  if (!ai || (c.bound != "memory" && c.bound != "compute")) return;
  std::optional<double> at = c.ridge;
  std::string whose = "the row's ridge";
  if (!at && c.peak_tflops && bandwidth && *bandwidth > 0) at = 1000 * *c.peak_tflops / *bandwidth;
  if (!at)
    if (const auto roof = c.matrix_work ? ceiling_of(c) : std::nullopt) {
      at = ridge(*c.device, *roof, RoofSet::kDatasheet);
      whose = fmt::format("the ridge of {} ({})", c.device->name, roof->name);
    }
  if (!at) return;
  const bool compute = c.bound == "compute";
  if (compute ? *ai < 0.98 * *at : *ai > 1.02 * *at)
    out.add("bound", fmt::format("{}-bound at AI {}, but {} is {}: {}-bound", c.bound, number_text(*ai), whose,
                                 number_text(*at), compute ? "memory" : "compute"));
}

void ranked_by_ai(const std::vector<Claim>& claims, TableFindings& out) {
  using Key = std::tuple<std::string, const Device*, std::map<std::string, int64_t>>;
  std::map<Key, std::vector<size_t>> groups;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& c = claims[i];
    if (c.fused && c.time_us && c.rank && ai_of(c)) groups[{c.op, c.device, c.dims}].push_back(i);
  }
  for (auto& [key, rows] : groups) {
    // By rank; within a rank, fused rows first, so that each fused row is compared with better-ranked rows only.
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) {
      const Claim &x = claims[a], &y = claims[b];
      return std::pair(*x.rank, !*x.fused) < std::pair(*y.rank, !*y.fused);
    });
    Slowest apart_so_far;
    for (const size_t i : rows) {
      const Claim& c = claims[i];
      const double ai = *ai_of(c);
      if (!*c.fused) {
        apart_so_far.add(*c.time_us, ai, i);
        continue;
      }
      const auto found = apart_so_far.slower_with_more(*c.time_us, ai);
      if (!found) continue;
      const Claim& apart = claims[*found];
      out.add(i, "rank",
              fmt::format("ranked {} for its AI of {}, behind {} (AI {}), but it takes {} instead of {}: fusion "
                          "may lower the intensity and still save time; rank by time",
                          number_text(*c.rank), number_text(ai), apart.name, number_text(*ai_of(apart)),
                          time_text(*c.time_us / 1e6), time_text(*apart.time_us / 1e6)));
    }
  }
}

void origin_missing(const Claim& c, Findings& out) {
  if (c.achieved_tflops && c.origin.empty())
    out.add("achieved", fmt::format("{} TFLOPS without an origin: each point of a roofline plot needs one of "
                                    "measured, counter, simulated and model",
                                    number_text(*c.achieved_tflops)));
}

void overhead(const Claim& c, Findings& out) {
  if (!c.device || !c.time_us || !c.device->has("launch_us")) return;
  const double launch = c.device->at("launch_us"), launches = c.launches.value_or(1);
  if (*c.time_us >= kFewLaunches * launch * launches) return;
  out.add("time", fmt::format("{:.1f} us for {} of about {:g} us: launch overhead is a large "
                              "part, and roofs do not show it",
                              *c.time_us, counted(launches, "launch"), launch));
}

void special_function_roof(const Claim& c, Findings& out) {
  if (!c.device || !c.work) return;
  for (const KernelWork& k : c.work->kernels) {
    if (k.mma_flops <= 0 || k.exps <= 0) continue;
    const auto roof = matrix_roof(*c.device, c.work->math, c.work->accumulate, RoofSet::kDatasheet);
    if (!roof) return;
    const double matrix = k.mma_flops / roof->rate,
                 exps = k.exps / roof_of(*c.device, Resource::kSpecial, RoofSet::kDatasheet).rate;
    const double memory = k.dram_bytes() / (1e9 * c.device->at("dram_gb_s"));
    // Within 2 %, both roofs bind.
    if (exps < 0.98 * matrix || exps < memory) continue;
    out.add("bound",
            near(exps, matrix, 0.02)
                ? fmt::format("{}: exponentials take as long as the matrix work on {} ({} each): the special-function "
                              "roof is as low as that of {}",
                              k.name, c.device->name, time_text(exps), roof->name)
                : fmt::format("{}: exponentials take {:.2f} times as long as the matrix work on {} ({} against "
                              "{}): the special-function roof binds, not {}",
                              k.name, exps / matrix, c.device->name, time_text(exps), time_text(matrix), roof->name));
    return;
  }
}

void flattering_measurement(const Claim& c, Findings& out) {
  if (!measured(c)) return;
  if (c.inputs == "zeros" || c.inputs == "zero" || c.inputs == "ones" || c.inputs == "constant")
    out.add("inputs", fmt::format("measured on {}: matrix units draw less power and clock higher than on "
                                  "random data (13 % on an H200)",
                                  c.inputs));
  if (c.cache == "warm" || c.cache == "hot")
    out.add("cache", fmt::format("measured with a {} cache: reads that L2 answers make DRAM look faster than "
                                 "it is; flush L2 outside the timed region",
                                 c.cache));
}

}  // namespace roofgen::lint_rules

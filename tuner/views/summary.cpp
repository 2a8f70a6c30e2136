// The answer of a tune in lines that need no legend; details_text has the tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.h"
#include "base/units.h"
#include "tuner/views/views.h"

namespace roofgen {
namespace {

/// "one kernel takes 529.7 us".
std::string side_text(const Side& side) {
  const std::string time = time_text(side.seconds);
  return side.launches == 1 ? "one kernel takes " + time : fmt::format("{} kernels take {}", side.launches, time);
}

/// What the longest kernel of a variant waits for.
std::string limit_text(const VariantReport& v) {
  const KernelReport& k = *std::ranges::max_element(v.kernels, {}, &KernelReport::seconds);
  if (!k.counted) return "not counted";
  const std::string roof = k.time.bound_by == "SFU" ? "special functions (SFU)" : k.time.bound_by;
  return v.kernels.size() == 1 ? roof : fmt::format("{} in {}", roof, k.stage);
}

/// "FUSE: one kernel takes 529.7 us, 3 kernels take 1.985 ms, 3.75 times as long; fusing saves 8.59 GB of DRAM
/// traffic".
std::string verdict_text(const TuneReport& r, bool color) {
  std::string decision = r.verdict.decision;
  std::ranges::transform(decision, decision.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (color) decision = "\x1b[1m" + decision + "\x1b[0m";
  const std::optional<Side>&fused = r.verdict.fused, &unfused = r.verdict.unfused;
  if (!fused || !unfused || r.verdict.speedup <= 0) return fmt::format("{}: {}", decision, r.verdict.reason);
  const double saved = unfused->dram_bytes - fused->dram_bytes;
  const bool slower = r.verdict.speedup < 1;
  return fmt::format("{}: {}, {}, {:.2f} times as {}; fusing {} {} of DRAM traffic", decision, side_text(*fused),
                     side_text(*unfused), slower ? 1 / r.verdict.speedup : r.verdict.speedup, slower ? "fast" : "long",
                     saved < 0 ? "adds" : "saves", bytes_text(std::abs(saved)));
}

/// The verified variants, the fastest first.
TextTable variants_table(const TuneReport& r) {
  std::vector<const VariantReport*> verified;
  for (const VariantReport& v : r.variants)
    if (v.verified && !v.kernels.empty()) verified.push_back(&v);
  std::ranges::stable_sort(verified, {},
                           [&](const VariantReport* v) { return std::pair(v->name != r.best_variant, v->seconds); });
  std::vector<std::string> columns{"variant", "kernels", "time", "score", "DRAM traffic", "limited by"};
  if (r.gpu) columns.insert(columns.begin() + 3, "+-95%");
  TextTable table(columns);
  table.left(0);
  table.left(columns.size() - 1);
  for (const VariantReport* v : verified) {
    const bool counted = std::ranges::all_of(v->kernels, &KernelReport::counted);
    std::vector<std::string> row{v->name,
                                 fmt::to_string(v->kernels.size()),
                                 time_text(v->seconds),
                                 fmt::format("{:.2f}", r.score.floor.seconds / v->seconds),
                                 counted ? bytes_text(v->dram_bytes) : "-",
                                 limit_text(*v)};
    const std::optional<Measurement>& measured = v->kernels.size() == 1 ? v->kernels[0].measurement : v->measurement;
    if (r.gpu) row.insert(row.begin() + 3, measured ? spread_text(*measured) : "-");
    table.row(row);
  }
  return table;
}

std::string verified_line(const TuneReport& r) {
  std::vector<std::string> wholly, partly;
  for (const VariantReport& v : r.variants)
    if (v.verified) (v.wholly_verified() ? wholly : partly).push_back(v.name);
  const bool on_gpu_alone = r.gpu && r.gpu->check == Check::kGpu;
  std::string out =
      fmt::format("verified  {}: {}", on_gpu_alone ? "results, on the GPU" : "results and races, in a simulator",
                  wholly.empty() ? "none wholly" : fmt::to_string(fmt::join(wholly, ", ")));
  if (!partly.empty()) out += fmt::format("; in part: {}", fmt::join(partly, ", "));
  return out + "\n";
}

std::string times_line(const TuneReport& r) {
  const std::string models = models_text(kernels_of(r.variants));
  if (r.time_origin() == Origin::kMeasured) return fmt::format("times     measured; {}\n", gpu_line(*r.gpu));
  const std::string driver = r.gpu ? fmt::format("of the simulated driver; {}; ", gpu_line(*r.gpu)) : "";
  return fmt::format("times     {}{}; nothing was measured\n", driver, models);
}

std::string warnings_line(const TuneReport& r) {
  std::vector<std::string> rules;
  for (const Warning& w : r.warnings)
    if (std::ranges::find(rules, w.rule) == rules.end()) rules.push_back(w.rule);
  return rules.empty() ? ""
                       : fmt::format("warnings  {} of docs/use/lint.md; --details has them\n", fmt::join(rules, ", "));
}

}  // namespace

std::string tune_text(const TuneReport& r, bool color) {
  const VariantReport* best = r.find(r.best_variant);
  if (!best || best->kernels.empty()) return details_text(r, color);  // what was rejected and why is the answer
  std::string out = fmt::format("problem   {}\n", problem_text(r));
  out += fmt::format("device    {}, {}\n", r.executor_device, r.arch);
  out += fmt::format("verdict   {}\n\n", verdict_text(r, color));
  out += variants_table(r).str(kTextColumns, 1) + "\n";
  out += fmt::format("score     {:.2f}: the least time that the sustained ceilings allow, {} ({}), over {}\n",
                     r.score.value, time_text(r.score.floor.seconds), r.score.floor.bound_by, time_text(best->seconds));
  for (const KernelReport& k : best->kernels)
    out += fmt::format("{:<9} {}: {}\n", &k == &best->kernels.front() ? "winner" : "",
                       best->kernels.size() == 1 ? best->name : k.stage, params_text(k.schedule));
  out += verified_line(r) + times_line(r);
  if (!r.closed_form_because.empty()) out += fmt::format("          a rough guide: {}\n", r.closed_form_because);
  const bool remembered = r.compiled > 0 && r.compiled_now == 0 && r.evaluated_now == 0;
  out += fmt::format("searched  {} schedules, of which {} are illegal; {} compiled{}; {}\n", r.considered,
                     illegal_points(r), r.compiled, remembered ? " (remembered: nothing ran now)" : "", r.ended);
  out += warnings_line(r);
  if (r.gpu) out += notes_text(*r.gpu);
  if (r.interrupted) out += "          interrupted: what was finished is kept, the next run goes on from there\n";
  return wrapped(out + "more      --details: all tables and reasons; `roofgen emit` writes the winner as a C library\n",
                 10);
}

}  // namespace roofgen

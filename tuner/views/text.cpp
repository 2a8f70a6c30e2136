#include "tuner/views/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text_table.h"
#include "base/units.h"
#include "tuner/views/measured.h"

namespace roofgen {
namespace {

/// "15 of 15 CTAs of one head group, 4 of 960 CTAs of the launch; 1152 rows compared; inputs normal, zero query".
std::string verified_text(const TuneReport& r, const Verification& v) {
  const std::string whole = v.ctas_run > 0
                                ? fmt::format("{} of {} CTAs of {}, ", v.ctas_run, v.ctas_total, r.words.reduced)
                                : "slices only: ";
  const std::string grid =
      v.grid_ctas == 0 ? "" : fmt::format(", all {}{}", v.grid_ctas, v.grid.empty() ? "" : " with " + v.grid);
  std::string out = fmt::format("{}{} of {} {} of the launch{}{}; {} rows compared; inputs {}", whole,
                                v.launch_ctas_run, v.launch_ctas_total, v.launch_in_tiles ? "tiles" : "CTAs", grid,
                                v.division.empty() ? "" : ", " + v.division, v.rows_checked, v.inputs);
  for (const std::string& check : v.not_run) out += "; " + check;
  return out;
}

/// "warpgroup, 536.0 us: 0.60 of the sustained roofline; fused 676.1 us, unfused 1.962 ms".
std::string winner_line(const TuneReport& r) {
  const VariantReport& best = *r.find(r.best_variant);
  std::string out =
      fmt::format("{}, {}: {:.2f} of the sustained roofline", best.name, time_text(best.seconds), r.score.value);
  std::vector<std::string> others;
  for (const VariantReport& v : r.variants)
    if (v.verified && v.name != best.name) others.push_back(v.name + " " + time_text(v.seconds));
  return others.empty() ? out : fmt::format("{}; {}", out, fmt::join(others, ", "));
}

std::string searched_line(const TuneReport& r) {
  std::string out = fmt::format("{} points, {} illegal; {} compiled", r.considered, illegal_points(r), r.compiled);
  for (const auto& [stage, n] : r.rejected)
    if (stage != "constraint" && stage != "launch" && stage != "memory")
      out += fmt::format(", {} rejected ({})", n, stage);
  if (r.gpu)
    out += fmt::format(", {} verified and timed on the {}", r.gpu->timed,
                       r.time_origin() == Origin::kMeasured ? "GPU" : "simulated driver");
  if (!r.gpu || r.gpu->check != Check::kGpu) {
    const char* how = r.gpu ? "simulated" : "verified";
    if (r.simulated_binaries > 0 || r.sliced_binaries == 0)
      out += fmt::format(", {} {} on every CTA of {}", r.simulated_binaries, how, r.words.reduced);
    if (r.sliced_binaries > 0) out += fmt::format(", {} {} on slices", r.sliced_binaries, how);
  }
  if (r.compiled > 0 && r.compiled_now == 0 && r.evaluated_now == 0)
    out += " (all remembered: nothing compiled or simulated now)";
  else if (r.compiled_now < r.compiled)
    out += fmt::format(" ({} compiled and {} simulated now)", r.compiled_now, r.simulated_now);
  out += "; " + r.ended;
  for (const WarmStart& w : r.warm_starts)
    out += fmt::format("\n          {} candidates were fast for {} on {}", w.candidates, w.problem, w.device);
  return out;
}

/// What the models of the machine code did not know, a line for each kernel.
std::string doubts_text(const std::vector<const KernelReport*>& kernels) {
  std::string out;
  std::set<std::string> shown;
  for (const KernelReport* k : kernels) {
    if (!k->code || !shown.insert(k->digest).second) continue;
    const std::string name = k->schedule.variant + " " + k->stage;
    if (!k->code->doubts.empty())
      out += fmt::format("          the time of {} does not know {}\n", name, fmt::join(k->code->doubts, ", "));
    if (k->code->guessed_by_ptx)
      out += fmt::format("          {} takes a branch on computed values as often as in the simulated run\n", name);
  }
  return out;
}

}  // namespace

std::string problem_text(const TuneReport& r) {
  const Problem& p = r.problem;
  std::string out = fmt::format("{}, {}", r.words.title.empty() ? p.op : r.words.title, to_string(p.dtype));
  std::vector<std::string> names = r.words.dims;
  for (const auto& [name, v] : p.dims)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  for (const std::string& name : names)
    if (auto it = p.dims.find(name); it != p.dims.end()) out += fmt::format(" {}={}", name, it->second);
  for (const auto& [name, on] : p.flags)
    if (on) out += " " + name;
  for (const auto& [name, dtype] : p.dtypes) out += fmt::format(" {}={}", name, to_string(dtype));
  for (const auto& [name, v] : p.reals) out += fmt::format(" {}={:.6g}", name, v);
  for (const auto& [name, text] : p.texts)
    if (!text.empty()) out += fmt::format(" {}='{}'", name, text);
  for (const TensorArg& arg : p.args) out += " " + to_string(arg);
  return out;
}

uint64_t illegal_points(const TuneReport& r) {
  uint64_t out = 0;
  for (const char* stage : {"constraint", "launch"})
    if (const auto at = r.rejected.find(stage); at != r.rejected.end()) out += at->second;
  return out;
}

Reasons joined(const Reasons& each) {
  Reasons out;
  for (const auto& [name, reason] : each) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const auto& known) { return known.second == reason; });
    if (same == out.end())
      out.emplace_back(name, reason);
    else
      same->first += ", " + name;
  }
  return out;
}

std::string params_text(const Schedule& s) {
  std::string out;
  for (const auto& [name, v] : s.params) out += (out.empty() ? "" : " ") + name + "=" + to_string(v);
  return out;
}

std::string details_text(const TuneReport& r, bool color) {
  const auto bold = [&](const std::string& s) { return color ? "\x1b[1m" + s + "\x1b[0m" : s; };
  std::string out;
  out += fmt::format("problem   {}\n", problem_text(r));
  out += fmt::format("device    {}, {}\n", r.executor_device, r.arch.empty() ? "nothing compiled" : r.arch);
  if (r.gpu) out += fmt::format("gpu       {}\n", gpu_line(*r.gpu));
  if (!r.best_variant.empty()) out += fmt::format("winner    {}\n", winner_line(r));
  if (!r.closed_form_because.empty())
    out += fmt::format("times     of the closed form, a rough guide: {}\n", r.closed_form_because);
  out += fmt::format("searched  {}\n\n", searched_line(r));

  const std::string none = "-";
  // A measured run also shows the spread of each time and the model's time.
  std::vector<std::string> columns{"variant", "kernel", "time"};
  if (r.gpu) columns.insert(columns.end(), {"+-95%", "model"});
  columns.insert(columns.end(),
                 {"bound by", "regs", "occ", "waves", "DRAM", "L2", "AI", "waste", "idle", "stall", "err/tol"});
  TextTable table(columns);
  for (size_t i : {0, 1, r.gpu ? 5 : 3}) table.left(static_cast<size_t>(i));
  for (const VariantReport& v : r.variants) {
    for (const KernelReport& k : v.kernels) {
      std::vector<std::string> row{v.name, k.stage, time_text(k.seconds)};
      if (r.gpu)
        row.insert(row.end(),
                   {k.measurement ? spread_text(*k.measurement) : none, k.counted ? time_text(k.time.seconds) : none});
      const std::vector<std::string> compiled{k.counted ? k.time.bound_by : none, fmt::to_string(k.registers),
                                              fmt::format("{:.0f}%", 100 * k.occupancy.fraction)};
      row.insert(row.end(), compiled.begin(), compiled.end());
      if (k.counted)
        row.insert(
            row.end(),
            {fmt::format("{:.1f}", k.time.waves), bytes_text(k.work.dram_bytes) + (k.intermediate_in_l2 ? "*" : ""),
             bytes_text(k.work.l2_bytes), fmt::format("{:.0f}", k.arithmetic_intensity), fmt::format("{:.2f}", k.waste),
             fmt::format("{:.2f}", k.idle), fmt::format("{:.2f}", k.stall)});
      else
        row.insert(row.end(), 7, none);
      row.push_back(fmt::format("{:.2f}", k.verification.error_over_tolerance));
      table.row(row);
    }
    if (v.kernels.size() > 1) {
      std::vector<std::string> row{v.name, "total", time_text(v.seconds)};
      if (r.gpu) row.insert(row.end(), {v.measurement ? spread_text(*v.measurement) : none, ""});
      const bool counted =
          std::all_of(v.kernels.begin(), v.kernels.end(), [](const KernelReport& k) { return k.counted; });
      row.insert(row.end(),
                 {"", "", "", "", counted ? bytes_text(v.dram_bytes) : none, counted ? bytes_text(v.l2_bytes) : none,
                  counted ? fmt::format("{:.0f}", v.arithmetic_intensity()) : none, "", "", "",
                  fmt::format("{:.2f}", v.verification.error_over_tolerance)});
      table.row(row);
    }
  }
  if (table.empty() && r.interrupted)
    return wrapped(out + "interrupted before a kernel was verified; the next run goes on from there\n", 10);
  if (!table.empty()) out += table.str(kTextColumns, 2) + "\n";
  bool flagged = false, sampled = false, counted = true;
  Reasons rejected;
  for (const VariantReport& v : r.variants) {
    if (!v.available)
      rejected.emplace_back(v.name, v.rejected_because);
    else if (v.kernels.empty() && !r.interrupted)
      out += fmt::format("{:<9} nothing verified; --explain lists why\n", v.name);
    for (const KernelReport& k : v.kernels) {
      out += fmt::format("{:<9} {}: {}\n", v.name, k.stage, params_text(k.schedule));
      flagged |= k.intermediate_in_l2;
      sampled |= !k.work_exact;
      counted &= k.counted;
    }
  }
  for (const auto& [names, reason] : joined(rejected)) out += fmt::format("rejected  {}: {}\n", names, reason);
  if (r.gpu) out += finalists_text(r);
  out += "\n";
  std::string before;
  for (const VariantReport& v : r.variants)
    if (v.verified) {
      const std::string label = v.wholly_verified() ? "verified" : "partly verified";
      out += fmt::format("{:<9} {}: {}\n", label == before ? "" : label, v.name, verified_text(r, v.verification));
      before = label;
    }
  if (!r.best_variant.empty()) {
    std::string verdict = r.verdict.decision;
    std::transform(verdict.begin(), verdict.end(), verdict.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    out += fmt::format("verdict   {}: {}\n", bold(verdict), r.verdict.reason);
    if (r.verdict.fused && r.verdict.unfused) {
      TextTable sides({"", "time", "DRAM", "L2", "AI", "regs", "spills", "occ", "launches"});
      sides.left(0);
      const auto row = [&](const char* name, const Side& s) {
        sides.row({name, time_text(s.seconds), bytes_text(s.dram_bytes), bytes_text(s.l2_bytes),
                   fmt::format("{:.0f}", s.arithmetic_intensity), fmt::to_string(s.registers),
                   bytes_text(static_cast<double>(s.spill_bytes)), fmt::format("{:.0f}%", 100 * s.occupancy),
                   fmt::to_string(s.launches)});
      };
      row("          fused", *r.verdict.fused);
      row("          unfused", *r.verdict.unfused);
      out += sides.str();
    }
    out += fmt::format(
        "score     {} of the sustained roofline, {:.2f} of the datasheet's{}: {} ({}) is the least that these ceilings "
        "allow\n",
        bold(fmt::format("{:.2f}", r.score.value)), r.score.datasheet,
        r.gpu && r.gpu->score_at_clock > 0
            ? fmt::format(", {:.2f} of that at {:.0f} MHz", r.gpu->score_at_clock, r.gpu->sm_mhz)
            : "",
        time_text(r.score.floor.seconds), r.score.floor.bound_by);
  } else {
    out += fmt::format("verdict   {}: {}\n", bold("NONE"), r.verdict.reason);
  }
  counted &= !r.gpu || !r.best_variant.empty();
  const std::string instructions = !counted  ? "not counted"
                                   : sampled ? "simulated on a smaller problem or on slices, scaled by their CTAs"
                                             : fmt::format("simulated over {}, scaled by their number", r.words.parts);
  if (r.gpu && r.gpu->timed == 0)
    out +=
        fmt::format("origins   nothing was measured; registers: compiled; L2, instructions, FLOPs: {}\n", instructions);
  else if (r.gpu)
    out +=
        fmt::format("origins   time: {}; model: {}; DRAM: model; L2, instructions, FLOPs: {}; registers: compiled{}\n",
                    to_string(r.time_origin()), models_text(kernels_of(r.variants)), instructions,
                    r.time_origin() == Origin::kMeasured ? "" : "; nothing was measured");
  else
    out += fmt::format(
        "origins   time: {}; DRAM: model; L2, instructions, FLOPs: {}; registers: compiled; nothing was measured\n",
        models_text(kernels_of(r.variants)), instructions);
  out += doubts_text(kernels_of(r.variants));
  if (flagged)
    out +=
        "          * an intermediate stays in L2 and is judged against the L2 roof: neither its reading nor a later "
        "write-back to DRAM is counted\n";
  if (r.gpu) out += notes_text(*r.gpu);
  for (const Warning& w : r.warnings) out += fmt::format("warning   {} {}\n", w.rule, w.text);
  if (r.interrupted) out += "          interrupted: what was finished is kept, the next run goes on from there\n";
  return wrapped(out, 10);
}

std::string models_text(const std::vector<const KernelReport*>& kernels) {
  std::map<TimeModel, std::pair<double, double>> bands;  // the narrowest and the widest
  for (const KernelReport* k : kernels) {
    const auto at = bands.try_emplace(k->time.model, k->time.band, k->time.band).first;
    at->second = {std::min(at->second.first, k->time.band), std::max(at->second.second, k->time.band)};
  }
  std::vector<std::string> parts;
  for (auto b = bands.rbegin(); b != bands.rend(); ++b) {
    const auto& [narrow, wide] = b->second;
    parts.push_back(fmt::format("{} (error band {}{:.0f} %)", to_string(b->first),
                                wide - narrow < 0.005 ? "" : fmt::format("{:.0f} to ", 100 * narrow), 100 * wide));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string explain_text(const TuneReport& r) {
  // One line per rule. The values in parentheses are those of its first case.
  const auto rule_of = [](const std::string& reason) { return reason.substr(0, reason.rfind(" (")); };
  std::map<std::string, std::map<std::string, std::vector<const Rejected*>>> groups;
  for (const Rejected& x : r.rejections) groups[x.stage][rule_of(x.reason)].push_back(&x);
  std::string out = "rejected\n";
  for (const auto& [stage, rules] : groups) {
    out += fmt::format("  {} ({})\n", stage, r.rejected.count(stage) ? r.rejected.at(stage) : 0);
    std::vector<const std::vector<const Rejected*>*> sorted;
    for (const auto& [rule, cases] : rules) sorted.push_back(&cases);
    const auto points = [](const std::vector<const Rejected*>* cases) {
      uint64_t sum = 0;
      for (const Rejected* x : *cases) sum += x->points;
      return sum;
    };
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) { return points(a) > points(b); });
    for (const auto* cases : sorted)
      out += fmt::format("    {:>5} x  {}\n             {}\n", points(cases), cases->front()->reason,
                         to_string(cases->front()->schedule));
  }
  return out;
}

// ---- The answer in lines that need no legend ---------------------------------------------------------

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

#include "tuner/views/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "base/units.h"
#include "generator/space/problem_json.h"
#include "tuner/whatif/whatif.h"

namespace roofgen {
namespace {

std::string dims_text(const Problem& p) {
  std::string out = to_string(p.dtype);
  for (const auto& [name, v] : p.dims) out += fmt::format(" {}={}", name, v);
  for (const auto& [name, on] : p.flags)
    if (on) out += " " + name;
  return out;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string ladder(const WhatIfReport& r) {
  const PartitionReport* best = r.best();
  TextTable table({"", "partition", "time", "x best", "kernels", "DRAM", "L2", "AI", "waste", "idle", "stall"});
  table.left(0).left(1);
  for (const PartitionReport& p : r.partitions) {
    if (!p.timed()) continue;
    const bool tied = best && &p != best && !time_gap(r, p, *best).decided();
    const bool flagged =
        std::any_of(p.intermediates.begin(), p.intermediates.end(), [](const Intermediate& t) { return t.in_l2; });
    table.row({r.forced == p.name ? ">"
               : &p == best       ? "*"
               : tied             ? "~"
                                  : "",
               p.name, time_text(p.seconds), best ? fmt::format("{:.2f}", p.seconds / best->seconds) : "-",
               fmt::to_string(p.kernels.size()), bytes_text(p.dram_bytes) + (flagged ? "*" : ""),
               bytes_text(p.l2_bytes), fmt::format("{:.1f}", p.arithmetic_intensity()), fmt::format("{:.2f}", p.waste),
               fmt::format("{:.2f}", p.idle), fmt::format("{:.2f}", p.stall)});
  }
  return table.str();
}

/// The reasons for illegal partitions, each with its partitions.
std::string without_time(const WhatIfReport& r) {
  std::string out;
  std::vector<std::string> told;
  for (const PartitionReport& p : r.partitions) {
    const std::string& why = p.illegal.empty() ? p.failed : p.illegal;
    if (why.empty() || std::find(told.begin(), told.end(), why) != told.end()) continue;
    told.push_back(why);
    out += wrapped(fmt::format("{}   {}\n", p.illegal.empty() ? "failed " : "illegal", why), 10);
    size_t more = 0;
    for (const PartitionReport& q : r.partitions) {
      if ((q.illegal.empty() ? q.failed : q.illegal) != why) continue;
      if (++more <= 16) out += fmt::format("            {}\n", q.name);
    }
    if (more > 16) out += fmt::format("            and {} more\n", more - 16);
  }
  return out;
}

/// A verdict with its two sides, each with the name of its row.
std::string verdict_text(const std::string& subject, const std::string& decision, const std::string& reason,
                         const std::vector<std::pair<std::string, std::optional<EdgeSide>>>& rows, bool color) {
  const std::string bold = color ? "\x1b[1m" + upper(decision) + "\x1b[0m" : upper(decision);
  std::string out = wrapped(fmt::format("{}: {}: {}\n", subject, bold, reason), 2);
  const bool spills = std::ranges::any_of(rows, [](const auto& row) { return row.second && row.second->spill_bytes; });
  std::vector<std::string> head{"", "time", "DRAM", "L2", "AI", "regs", "occ"};
  if (spills) head.push_back("spills");
  head.insert(head.end(), {"launches", "waste", "idle", "stall", "partition"});
  TextTable sides(head);
  sides.left(0).left(head.size() - 1);
  bool any = false;
  for (const auto& [name, s] : rows) {
    if (!s) continue;
    any = true;
    std::vector<std::string> cells{"  " + name,
                                   time_text(s->seconds),
                                   bytes_text(s->dram_bytes),
                                   bytes_text(s->l2_bytes),
                                   fmt::format("{:.1f}", s->arithmetic_intensity),
                                   fmt::to_string(s->registers),
                                   fmt::format("{:.0f}%", 100 * s->occupancy)};
    if (spills) cells.push_back(bytes_text(static_cast<double>(s->spill_bytes)));
    cells.insert(cells.end(), {fmt::to_string(s->launches), fmt::format("{:.2f}", s->waste),
                               fmt::format("{:.2f}", s->idle), fmt::format("{:.2f}", s->stall), s->partition});
    sides.row(std::move(cells));
  }
  return any ? out + sides.str() : out;
}

std::string kernels_text(const char* heading, const PartitionReport& p) {
  std::string out;
  for (const KernelReport& k : p.kernels) {
    const std::string& variant = k.schedule.variant;  // the name of the part and its kernel, "gemm+bias warpgroup"
    out += wrapped(fmt::format("{:<10}{}: {}, {}, {} registers, bound by {}: {}\n", heading,
                               variant.starts_with(k.stage) ? variant : k.stage, time_text(k.seconds),
                               bytes_text(k.work.dram_bytes), k.registers, k.time.bound_by, params_text(k.schedule)),
                   10);
  }
  return out;
}

/// What ran of the partition that is recommended.
std::string verified_text(const Verification& v) {
  std::string out = fmt::format("{} rows compared; inputs {}", v.rows_checked, v.inputs);
  if (v.grid_ctas > 0)
    out = fmt::format("all {} CTAs{}; {}", v.grid_ctas, v.grid.empty() ? "" : " with " + v.grid, out);
  if (!v.division.empty()) out = v.division + "; " + out;
  for (const std::string& check : v.not_run) out += "; " + check;
  return out;
}

}  // namespace

std::string whatif_text(const WhatIfReport& r, bool color) {
  const auto bold = [&](const std::string& s) { return color ? "\x1b[1m" + s + "\x1b[0m" : s; };
  std::string out = fmt::format("chain     {}\n", r.title);
  out += fmt::format("problem   {}\n", dims_text(r.problem));
  out += fmt::format("device    {}, {}\n", r.executor_device, r.arch.empty() ? "nothing compiled" : r.arch);
  const PartitionReport* best_plan = r.best();
  out += best_plan ? fmt::format("winner    {}, {}: {:.2f} of the sustained roofline ({}, {})\n", bold(best_plan->name),
                                 time_text(best_plan->seconds), r.floor.seconds / best_plan->seconds,
                                 time_text(r.floor.seconds), r.floor.bound_by)
                   : fmt::format("winner    {}: no partition has a time\n", bold("none"));
  size_t legal = 0;
  for (const PartitionReport& p : r.partitions) legal += p.illegal.empty();
  out += fmt::format(
      "searched  {} partitions, {} legal, made of {} distinct kernels; {} points, {} compiled ({} now), {} run now\n\n",
      r.partitions.size(), legal, r.parts, r.considered, r.compiled, r.compiled_now, r.evaluated_now);
  out = wrapped(out, 10) + ladder(r);  // one line for each partition, however wide
  out += "\n" + without_time(r);
  const PartitionReport* shown = r.forced ? r.find(*r.forced) : best_plan;
  if (best_plan && shown != best_plan && shown && shown->timed()) out += kernels_text("best", *best_plan);
  if (shown && shown->timed()) out += kernels_text(shown == best_plan ? "best" : "plan", *shown);
  const PartitionReport* split = r.split && r.split->split ? r.find(r.split->split->partition) : nullptr;
  if (split && split != best_plan && split != shown) out += kernels_text("split", *split);
  out += "\n";
  for (const EdgeReport& e : r.edges)
    out += verdict_text(fmt::format("{} > {}", e.before, e.after), e.decision, e.reason,
                        {{"fused", e.fused}, {"cut", e.cut}}, color);
  if (r.split)
    out += verdict_text("split keys", r.split->decision, r.split->reason,
                        {{"whole", r.split->whole}, {r.split->variant, r.split->split}}, color);
  out += "\n";
  std::string notes;
  if (r.forced) notes += fmt::format("plan      {}: {}\n", *r.forced, r.forced_verdict);
  if (best_plan && best_plan->together) notes += fmt::format("verified  {}\n", verified_text(*best_plan->together));
  for (const std::string& n : r.notes) notes += fmt::format("note      {}\n", n);
  if (r.times == Origin::kModel)
    notes += fmt::format(
        "origins   time: {} of what two partitions do not share; DRAM: model; L2, FLOPs: simulated; registers, spills: "
        "compiled; nothing was measured\n",
        models_text(kernels_of(r.partitions)));
  else
    notes += fmt::format(
        "origins   time: {}, each kernel timed alone; DRAM: model; L2, FLOPs: simulated; registers, spills: compiled\n",
        to_string(r.times));
  notes += fmt::format(
      "          * fastest, ~ within the error of the fastest; DRAM*: a value between two kernels stays in L2, neither "
      "its reading nor a later write-back is counted; AI counts {}\n",
      r.matrix_flops ? "MMA FLOPs" : "operations of the FP32 pipe");
  if (r.interrupted) notes += "          interrupted: what was finished is kept, the next run goes on from there\n";
  return out + wrapped(notes, 10);
}

std::string sweep_text(const Sweep& sweep, bool color) {
  std::string out = sweep.runs.empty() ? "" : whatif_text(sweep.runs.back(), color) + "\n";
  TextTable table({sweep.dim, "fastest", "time", "next", "x", "decided", "edges worth fusing"});
  table.left(1).left(3).left(6);
  for (const WhatIfReport& r : sweep.runs) {
    const std::string size = fmt::to_string(r.problem.dims.at(sweep.dim));
    const PartitionReport* best = r.best();
    if (!best) {
      table.row({size, "none has a time", "", "", "", "", ""});
      continue;
    }
    const PartitionReport* next = r.partitions.size() > 1 && r.partitions[1].timed() ? &r.partitions[1] : nullptr;
    std::string edges;
    for (const EdgeReport& e : r.edges)
      if (e.decision == "fuse") edges += fmt::format("{}{}>{}", edges.empty() ? "" : " ", e.before, e.after);
    table.row({size, best->name, time_text(best->seconds), next ? next->name : "-",
               next ? fmt::format("{:.2f}", next->seconds / best->seconds) : "-",
               next && time_gap(r, *next, *best).decided() ? "yes" : "no", edges.empty() ? "-" : edges});
  }
  out += table.str();
  for (const Sweep::Crossover& x : sweep.crossovers)
    out += fmt::format("crossover between {0}={1} and {0}={2}{3}: {4} below, {5} above{6}\n", sweep.dim, x.below,
                       x.above, x.at > 0 ? fmt::format(", about {:.0f}", x.at) : "", x.from, x.to,
                       x.decided  ? ""
                       : x.at > 0 ? " (not outside the error band at both ends)"
                                  : " (one of them has no time at the other size)");
  const bool all_timed =
      std::all_of(sweep.runs.begin(), sweep.runs.end(), [](const WhatIfReport& r) { return r.best(); });
  if (sweep.crossovers.empty() && all_timed && sweep.runs.size() > 1)
    out += "no crossover: the same partition is the fastest at every size\n";
  return out;
}

}  // namespace roofgen

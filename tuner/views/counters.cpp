#include "tuner/views/counters.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text_table.h"
#include "base/units.h"

namespace roofgen {
namespace {

std::string bytes_cell(const std::optional<double>& v) { return v ? bytes_text(*v) : "-"; }
std::string count_cell(const std::optional<double>& v) { return v ? count_text(*v) : "-"; }

/// Small numbers (registers) in full, large ones with a unit prefix.
std::string amount(const CountedDifference& d, double v) {
  if (d.quantity.ends_with("bytes")) return bytes_text(v);
  return v < 1000 ? fmt::format("{:g}", v) : count_text(v);
}

const char* state_text(SanitizerRow::State state) {
  switch (state) {
    case SanitizerRow::State::kClean: return "clean";
    case SanitizerRow::State::kErrors: return "errors";
    case SanitizerRow::State::kNotRun: return "not run";
  }
  return "";
}

}  // namespace

std::string counters_text(const CounterReport& r) {
  std::string out =
      fmt::format("counters  {} ({}); origin: counter\n", r.tool, r.version.empty() ? "version unknown" : r.version);
  TextTable table({"kernel", "DRAM read", "DRAM written", "L2 requests", "L2 all", "L1", "tensor FLOPs", "FP32 FLOPs",
                   "AI", "regs", "warps", "spills", "time"});
  table.left(0);
  for (const CountedWork& k : r.kernels)
    table.row({k.stage, bytes_cell(k.dram_read_bytes), bytes_cell(k.dram_write_bytes), bytes_cell(k.l2_request_bytes),
               bytes_cell(k.l2_bytes), bytes_cell(k.l1_bytes), count_cell(k.tensor_flops), count_cell(k.fp32_flops),
               k.arithmetic_intensity() ? fmt::format("{:.1f}", *k.arithmetic_intensity()) : "-",
               k.registers ? fmt::format("{:g}", *k.registers) : "-",
               k.warps_active_pct ? fmt::format("{:.0f}%", *k.warps_active_pct) : "-", count_cell(k.spill_instructions),
               k.time_ns ? time_text(*k.time_ns * 1e-9) : "-"});
  out += table.str();
  out += "          times are under the profiler, with flushed caches: not measurements\n";
  if (!r.differences.empty()) {
    TextTable differences({"kernel", "counted", "", "against", "", "differs", ""});
    for (size_t i : {0, 1, 3, 6}) differences.left(i);
    for (const CountedDifference& d : r.differences)
      differences.row({d.stage, d.quantity, amount(d, d.counted), d.against, amount(d, d.expected),
                       fmt::format("{:+.1f}%", 100 * d.relative), d.flagged ? "! " + d.reason : "agrees"});
    out += differences.str();
  }
  for (const std::string& note : r.notes) out += fmt::format("          {}\n", note);
  return out;
}

Json counters_json(const CounterReport& r) {
  Json j{{"schema", "roofgen.counters.1"}, {"origin", "counter"}};
  ROOFGEN_PUT(j, r, variant, tool, version, command)
  j["kernels"] = Json::array();
  for (const CountedWork& k : r.kernels) {
    Json& kernel = j["kernels"].emplace_back(Json{{"name", k.stage}, {"entry", k.entry}});
    ROOFGEN_PUT(kernel, k, dram_read_bytes, dram_write_bytes, l2_request_bytes, l2_bytes, l1_bytes)
    ROOFGEN_PUT(kernel, k, tensor_flops, tensor_flops_from_instructions, fp32_flops)
    kernel["arithmetic_intensity"] = k.arithmetic_intensity();
    ROOFGEN_PUT(kernel, k, registers, warps_active_pct, spill_instructions, sm_cycles)
    kernel["profiled_time_ns"] = k.time_ns;
  }
  j["differences"] = Json::array();
  for (const CountedDifference& d : r.differences) {
    Json& difference = j["differences"].emplace_back(Json{{"kernel", d.stage}});
    ROOFGEN_PUT(difference, d, quantity, against, counted, expected, relative, flagged, reason)
  }
  j["notes"] = r.notes;
  return j;
}

std::string sanitizer_text(const SanitizerReport& r) {
  std::string out = fmt::format(
      "sanitizer {}\n",
      r.tool.empty() ? "not found" : fmt::format("{} ({})", r.tool, r.version.empty() ? "version unknown" : r.version));
  TextTable table({"tool", "GPU", "simulator", ""});
  for (size_t i = 0; i < 4; ++i) table.left(i);
  for (const SanitizerRow& row : r.rows) {
    std::string said = state_text(row.state);
    if (row.state == SanitizerRow::State::kErrors) {
      said = counted(static_cast<double>(row.errors), "error");
      if (row.warnings > 0) said += ", " + counted(static_cast<double>(row.warnings), "warning");
    }
    if (row.state == SanitizerRow::State::kNotRun) said += ": " + row.why;
    std::string simulator = row.simulator.empty() ? "clean" : "";
    for (const std::string& kind : row.simulator) simulator += (simulator.empty() ? "" : ", ") + kind;
    table.row({row.tool, said, simulator, row.agreement()});
  }
  out += table.str();
  for (const SanitizerRow& row : r.rows)
    for (const std::string& line : row.lines) out += fmt::format("          {}: {}\n", row.tool, line);
  return out;
}

Json sanitizer_json(const SanitizerReport& r) {
  Json j{{"schema", "roofgen.sanitizer.1"}, {"tool", r.tool}, {"version", r.version}};
  j["tools"] = Json::array();
  for (const SanitizerRow& row : r.rows) {
    Json t{{"name", row.tool}, {"state", state_text(row.state)}, {"errors", row.errors}, {"warnings", row.warnings}};
    if (!row.why.empty()) t["why"] = row.why;
    ROOFGEN_PUT(t, row, lines, simulator)
    t["agreement"] = row.agreement();
    j["tools"].push_back(std::move(t));
  }
  return j;
}

}  // namespace roofgen

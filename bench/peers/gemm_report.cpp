#include "bench/peers/gemm_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text_table.h"
#include "base/units.h"
#include "runtime/measure/statistics.h"

namespace roofgen::peers {
namespace {

std::string text(const Json& j) { return j.get<std::string>(); }

}  // namespace

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%S}+00:00", fmt::gmtime(std::time(nullptr))); }

Json timing_json(const std::vector<double>& times, double flops, const std::vector<double>* base) {
  const Timing t = summarize(times);
  Json ratio = nullptr;
  if (base) {
    const auto [median, interval] = paired_ratio(times, *base);
    const size_t pairs = std::min(times.size(), base->size());
    ratio = {{"median", median}, {"low", interval.low}, {"high", interval.high}, {"pairs", pairs}};
  }
  return {{"median_ns", t.median_ns},
          {"q1_ns", t.q1_ns},
          {"q3_ns", t.q3_ns},
          {"min_ns", t.min_ns},
          {"low_ns", t.low_ns},
          {"high_ns", t.high_ns},
          {"samples", t.samples},
          {"times_ns", t.times_ns},
          {"tflops", flops / t.median_ns / 1e3},
          {"ratio", ratio}};
}

Json mode_json(const std::string& mode, const Turns& turns) {
  Json state = Json::object();
  if (!turns.sm_mhz.empty()) state["sm_mhz"] = summarize(turns.sm_mhz).median_ns;
  if (!turns.power_w.empty()) state["power_w"] = summarize(turns.power_w).median_ns;
  return {{"mode", mode},
          {"ways", {"cold", "hot"}},
          {"rounds", turns.rounds},
          {"stopped", turns.stopped},
          {"state", state}};
}

Json contender_json(const Contender& c) {
  Json j{{"name", c.name}, {"what", c.what}, {"state", c.state}, {"reason", c.reason}};
  j["error_over_tolerance"] = std::isfinite(c.error) ? Json(c.error) : Json(nullptr);  // JSON has no infinity
  if (c.state == "timed") j["timings"] = c.timings;
  return j;
}

Json case_json(const GemmCase& c) {
  return {{"op", "gemm"},
          {"name", c.name},
          {"dtype", to_string(c.format)},
          {"epilogue", to_string(c.epilogue)},
          {"dims", {{"m", c.m}, {"n", c.n}, {"k", c.k}, {"batch", c.batch * c.outer}}},
          {"flags", {{"b_is_kn", c.b_is_kn}}}};
}

Json gpu_json(const Gpu& gpu) {
  return {{"name", gpu.name},
          {"uuid", gpu.uuid},
          {"driver", gpu.driver_version},
          {"sms", gpu.sms},
          {"cc", fmt::format("{}.{}", gpu.cc / 10, gpu.cc % 10)},
          {"l2_bytes", gpu.l2_bytes},
          {"memory_bytes", gpu.memory_bytes},
          {"max_sm_mhz", gpu.nvml.max_sm_mhz()},
          {"power_limit_w", gpu.nvml.power_limit_w()}};
}

std::string table(const Json& document) {
  std::string out = fmt::format("{} on {}\n", text(document["problem"]["name"]), text(document["gpu"]["name"]));
  for (const Json& mode : document["modes"])
    for (const char* way : {"cold", "hot"}) {
      TextTable rows({"peer", "time", "95 %", "IQR", "TFLOP/s", "time / ours", "err/tol"});
      rows.left(0);
      for (const Json& p : document["peers"]) {
        if (p["state"] != "timed") continue;
        const Json& t = p["timings"][text(mode["mode"])][way];
        const auto ns = [&](const char* key) { return t[key].get<double>(); };
        const auto time = [](double value) { return time_text(value * 1e-9); };
        std::string ratio = "-";
        if (const Json& r = t["ratio"]; !r.is_null())
          ratio = fmt::format("{:.3f} [{:.3f}, {:.3f}]", r["median"].get<double>(), r["low"].get<double>(),
                              r["high"].get<double>());
        rows.row({p["name"], time(ns("median_ns")), fmt::format("[{}, {}]", time(ns("low_ns")), time(ns("high_ns"))),
                  time(ns("q3_ns") - ns("q1_ns")), fmt::format("{:.1f}", ns("tflops")), ratio,
                  fmt::format("{:.2f}", p["error_over_tolerance"].get<double>())});
      }
      std::string clock;
      if (mode["state"].contains("sm_mhz")) clock = fmt::format(", {:.0f} MHz", mode["state"]["sm_mhz"].get<double>());
      out += fmt::format("{}, {} ({} rounds, {}{})\n{}", text(mode["mode"]), way, mode["rounds"].get<int>(),
                         text(mode["stopped"]), clock, rows.str());
    }
  for (const Json& p : document["peers"])
    if (p["state"] != "timed") out += fmt::format("{}: {}: {}\n", text(p["name"]), text(p["state"]), text(p["reason"]));
  for (const Json& note : document["notes"]) out += fmt::format("note: {}\n", text(note));
  return out + "\n";
}

}  // namespace roofgen::peers

#include <fmt/format.h>

#include "roofline/device_cells.h"
#include "tuner/ceilings/data.h"
#include "tuner/ceilings/profile.h"

namespace roofgen::ceilings {
namespace {

double clock_of(const Device& device, double sm_mhz) { return sm_mhz > 0 ? sm_mhz : device.at("clock_fp32_mhz"); }

std::string amount_text(const CeilingResult& r) {
  const std::string unit = r.spec->unit;
  return fmt::format("{:.0f} {}", r.amount,
                     unit.find("FLOP") != std::string::npos ? "FLOP"
                     : unit == "lanes/clk/SM"               ? "exponentials"
                                                            : "bytes");
}

/// The measurement of a rate, in one line.
std::string source_of(const CeilingsReport& report, const CeilingResult& r) {
  std::string out =
      fmt::format("{}: {}, median {:.4g} us (95 % {:.4g} to {:.4g}, {} samples)", kOwnSource, to_string(r.point),
                  r.timing.median_ns * 1e-3, r.timing.low_ns * 1e-3, r.timing.high_ns * 1e-3, r.timing.samples);
  if (r.spec->check) out += " of " + amount_text(r);
  if (r.sm_mhz > 0) out += fmt::format(" at {:.0f} MHz", r.sm_mhz);
  return out + fmt::format("; driver {}, {}, {}", report.gpu.driver.empty() ? "unknown" : report.gpu.driver,
                           report.gpu.uuid.empty() ? "no UUID" : report.gpu.uuid, report.date);
}

}  // namespace

double rate_of(const CeilingSpec& spec, const Device& device, double amount, double time_ns, double sm_mhz) {
  if (!(time_ns > 0)) return 0;
  if (std::string_view(spec.unit) == "us") return 1e-3 * time_ns / amount;
  if (!spec.per_clock()) return amount / time_ns;  // bytes per ns: GB/s
  return amount / (time_ns * 1e-3 * clock_of(device, sm_mhz) * device.at("sms"));
}

void judge(CeilingResult& r, const Device& device) {
  const auto rate = [&](double ns) { return rate_of(*r.spec, device, r.amount, ns, r.sm_mhz); };
  r.rate = rate(r.timing.median_ns);
  const double a = rate(r.timing.low_ns), b = rate(r.timing.high_ns);
  r.low = std::min(a, b), r.high = std::max(a, b);
  if (r.spec->per_clock()) {
    const bool bytes = std::string_view(r.spec->unit).starts_with("bytes"),
               flops = std::string_view(r.spec->unit).starts_with("FLOP");
    r.chip_unit = bytes ? "GB/s" : flops ? "TFLOP/s" : "T/s";
    r.chip_rate = r.amount / r.timing.median_ns * (bytes ? 1 : 1e-3);
  }
  if (r.limit && r.limit->origin != Origin::kModel && r.rate > kCeilingSlack * r.limit->value) {
    r.impossible = true;
    r.missing = fmt::format(
        "{:.5g} {} is {:.3g} times {} of {:.5g}{}: a bug in the counted work or the timing; the figure is discarded",
        r.rate, r.spec->unit, r.rate / r.limit->value, r.limit->cell, r.limit->value,
        r.sm_mhz > 0 ? fmt::format(" at the {:.0f} MHz it ran at", r.sm_mhz) : "");
  }
}

void derive_cells(CeilingsReport& report) {
  std::map<std::string, std::pair<double, const CeilingResult*>> values;
  const auto best = [&](const char* cell, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const CeilingResult* r = report.find(name); r && r->measured() && r->rate > values[cell].first)
        values[cell] = {r->rate, r};
    if (!values[cell].second) values.erase(cell);
  };
  // Writes still in L2 have not reached DRAM when the kernel ends: their rate is no DRAM ceiling.
  best("dram_sustained_gb_s", {"dram_read", "dram_copy", "dram_triad"});
  best("l2_sustained_gb_s", {"l2_read", "l2_write", "l2_copy", "l2_triad"});
  for (const char* name : {"mma_bf16", "mma_fp16"})
    if (const CeilingResult* r = report.find(name);
        r && r->measured() && r->sm_mhz > 0 && !values.count("clock_sustained_mhz"))
      values["clock_sustained_mhz"] = {r->sm_mhz, r};
  for (const CeilingResult& r : report.results) {
    if (!r.measured() || !*r.spec->cell) continue;
    if (r.spec->per_clock() && !(r.sm_mhz > 0)) {
      report.notes.push_back(
          fmt::format("the SM clock of {} is unknown: {} is not measured", r.spec->what, r.spec->cell));
      continue;
    }
    values[r.spec->cell] = {r.rate, &r};
  }
  for (const auto& [name, value] : values) {
    const Cell cell{value.first, std::string(cell_spec(name)->unit), report.origin, source_of(report, *value.second)};
    if (report.origin != Origin::kMeasured) {  // shown, but never applied to a device
      report.cells[name] = cell;
      continue;
    }
    // The device accepts or refuses each cell.
    Device copy = report.device;
    if (auto laid = overlay(copy, cells_json(report.device.name, {{name, cell}}), "profile"); laid)
      report.cells[name] = cell;
    else
      report.notes.push_back("not kept: " + laid.error().message);
  }
}

}  // namespace roofgen::ceilings

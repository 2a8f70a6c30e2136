#include <fmt/format.h>

#include "base/json.h"
#include "base/text_table.h"
#include "tuner/ceilings/ceilings.h"
#include "tuner/ceilings/json.h"

namespace roofgen {

namespace ceilings {

Json provenance_json(const CeilingsReport& r) {
  const auto known = [](double v) { return v > 0 ? Json(v) : Json(nullptr); };
  return {{"gpu", r.gpu.name},
          {"uuid", r.gpu.uuid},
          {"pci_bus_id", r.gpu.pci_bus_id},
          {"driver", r.gpu.driver},
          {"cuda_version", r.gpu.cuda_version},
          {"power_limit_w", known(r.gpu.power_limit_w)},
          {"max_sm_mhz", known(r.gpu.max_sm_mhz)},
          {"arch", r.device.arch},
          {"compiler", r.compiler},
          {"protocol", r.protocol},
          {"date", r.date},
          {"origin", to_string(r.origin)},
          {"complete", r.complete()}};
}

Json results_json(const CeilingsReport& report) {
  Json out = Json::array();
  const auto known = [](double v) { return v > 0 ? Json(v) : Json(nullptr); };
  for (const CeilingResult& r : report.results) {
    Json j{{"name", r.spec->name}, {"what", r.spec->what}, {"unit", r.spec->unit}};
    if (r.limit)
      j["stated"] = {{"value", r.limit->value}, {"cell", r.limit->cell}, {"origin", to_string(r.limit->origin)}};
    if (!r.measured()) {
      j["missing"] = r.missing;
      if (r.impossible) j["impossible"] = true;
    } else {
      j["value"] = r.rate;
      j["low"] = r.low;
      j["high"] = r.high;
      j["origin"] = to_string(report.origin);
      if (r.limit) j["ratio"] = r.rate / r.limit->value;
      if (!r.chip_unit.empty()) j["chip"] = {{"value", r.chip_rate}, {"unit", r.chip_unit}};
      for (const auto& [name, value] : r.extra) j[name] = value;
      j["point"] = to_string(r.point);
      j["amount"] = r.amount;
      j["sm_mhz"] = known(r.sm_mhz);
      j["power_w"] = known(r.power_w);
      j["temperature_c"] = known(r.temperature_c);
      j["median_ns"] = r.timing.median_ns;
      j["low_ns"] = r.timing.low_ns;
      j["high_ns"] = r.timing.high_ns;
      j["samples_ns"] = r.timing.times_ns;
      j["discarded"] = r.timing.discarded;
      j["stopped"] = r.timing.stopped;
    }
    j["points"] = Json::array();
    for (const CeilingPoint& p : r.points) {
      Json point{{"point", to_string(p.schedule)}};
      if (p.rejected.empty())
        point["value"] = p.rate;
      else
        point["rejected"] = p.rejected;
      j["points"].push_back(std::move(point));
    }
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace ceilings

std::string ceilings_json(const CeilingsReport& report) {
  Json j{
      {"schema", kCeilingsSchema}, {"device", report.device.name}, {"provenance", ceilings::provenance_json(report)}};
  j["ceilings"] = ceilings::results_json(report);
  j["cells"] = Json::object();
  for (const auto& [name, c] : report.cells)
    j["cells"][name] = {{"value", c.value}, {"unit", c.unit}, {"origin", to_string(c.origin)}, {"source", c.source}};
  j["notes"] = report.notes;
  j["interrupted"] = report.interrupted;
  if (report.lost) j["lost"] = report.lost_because;
  return json_document(j);
}

std::string ceilings_text(const CeilingsReport& report) {
  std::string out =
      fmt::format("{}  {} ({}), driver {}, {} protocol\n\n", report.device.name, report.gpu.name, report.device.arch,
                  report.gpu.driver.empty() ? "unknown" : report.gpu.driver, report.protocol);
  TextTable t({"ceiling", to_string(report.origin), "95 % interval", "unit", "chip", "stated", "ratio", "MHz", "W",
               "origin", "point"});
  for (size_t i : {0, 2, 3, 4, 9, 10}) t.left(i);
  std::vector<const CeilingResult*> missing;
  for (const CeilingResult& r : report.results) {
    if (!r.measured()) {
      missing.push_back(&r);
      continue;
    }
    std::string point = to_string(r.point);
    if (const size_t space = point.find(' '); space != std::string::npos) point = point.substr(space + 1);
    for (const auto& [name, value] : r.extra) point += fmt::format("; {} {:.4g}", name, value);
    t.row({r.spec->what, fmt::format("{:.5g}", r.rate), fmt::format("{:.5g} to {:.5g}", r.low, r.high), r.spec->unit,
           r.chip_unit.empty() ? "" : fmt::format("{:.4g} {}", r.chip_rate, r.chip_unit),
           r.limit ? fmt::format("{:.5g}", r.limit->value) : "-",
           r.limit ? fmt::format("{:.3f}", r.rate / r.limit->value) : "-",
           r.sm_mhz > 0 ? fmt::format("{:.0f}", r.sm_mhz) : "?", r.power_w > 0 ? fmt::format("{:.0f}", r.power_w) : "?",
           to_string(report.origin), point});
  }
  out += t.str();
  if (!missing.empty()) out += "\nNot measured:\n";
  for (const CeilingResult* r : missing) out += fmt::format("  {}: {}\n", r->spec->what, r->missing);
  if (!report.notes.empty()) out += "\n";
  for (const std::string& note : report.notes) out += fmt::format("note: {}\n", note);
  return out;
}

}  // namespace roofgen

#include <fmt/format.h>

#include "base/text_table.h"
#include "roofline/json.h"
#include "tuner/ceilings/profile.h"

namespace roofgen {
namespace {

Json provenance_json(const CeilingsReport& r) {
  Json j{{"gpu", r.gpu.name}};
  ROOFGEN_PUT(j, r.gpu, uuid, pci_bus_id, driver, cuda_version)
  j["power_limit_w"] = known(r.gpu.power_limit_w);
  j["max_sm_mhz"] = known(r.gpu.max_sm_mhz);
  j["arch"] = r.device.arch;
  ROOFGEN_PUT(j, r, compiler, protocol, date, origin)
  j["complete"] = r.complete();
  return j;
}

Json result_json(const CeilingResult& r, Origin origin) {
  Json j{{"name", r.spec->name}, {"what", r.spec->what}, {"unit", r.spec->unit}};
  if (r.limit) ROOFGEN_PUT(j["stated"], (*r.limit), value, cell, origin)
  if (!r.measured()) {
    j["missing"] = r.missing;
    if (r.impossible) j["impossible"] = true;
  } else {
    j["value"] = r.rate;
    ROOFGEN_PUT(j, r, low, high)
    j["origin"] = origin;
    if (r.limit) j["ratio"] = r.rate / r.limit->value;
    if (!r.chip_unit.empty()) j["chip"] = {{"value", r.chip_rate}, {"unit", r.chip_unit}};
    for (const auto& [name, value] : r.extra) j[name] = value;
    j["point"] = to_string(r.point);
    j["amount"] = r.amount;
    j["sm_mhz"] = known(r.sm_mhz);
    j["power_w"] = known(r.power_w);
    j["temperature_c"] = known(r.temperature_c);
    ROOFGEN_PUT(j, r.timing, median_ns, low_ns, high_ns)
    j["samples_ns"] = r.timing.times_ns;
    ROOFGEN_PUT(j, r.timing, discarded, stopped)
  }
  j["points"] = Json::array();
  for (const CeilingPoint& p : r.points) {
    Json& point = j["points"].emplace_back(Json{{"point", to_string(p.schedule)}});
    if (p.rejected.empty())
      point["value"] = p.rate;
    else
      point["rejected"] = p.rejected;
  }
  return j;
}

/// Adds the members that the report and the profile share.
void put_ceilings(Json& j, const CeilingsReport& report) {
  j["provenance"] = provenance_json(report);
  Json& ceilings = j["ceilings"] = Json::array();
  for (const CeilingResult& r : report.results) ceilings.push_back(result_json(r, report.origin));
}

Json device_json(const std::string& device, const std::map<std::string, Cell>& cells) {
  return {{"schema", "roofgen.device/1"}, {"name", device}, {"cells", cells}};
}

}  // namespace

std::string cells_json(const std::string& device, const std::map<std::string, Cell>& cells) {
  return json_document(device_json(device, cells));
}

std::string profile_json(const CeilingsReport& report) {
  Json j = device_json(report.device.name, report.cells);
  put_ceilings(j, report);
  return json_document(j);
}

std::string ceilings_json(const CeilingsReport& report) {
  Json j{{"schema", kCeilingsSchema}, {"device", report.device.name}};
  put_ceilings(j, report);
  ROOFGEN_PUT(j, report, cells, notes, interrupted)
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

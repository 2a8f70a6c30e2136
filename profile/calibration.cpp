// The report of roofgen calibrate as text and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/text_table.h"
#include "profile/calibrate.h"

namespace roofgen::profile {
namespace {

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string change(const std::optional<double>& of) { return of ? fmt::format("{:+.6f}", *of) : "-"; }

Json json_of(const TimeErrors& e) { return {{"mape", e.mean}, {"error_90", e.most_90}}; }

Json json_of(const std::optional<TimeErrors>& e) { return e ? json_of(*e) : Json(); }

}  // namespace

std::string calibration_text(const Calibration& c) {
  size_t kernels = 0;
  for (const FittedFamily& f : c.families) kernels += f.kernels;
  std::string out = fmt::format("device     {}, {}\n", c.device, c.arch);
  out += fmt::format("times      {} kernels, {} {}\n", kernels, c.families.size(),
                     c.families.size() == 1 ? "family" : "families");
  for (const TimesSource& t : c.times) out += fmt::format("           {}: {}\n", t.file, t.measured);
  out += fmt::format(
      "objective  {:.6f} before, {:.6f} fitted: mean of log(modelled / measured)^2, families weighted "
      "equally\n",
      c.objective_before, c.objective_after);
  if (c.scale)
    out += fmt::format("scale      {:.3f} before, {:.3f} fitted: measured / modelled, one factor for all kernels\n",
                       c.scale_before, c.scale_after);
  TextTable scalars({"scalar", "before", "fitted", "value below", "value above", "determined"});
  scalars.left(0).left(5);
  for (const FittedScalar& s : c.scalars)
    scalars.row({s.name, fmt::format("{:g}", s.before), fmt::format("{:g}", s.fitted), change(s.less), change(s.more),
                 s.determined ? "yes" : "not by these kernels"});
  out += "\n" + scalars.str();
  out += fmt::format(
      "\nvalue below, value above: change of the objective there; a scalar is determined if one of its values changes "
      "it by {:g}\n",
      kDetermines);
  TextTable families({"family", "kernels", "MAPE before", "fitted", "held out", "90 % before", "fitted", "held out"});
  families.left(0);
  const auto cells = [](const std::optional<TimeErrors>& e, double TimeErrors::*which) {
    return e ? percent_text((*e).*which) : "-";
  };
  for (const FittedFamily& f : c.families) {
    std::vector<std::string> row{f.name, fmt::format("{}", f.kernels)};
    for (const auto which : {&TimeErrors::mean, &TimeErrors::most_90})
      row.insert(row.end(), {percent_text(f.before.*which), cells(f.after, which), cells(f.held_out, which)});
    families.row(std::move(row));
  }
  out += "\n" + families.str();
  return wrapped(out, 2);
}

std::string calibration_json(const Calibration& c) {
  Json out{{"schema", "roofgen.calibration.1"},
           {"model_version", timing::model_version()},
           {"device", c.device},
           {"arch", c.arch},
           {"objective", {{"before", c.objective_before}, {"fitted", c.objective_after}}}};
  Json& times = out["times"] = Json::array();
  for (const TimesSource& t : c.times) times.push_back({{"file", t.file}, {"measured", t.measured}});
  out["scale"] = c.scale ? Json{{"before", c.scale_before}, {"fitted", c.scale_after}} : Json();
  Json& scalars = out["scalars"] = Json::array();
  for (const FittedScalar& s : c.scalars) {
    Json j;
    ROOFGEN_PUT(j, s, name, before, fitted, determined)
    j["change_below"] = s.less;
    j["change_above"] = s.more;
    scalars.push_back(std::move(j));
  }
  Json& families = out["families"] = Json::array();
  for (const FittedFamily& f : c.families)
    families.push_back({{"name", f.name},
                        {"kernels", f.kernels},
                        {"before", json_of(f.before)},
                        {"fitted", json_of(f.after)},
                        {"held_out", json_of(f.held_out)}});
  out["fitted"] = json_of(c.after);
  out["held_out"] = json_of(c.held_out);
  return json_document(out);
}

}  // namespace roofgen::profile

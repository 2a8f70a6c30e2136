#include "roofline/device_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/suggest.h"
#include "roofline/device_cells.h"

namespace roofgen {
namespace {

constexpr std::string_view kSchema = "roofgen.device/1";
constexpr size_t kShortestSource = 8;  ///< characters; "x" or "NVIDIA" does not identify a source

/// Whole numbers up to 2^53 are exact in a double and fit int64_t.
constexpr double kLargestWhole = 9007199254740992;  // 2^53

/// Vendors publish three or four digits.
constexpr double kPeakTolerance = 0.005;
/// A 2:4-sparse figure is twice the dense one; the threshold is halfway between.
constexpr double kSparseRatio = 1.5;
/// A measurement above this is wrong: it did not count the intended work.
constexpr double kMeasuredSlack = 1.02;

std::vector<std::string> cell_names() {
  std::vector<std::string> out;
  for (const CellSpec& spec : cell_specs()) out.emplace_back(spec.name);
  return out;
}

Result<void> known_members(const Json& object, const std::vector<std::string>& known, const std::string& what,
                           const JsonFile& file) {
  for (const auto& [member, ignored] : object.items())
    if (std::find(known.begin(), known.end(), member) == known.end())
      return Error{Exit::kFailed,
                   fmt::format("{} has an unknown member \"{}\"{}", what, member, did_you_mean(member, known)),
                   file.find(member)};
  return {};
}

Result<std::string> text_member(const Json& object, const char* member, const std::string& what, const Where& where) {
  if (!object.contains(member)) return Error{Exit::kFailed, fmt::format("{} has no \"{}\"", what, member), where};
  if (!object[member].is_string())
    return Error{Exit::kFailed, fmt::format("\"{}\" of {} must be a string", member, what), where};
  return object[member].get<std::string>();
}

Result<Cell> parse_cell(const std::string& name, const Json& json, const JsonFile& file) {
  const Where where = file.find(name);
  const auto fail = [&](std::string message) { return Error{Exit::kFailed, std::move(message), where}; };
  const CellSpec* spec = cell_spec(name);
  if (!spec) return fail(fmt::format("unknown cell \"{}\"{}", name, did_you_mean(name, cell_names())));
  const std::string what = fmt::format("cell \"{}\"", name);
  if (!json.is_object()) return fail(what + " must be an object with value, unit, origin and source");
  ROOFGEN_CHECK(known_members(json, {"value", "unit", "origin", "source"}, what, file));
  if (!json.contains("value") || !json["value"].is_number()) return fail(what + " needs a number \"value\"");
  Cell cell;
  cell.value = json["value"].get<double>();
  ROOFGEN_TRY(cell.unit, text_member(json, "unit", what, where));
  if (cell.unit != spec->unit)
    return fail(fmt::format("{} is in \"{}\"; \"{}\" was expected", what, cell.unit, spec->unit));
  ROOFGEN_TRY(const std::string origin, text_member(json, "origin", what, where));
  if (origin == to_string(Origin::kDatasheet))
    cell.origin = Origin::kDatasheet;
  else if (origin == to_string(Origin::kMeasured))
    cell.origin = Origin::kMeasured;
  else if (origin == to_string(Origin::kModel))
    cell.origin = Origin::kModel;
  else
    return fail(
        fmt::format("{} has the unknown origin \"{}\"; datasheet, measured or model was expected", what, origin));
  ROOFGEN_TRY(cell.source, text_member(json, "source", what, where));
  if (cell.source.size() < kShortestSource)
    return fail(fmt::format("the source \"{}\" of {} is too short to be found again", cell.source, what));
  if (!std::isfinite(cell.value)) return fail(what + " is not a finite number");
  if (cell.value < 0) return fail(fmt::format("{} is {}; it cannot be negative", what, cell.value));
  if (cell.value == 0 && !spec->zero_is_fine) return fail(what + " is 0; it must be above 0");
  if (spec->integer && cell.value > kLargestWhole)
    return fail(fmt::format("{} is {}; the value is too large", what, cell.value));
  if (spec->integer && cell.value != std::floor(cell.value))
    return fail(fmt::format("{} is {}; a whole number was expected", what, cell.value));
  return cell;
}

Result<void> check_peak(const Device& device, const std::string& name, const Cell& cell, const Where& where) {
  const auto fail = [&](std::string message) { return Error{Exit::kFailed, std::move(message), where}; };
  const auto parts = peak_parts(device, name);
  if (!parts)
    return fail(fmt::format("{} is {:g}, but the device has no rate cell to recompute it from", name, cell.value));
  const double ratio = cell.value / parts->tflops();
  const std::string recomputed =
      fmt::format("{:g} SMs x {:g} FLOP/clk x {:g} MHz", parts->sms, parts->flops_per_clk_sm, parts->mhz);
  if (ratio > kSparseRatio)
    return fail(fmt::format(
        "{} is {:g}, {} the {:.4g} of {}; a dense peak was expected, not one with 2:4 sparsity", name, cell.value,
        std::fabs(ratio - 2) < 0.05 ? "twice" : fmt::format("{:.2g} times", ratio), parts->tflops(), recomputed));
  if (cell.origin == Origin::kMeasured) {
    if (ratio > kMeasuredSlack)
      return fail(fmt::format("{} is {:g} measured, above the {:.4g} that {} give at most", name, cell.value,
                              parts->tflops(), recomputed));
  } else if (std::fabs(ratio - 1) > kPeakTolerance) {
    return fail(fmt::format("{} is {:g}, but {} give {:.4g}: more than {:g} % apart", name, cell.value, recomputed,
                            parts->tflops(), 100 * kPeakTolerance));
  }
  return {};
}

/// The fastest tensor rate of a kind ("wgmma_flops_per_clk_bf16" and similar cells); 0 when there is none.
double fastest_rate(const Device& device, const std::string& cell) {
  constexpr std::string_view kRate = "_flops_per_clk_";
  const std::string ending = cell.substr(cell.find(kRate));
  double out = 0;
  for (const auto& [name, c] : device.cells)
    if (name.ends_with(ending)) out = std::max(out, c.value);
  return out;
}

}  // namespace

Result<DeviceFile> parse_device_file(std::string text, std::string path) {
  ROOFGEN_TRY(JsonFile parsed, JsonFile::parse(std::move(text), std::move(path)));
  DeviceFile out{std::move(parsed), {}, {}, {}, {}, {}};
  const JsonFile& file = out.json;
  const Json& root = file.root();
  const auto fail = [&](std::string message, std::string_view at) {
    return Error{Exit::kFailed, std::move(message), file.find(at)};
  };
  if (!root.is_object()) return Error{Exit::kFailed, "a device file must be a JSON object", {file.file(), 1, 1}};
  ROOFGEN_CHECK(known_members(root,
                              {"schema", "name", "title", "extends", "driver_names", "cells", "provenance", "ceilings"},
                              "the device", file));
  const std::string what = "the device file";
  ROOFGEN_TRY(const std::string schema, text_member(root, "schema", what, file.find("schema")));
  if (schema != kSchema) return fail(fmt::format("schema \"{}\"; \"{}\" was expected", schema, kSchema), "schema");
  ROOFGEN_TRY(out.name, text_member(root, "name", what, file.find("name")));
  if (root.contains("title")) {
    ROOFGEN_TRY(out.title, text_member(root, "title", what, file.find("title")));
  }
  if (root.contains("extends")) {
    ROOFGEN_TRY(out.extends, text_member(root, "extends", what, file.find("extends")));
  }
  if (root.contains("driver_names")) {
    if (!root["driver_names"].is_array()) return fail("\"driver_names\" must be a list of strings", "driver_names");
    for (const Json& name : root["driver_names"]) {
      if (!name.is_string()) return fail("\"driver_names\" must be a list of strings", "driver_names");
      out.driver_names.push_back(name.get<std::string>());
    }
  }
  if (!root.contains("cells") || !root["cells"].is_object())
    return fail("a device file needs an object \"cells\"", "cells");
  for (const auto& [name, cell] : root["cells"].items()) {
    ROOFGEN_TRY(out.cells[name], parse_cell(name, cell, file));
  }
  return out;
}

Result<DeviceFile> read_device_file(const DataFiles& files, const std::string& name) {
  const std::string path = "devices/" + name + ".json";
  ROOFGEN_TRY(std::string text, files.load(path));
  ROOFGEN_TRY(DeviceFile out, parse_device_file(std::move(text), files.origin(path)));
  if (out.name != name)
    return Error{Exit::kFailed,
                 fmt::format("the device is named \"{}\"; its file's name, \"{}\", was expected", out.name, name),
                 out.json.find("name")};
  for (const char* member : {"provenance", "ceilings"})
    if (out.json.root().contains(member))
      return Error{Exit::kFailed,
                   fmt::format("\"{}\" belongs into a profile of measurements, not into the catalogue", member),
                   out.json.find(member)};
  return out;
}

Result<void> check_consistency(const Device& device, const std::vector<const JsonFile*>& places) {
  const auto where = [&](const std::string& cell) {
    for (const JsonFile* file : places)
      if (const Where at = file->find(cell); at.line > 0) return at;
    return places.empty() ? Where{} : Where{places.front()->file()};
  };
  const struct {
    const char *low, *high;
  } ordered[] = {{"dram_sustained_gb_s", "dram_gb_s"},
                 {"l2_sustained_gb_s", "l2_gb_s"},
                 {"clock_sustained_mhz", "clock_tensor_mhz"},
                 {"clock_tensor_mhz", "clock_fp32_mhz"},
                 {"smem_per_block", "smem_per_sm"}};
  for (const auto& [low, high] : ordered)
    if (device.has(low) && device.has(high) && device.at(low) > device.at(high))
      return Error{Exit::kFailed,
                   fmt::format("{} is {:g}, above {} of {:g}", low, device.at(low), high, device.at(high)), where(low)};
  for (const auto& [name, cell] : device.cells)
    if (name.starts_with("peak_")) ROOFGEN_CHECK(check_peak(device, name, cell, where(name)));
  return {};
}

Result<void> check_measured(const Device& before, const Device& after, const DeviceFile& profile) {
  const auto bounded = [&](const std::string& name, double limit, const std::string& by) -> Result<void> {
    if (!(profile.cells.at(name).value > kMeasuredSlack * limit)) return {};
    return Error{Exit::kFailed,
                 fmt::format("{} is {:g}, above {} of {:g}", name, profile.cells.at(name).value, by, limit),
                 profile.json.find(name)};
  };
  // The SM clock under load may exceed the clock of the stated tensor peaks, but not the highest SM clock.
  const std::map<std::string, std::string> above = {{"dram_sustained_gb_s", "dram_gb_s"},
                                                    {"l2_sustained_gb_s", "l2_gb_s"},
                                                    {"clock_sustained_mhz", "clock_fp32_mhz"}};
  for (const auto& [name, cell] : profile.cells) {
    const auto high = above.find(name);
    if (high != above.end() && after.has(high->second) && after.cells.at(high->second).origin != Origin::kModel) {
      ROOFGEN_CHECK(bounded(name, after.at(high->second), high->second));
    } else if (name.starts_with("peak_")) {
      ROOFGEN_CHECK(check_peak(before, name, cell, profile.json.find(name)));
    } else if (name.find("_flops_per_clk_") != std::string::npos) {
      if (const double most = fastest_rate(before, name); most > 0)
        ROOFGEN_CHECK(bounded(name, most, "the fastest tensor rate"));
    } else if ((name.ends_with("_lanes") || name == "smem_bytes_per_clk") && before.has(name) &&
               before.cells.at(name).origin == Origin::kDatasheet) {
      ROOFGEN_CHECK(bounded(name, before.at(name), "the datasheet's"));
    }
  }
  return {};
}

}  // namespace roofgen

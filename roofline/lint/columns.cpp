#include "roofline/lint/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/suggest.h"
#include "roofline/work.h"

namespace roofgen {
namespace {

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi;

/// Columns without a stated unit use the first unit of their quantity.
const std::vector<Unit>& units() {
  static const std::vector<Unit> table = {
      {"FLOP", Quantity::kFlops, 1, {"flop", "flops"}},
      {"kFLOP", Quantity::kFlops, 1e3, {"kflop"}},
      {"MFLOP", Quantity::kFlops, 1e6, {"mflop", "mflops"}},
      {"GFLOP", Quantity::kFlops, 1e9, {"gflop", "gflops"}},
      {"TFLOP", Quantity::kFlops, 1e12, {"tflop", "tflops"}},
      {"PFLOP", Quantity::kFlops, 1e15, {"pflop"}},
      {"B", Quantity::kBytes, 1, {"b", "byte", "bytes"}},
      {"kB", Quantity::kBytes, 1e3, {"kb"}},
      {"MB", Quantity::kBytes, 1e6, {"mb"}},
      {"GB", Quantity::kBytes, 1e9, {"gb"}},
      {"TB", Quantity::kBytes, 1e12, {"tb"}},
      {"KiB", Quantity::kBytes, kKi, {"kib"}},
      {"MiB", Quantity::kBytes, kMi, {"mib"}},
      {"GiB", Quantity::kBytes, kGi, {"gib"}},
      {"TiB", Quantity::kBytes, kTi, {"tib"}},
      {"FLOP/byte", Quantity::kIntensity, 1, {"flop/byte", "flops/byte", "flop/b", "flops/b", "op/byte", "ops/byte"}},
      {"TFLOPS", Quantity::kRate, 1, {"tflops", "tflop/s", "tflops/s", "tf", "tf/s", "tops"}},
      {"MFLOPS", Quantity::kRate, 1e-6, {"mflops", "mflop/s"}},
      {"GFLOPS", Quantity::kRate, 1e-3, {"gflops", "gflop/s", "gf/s"}},
      {"PFLOPS", Quantity::kRate, 1e3, {"pflops", "pflop/s", "pf/s"}},
      {"FLOP/s", Quantity::kRate, 1e-12, {"flop/s"}},
      {"GB/s", Quantity::kBandwidth, 1, {"gb/s", "gbps"}},
      {"MB/s", Quantity::kBandwidth, 1e-3, {"mb/s"}},
      {"TB/s", Quantity::kBandwidth, 1e3, {"tb/s", "tbps"}},
      {"GiB/s", Quantity::kBandwidth, kGi / 1e9, {"gib/s"}},
      {"TiB/s", Quantity::kBandwidth, kTi / 1e9, {"tib/s"}},
      {"us", Quantity::kTime, 1, {"us", "\xC2\xB5s", "\xCE\xBCs"}},
      {"ns", Quantity::kTime, 1e-3, {"ns"}},
      {"ms", Quantity::kTime, 1e3, {"ms"}},
      {"s", Quantity::kTime, 1e6, {"s"}},
  };
  return table;
}

bool has_name(const Unit& u, const std::string& name) {
  return std::find(u.names.begin(), u.names.end(), name) != u.names.end();
}

const Unit* find_unit(const std::string& name, Quantity quantity) {
  for (const Unit& u : units())
    if (u.quantity == quantity && has_name(u, name)) return &u;
  return nullptr;
}

const Unit* default_unit(Quantity quantity) {
  for (const Unit& u : units())
    if (u.quantity == quantity) return &u;
  return nullptr;
}

bool is_unit(const std::string& name) {
  return std::any_of(units().begin(), units().end(), [&](const Unit& u) { return has_name(u, name); });
}

struct Known {
  const char* key;
  Quantity quantity;
  std::vector<const char*> names;
};

const std::vector<Known>& known_columns() {
  static const std::vector<Known> table = {
      {"name", Quantity::kText, {"kernel", "name", "operator", "workload", "layer", "label"}},
      {"op", Quantity::kText, {"op", "operation"}},
      {"device", Quantity::kText, {"device", "gpu", "accelerator", "hardware"}},
      {"dtype", Quantity::kText, {"dtype", "precision", "data_type"}},
      {"accumulate", Quantity::kText, {"acc", "accumulate", "accumulator", "acc_dtype"}},
      {"ceiling_dtype", Quantity::kText, {"ceiling_dtype", "peak_dtype", "ridge_dtype"}},
      {"shape", Quantity::kText, {"shape", "shapes"}},
      {"notes", Quantity::kText, {"notes", "note", "comment", "comments", "description", "remarks"}},
      {"bound", Quantity::kText, {"bound", "regime", "bottleneck", "limiter"}},
      {"origin", Quantity::kText, {"origin", "provenance"}},
      {"inputs", Quantity::kText, {"inputs", "input_data", "data"}},
      {"cache", Quantity::kText, {"cache", "cache_state"}},
      {"phase", Quantity::kText, {"phase", "stage"}},
      {"fused", Quantity::kYesNo, {"fused", "fusion"}},
      {"flops", Quantity::kFlops, {"flops", "flop", "work", "operations"}},
      {"bytes", Quantity::kBytes, {"bytes", "traffic", "dram_bytes", "memory_traffic", "dram_traffic"}},
      {"ai", Quantity::kIntensity, {"ai", "arithmetic_intensity", "intensity", "operational_intensity", "oi"}},
      {"ridge", Quantity::kIntensity, {"ridge", "ridge_point", "machine_balance", "balance"}},
      {"attainable", Quantity::kRate, {"attainable", "attainable_performance", "roof", "roofline"}},
      {"achieved", Quantity::kRate, {"achieved", "performance", "perf", "throughput", "tflops", "gflops"}},
      {"peak", Quantity::kRate, {"peak", "peak_compute", "peak_performance", "peak_flops", "compute"}},
      {"bandwidth",
       Quantity::kBandwidth,
       {"bandwidth", "bw", "memory_bandwidth", "memory_bw", "mem_bw", "hbm_bw", "dram_bw", "peak_bandwidth", "peak_bw",
        "dram_bandwidth", "hbm_bandwidth"}},
      {"time", Quantity::kTime, {"time", "latency", "duration", "runtime"}},
      {"memory", Quantity::kBytes, {"memory", "footprint", "memory_footprint"}},
      {"weights", Quantity::kBytes, {"weights", "weight_bytes"}},
      {"kv_cache", Quantity::kBytes, {"kv_cache", "kv_bytes", "cache_per_sequence"}},
      {"launches", Quantity::kCount, {"launches", "kernel_launches"}},
      {"ctas", Quantity::kCount, {"ctas", "blocks", "thread_blocks", "grid"}},
      {"rank", Quantity::kCount, {"rank"}},
      {"hidden", Quantity::kCount, {"hidden", "d_model", "model_dim", "hidden_size"}},
      {"layers", Quantity::kCount, {"layers", "num_layers"}},
  };
  return table;
}

/// Dimensions, and how tables write them.
const std::map<std::string, std::vector<const char*>>& dim_names() {
  static const std::map<std::string, std::vector<const char*>> table = {
      {"L", {"seq", "seq_len", "sequence", "sequence_length", "l"}},
      {"M", {"m"}},
      {"N", {"n"}},
      {"K", {"k"}},
      {"batch", {"batch_size", "b"}},
      {"d", {"head_dim"}},
      {"kv_len", {"kv", "kv_length"}},
      {"heads", {"num_heads"}},
      {"rows", {"tokens"}},
      {"elements", {"n_elements"}}};
  return table;
}

/// "Arithmetic Intensity" -> "arithmetic_intensity".
std::string normalised(const std::string& text) {
  std::string out;
  for (char c : lower(text)) {
    const bool gap = c == ' ' || c == '-' || c == '_' || c == '.' || c == '\n' || c == '\t';
    if (!gap)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

/// A unit as a header writes it: "TFLOP/s", "gb_s", "FLOP / byte".
std::string unit_name(std::string text) {
  text = lower(std::move(text));
  std::erase(text, ' ');
  std::replace(text.begin(), text.end(), '_', '/');
  return text;
}

const Known* find_known(const std::string& name) {
  for (const Known& k : known_columns())
    if (std::find(k.names.begin(), k.names.end(), name) != k.names.end()) return &k;
  return nullptr;
}

Column column_of(const Known& known) { return {known.key, "", known.quantity, default_unit(known.quantity)}; }

/// The column for "ai", "peak_fp16" or a dimension; none for an unknown name.
std::optional<Column> named(const std::string& name, const std::vector<std::string>& dims,
                            const std::vector<std::string>& flags) {
  if (const Known* known = find_known(name)) return column_of(*known);
  constexpr std::string_view kPeak = "peak_";
  if (name.starts_with(kPeak) && find_number_format(name.substr(kPeak.size())))
    return Column{"peak", name.substr(kPeak.size()), Quantity::kRate, default_unit(Quantity::kRate)};
  if (name.ends_with("_dtype"))
    return Column{"operand_dtype", name.substr(0, name.size() - 6), Quantity::kText, nullptr};
  std::string wanted = name;
  for (const auto& [dim, synonyms] : dim_names())
    if (std::find(synonyms.begin(), synonyms.end(), name) != synonyms.end()) wanted = dim;
  for (const std::string& d : dims)
    if (lower(d) == lower(wanted)) return Column{"dim", wanted, Quantity::kCount, nullptr};
  for (const std::string& f : flags)
    if (f == name) return Column{"flag", f, Quantity::kYesNo, nullptr};
  return {};
}

}  // namespace

const char* expected(Quantity quantity) {
  switch (quantity) {
    case Quantity::kText: return "text";
    case Quantity::kCount: return "a number without unit";
    case Quantity::kFlops: return "FLOP, MFLOP, GFLOP or TFLOP";
    case Quantity::kBytes: return "B, kB, MB, GB or KiB, MiB, GiB";
    case Quantity::kIntensity: return "FLOP/byte";
    case Quantity::kRate: return "GFLOPS, TFLOPS or PFLOPS";
    case Quantity::kBandwidth: return "GB/s or TB/s";
    case Quantity::kTime: return "ns, us, ms or s";
    case Quantity::kYesNo: return "yes or no";
  }
  return "";
}

std::vector<std::string> column_names() {
  std::vector<std::string> out;
  for (const Known& k : known_columns()) out.insert(out.end(), k.names.begin(), k.names.end());
  return out;
}

Result<Column> read_column(const TableCell& header, const std::string& file, const std::vector<std::string>& dims,
                           const std::vector<std::string>& flags) {
  std::string text = header.text, inside;
  const size_t open = text.find_first_of("([");
  if (open != std::string::npos) {
    const size_t close = text.find_first_of(")]", open);
    inside = text.substr(open + 1, close == std::string::npos ? std::string::npos : close - open - 1);
    text.resize(open);
  }
  std::string name = normalised(text), unit = unit_name(inside);
  std::optional<Column> column = named(name, dims, flags);
  // "bytes_mb", "bandwidth_gb_s": the longest prefix of the name that leaves a known unit.
  for (size_t at = name.rfind('_'); !column && at != std::string::npos && at > 0; at = name.rfind('_', at - 1)) {
    const std::string rest = unit_name(name.substr(at + 1));
    if (!is_unit(rest)) continue;
    column = named(name.substr(0, at), dims, flags);
    if (column) unit = rest;
  }
  if (!column) return Column{};
  // The names "tflops" and "gflops" are also their units.
  if (unit.empty() && column->key == "achieved" && find_unit(name, Quantity::kRate)) unit = name;
  if (unit.empty() || column->quantity == Quantity::kText) return *column;
  if (const Unit* found = find_unit(unit, column->quantity))
    column->unit = found;
  else if (column->key == "peak" && find_number_format(unit))
    column->detail = unit;
  else if (is_unit(unit))
    return cell_error(header, file,
                      fmt::format("column \"{}\" is in {}; {} was expected", header.text,
                                  inside.empty() ? unit : inside, expected(column->quantity)));
  return *column;
}

bool not_stated(const std::string& text) {
  const std::string s = lower(text);
  for (const char* word :
       {"", "-", "--", "\xE2\x80\x93", "\xE2\x80\x94", "?", "n/a", "na", "none", "varies", "variable"})
    if (s == word) return true;
  return false;
}

Result<std::optional<StatedNumber>> read_number(const TableCell& cell, const std::string& file, const Column& column) {
  if (not_stated(cell.text)) return std::optional<StatedNumber>();
  std::string_view text = cell.text;
  for (const char* about : {"~", "\xE2\x89\x88"})
    if (text.starts_with(about)) text.remove_prefix(std::string_view(about).size());
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (text.starts_with("+")) text.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string wanted =
      column.quantity == Quantity::kCount ? "a number" : fmt::format("a number ({})", expected(column.quantity));
  if (status == std::errc::result_out_of_range)
    return cell_error(cell, file, fmt::format("\"{}\" is out of range", cell.text));
  if (status != std::errc())
    return cell_error(cell, file,
                      fmt::format("\"{}\" is not a number; {} was expected, or nothing", cell.text, wanted));
  if (!std::isfinite(value))
    return cell_error(cell, file, fmt::format("\"{}\"; a finite number was expected, or nothing", cell.text));
  if (value < 0 || std::signbit(value))
    return cell_error(cell, file, fmt::format("\"{}\" is negative; {} from 0 on was expected", cell.text, wanted));
  std::string rest(end, text.data() + text.size());
  if (!rest.empty() && rest.front() == ',') {
    const bool thousands = rest.size() >= 4 &&
                           std::all_of(rest.begin() + 1, rest.begin() + 4, [](char c) { return c >= '0' && c <= '9'; });
    return cell_error(cell, file,
                      fmt::format("\"{}\" has a comma; a number with a decimal point was expected{}", cell.text,
                                  thousands ? ", without thousands separators" : ""));
  }
  StatedNumber out{value, column.unit, false};
  const std::string name = unit_name(rest);
  if (!name.empty()) {
    if (const Unit* unit = find_unit(name, column.quantity)) {
      out.restated = column.unit && unit->scale != column.unit->scale;
      out.unit = unit;
    } else if (is_unit(name)) {
      return cell_error(
          cell, file,
          fmt::format("\"{}\" is another kind of number; {} was expected", cell.text, expected(column.quantity)));
    } else {
      return cell_error(cell, file,
                        fmt::format("\"{}\" is not a number; {} was expected, or nothing", cell.text, wanted));
    }
  }
  if (out.unit) out.value *= out.unit->scale;
  if (!std::isfinite(out.value)) return cell_error(cell, file, fmt::format("\"{}\" is out of range", cell.text));
  return std::optional(out);
}

}  // namespace roofgen

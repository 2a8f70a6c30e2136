// The metrics to request from ncu, and the parser of its output. Sources of the names: `ncu --query-metrics` and
// NVIDIA's kernel profiling guide. One sm__ops_path_tensor_* operation is one FLOP (2 x M x N x K per product)
// according to NVIDIA's forum answers; a counted 1024^3 product confirms it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "base/csv.h"
#include "tuner/evidence/counters.h"

namespace roofgen {
namespace {

constexpr double kSectorBytes = 32;
/// 2 x 16 x 8 x 16: mma.sync.m16n8k16, the only 16-bit shape our templates issue, is one tensor instruction
/// on sm_80 to sm_89.
constexpr double kFlopsPerTensorInstruction = 4096;

struct Term {
  const char* metric;
  double weight = 1;
};

/// A quantity and the ways to compute it, best first; each way is a weighted sum of metrics.
struct Counter {
  std::optional<double> CountedWork::*slot;
  std::vector<std::vector<Term>> ways;
  size_t from_instructions = SIZE_MAX;  ///< the way that counts instructions instead of operations
};

int compute_capability(const std::string& arch) {
  int cc = 0;
  if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), cc);
  return cc;
}

Counter tensor_counter(const std::string& arch, DType dtype) {
  Counter c{&CountedWork::tensor_flops, {}};
  switch (dtype) {
    case DType::kBf16: c.ways = {{{"sm__ops_path_tensor_src_bf16_dst_fp32.sum"}}}; break;
    case DType::kFp16:
      c.ways = {{{"sm__ops_path_tensor_src_fp16_dst_fp32.sum"}}, {{"sm__ops_path_tensor_src_fp16.sum"}}};
      break;
    case DType::kFp32:
    case DType::kTf32: c.ways = {{{"sm__ops_path_tensor_src_tf32_dst_fp32.sum"}}}; break;
    case DType::kFp8:
      c.ways = {{{"sm__ops_path_tensor_src_fp8_dst_fp32.sum"}}, {{"sm__ops_path_tensor_src_fp8.sum"}}};
      break;
    case DType::kInt8:
    case DType::kInt32: c.ways = {{{"sm__ops_path_tensor_src_int8.sum"}}}; break;
  }
  const int cc = compute_capability(arch);
  if (cc >= 80 && cc < 90 && (dtype == DType::kBf16 || dtype == DType::kFp16)) {
    c.from_instructions = c.ways.size();
    c.ways.push_back({{"sm__inst_executed_pipe_tensor.sum", kFlopsPerTensorInstruction}});
  }
  return c;
}

std::vector<Counter> counters(const std::string& arch, DType dtype) {
  return {
      {&CountedWork::time_ns, {{{"gpu__time_duration.sum"}}}},
      {&CountedWork::dram_read_bytes, {{{"dram__bytes_read.sum"}}, {{"dram__bytes_op_read.sum"}}}},
      {&CountedWork::dram_write_bytes, {{{"dram__bytes_write.sum"}}, {{"dram__bytes_op_write.sum"}}}},
      {&CountedWork::l2_bytes, {{{"lts__t_bytes.sum"}}}},
      {&CountedWork::l2_request_bytes, {{{"lts__t_sectors_srcunit_tex.sum", kSectorBytes}}}},
      {&CountedWork::l1_bytes, {{{"l1tex__t_bytes.sum"}}}},
      tensor_counter(arch, dtype),
      {&CountedWork::fp32_flops,
       {{{"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"},
         {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"},
         {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2}}}},
      {&CountedWork::registers, {{{"launch__registers_per_thread"}}}},
      {&CountedWork::warps_active_pct, {{{"sm__warps_active.avg.pct_of_peak_sustained_active"}}}},
      {&CountedWork::spill_instructions,
       {{{"smsp__inst_executed_op_local_ld.sum"}, {"smsp__inst_executed_op_local_st.sum"}},
        {{"smsp__sass_inst_executed_op_local_ld.sum"}, {"smsp__sass_inst_executed_op_local_st.sum"}}}},
      {&CountedWork::sm_cycles, {{{"sm__cycles_elapsed.max"}}}},
  };
}

std::string base_of(const std::string& metric) { return metric.substr(0, metric.find('.')); }

/// The factor from a unit of ncu to bytes, ns or plain counts; nullopt: unknown. ncu versions spell units differently.
std::optional<double> unit_scale(const std::string& unit) {
  static const std::pair<double, std::vector<std::string_view>> kUnits[] = {
      {1, {"", "byte", "ns", "nsecond", "sector", "inst", "%", "cycle", "warp", "register/thread", "byte/block"}},
      {1e3, {"Kbyte", "us", "usecond", "Kbyte/block"}},
      {1e6, {"Mbyte", "ms", "msecond"}},
      {1e9, {"Gbyte", "s", "second"}},
      {1e12, {"Tbyte"}}};
  for (const auto& [scale, names] : kUnits)
    if (std::find(names.begin(), names.end(), unit) != names.end()) return scale;
  return std::nullopt;
}

/// The CSV among the other output of ncu and the program: from its header to the last line that begins with a quote.
/// Empty: none.
std::string table_of(const std::string& text) {
  const std::string header = "\"ID\",";
  size_t at = text.starts_with(header) ? 0 : text.find("\n" + header);
  if (at == std::string::npos) return "";
  if (text[at] == '\n') ++at;
  std::string out;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (text[at] == '"') out.append(text, at, end - at).push_back('\n');
    at = end + 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> counter_metrics(const std::string& arch, DType dtype, const std::vector<std::string>& known) {
  const std::set<std::string> names(known.begin(), known.end());
  // Launch properties are not counters: no list has them.
  const auto there = [&](const Term& t) {
    return names.contains(base_of(t.metric)) || std::string_view(t.metric).starts_with("launch__");
  };
  std::vector<std::string> out;
  for (const Counter& c : counters(arch, dtype))
    for (const std::vector<Term>& way : c.ways) {
      if (!known.empty() && !std::all_of(way.begin(), way.end(), there)) continue;
      for (const Term& t : way) out.emplace_back(t.metric);
      if (!known.empty()) break;
    }
  return out;
}

std::vector<std::string> parse_metric_names(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string word = text.substr(at, std::min(text.find_first_of(" \t\r\n", at), end) - at);
    if (word.find("__") != std::string::npos &&
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos)
      out.push_back(word);
    at = end + 1;
  }
  return out;
}

std::optional<double> parse_counter(const std::string& text, const std::string& unit) {
  const std::optional<double> scale = unit_scale(unit);
  if (!scale || text.empty()) return std::nullopt;
  // Commas separate groups of three digits. Any other comma is a decimal comma of another locale.
  std::string plain;
  const size_t point = std::min(text.find_first_of(".eE"), text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      plain.push_back(text[i]);
      continue;
    }
    if (i == 0 || i >= point || (point - i) % 4 != 0) return std::nullopt;
  }
  if (plain.size() != text.size()) {
    const size_t first = text.find(',');
    if (first > 3) return std::nullopt;
    for (size_t i = first; i < point; ++i)
      if ((text[i] == ',') != ((point - i) % 4 == 0)) return std::nullopt;
  }
  double value = 0;
  const auto [end, failed] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (failed != std::errc() || end != plain.data() + plain.size() || !(value >= 0) || value > 1e300)
    return std::nullopt;
  return value * *scale;
}

Result<std::vector<CountedWork>> parse_counters(const std::string& text, const std::string& arch, DType dtype) {
  const std::string csv = table_of(text);
  if (csv.empty()) return Error{Exit::kFailed, "ncu printed no table"};
  auto tables = read_tables(csv, "ncu");
  if (!tables) return Error{Exit::kFailed, "ncu's table cannot be read: " + tables.error().message};
  if (tables->empty()) return Error{Exit::kFailed, "ncu printed no table"};
  const CellTable& table = tables->front();
  if (!table.errors.empty()) return Error{Exit::kFailed, "ncu's table cannot be read: " + table.errors.front().message};
  std::map<std::string, size_t> column;
  for (size_t i = 0; i < table.header.size(); ++i) column.emplace(table.header[i].text, i);
  if (!column.contains("Kernel Name")) return Error{Exit::kFailed, "ncu's table has no column \"Kernel Name\""};
  std::vector<CountedWork> out;
  const TableRow* units = nullptr;
  for (const TableRow& row : table.rows) {
    // The row below the header has no ID: it holds the units.
    if (row[0].text.empty()) {
      units = &row;
      continue;
    }
    CountedWork work;
    work.entry = row[column["Kernel Name"]].text;
    for (const Counter& c : counters(arch, dtype))
      for (size_t way = 0; way < c.ways.size() && !(work.*c.slot); ++way) {
        double sum = 0;
        bool all = true;
        for (const Term& t : c.ways[way]) {
          const auto at = column.find(t.metric);
          const std::optional<double> value =
              at == column.end() ? std::nullopt
                                 : parse_counter(row[at->second].text, units ? (*units)[at->second].text : "");
          all = all && value;
          sum += t.weight * value.value_or(0);
        }
        if (!all) continue;
        work.*c.slot = sum;
        if (way == c.from_instructions) work.tensor_flops_from_instructions = true;
      }
    out.push_back(std::move(work));
  }
  if (out.empty()) return Error{Exit::kFailed, "ncu's table has no kernels"};
  return out;
}

}  // namespace roofgen

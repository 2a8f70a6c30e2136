// Rules about work: FLOPs, bytes and intensity against the operator's formula.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/units.h"
#include "roofline/lint/rules.h"

namespace roofgen::lint_rules {
namespace {

/// Bytes as stated, or FLOPs / AI.
std::optional<double> bytes_of(const Claim& c) {
  if (c.bytes) return c.bytes;
  const double flops = c.flops ? *c.flops : c.work ? c.work->flops() : 0;
  if (c.ai && *c.ai > 0 && flops > 0) return flops / *c.ai;
  return {};
}

/// A write or read of a tensor that one kernel leaves in memory for a later kernel.
struct Crossing {
  std::string text;  ///< "S written"
  double bytes;
};
std::vector<Crossing> crossings(const OpWork& w) {
  std::vector<Crossing> out;
  for (size_t i = 0; i < w.kernels.size(); ++i)
    for (const OperandWork& o : w.kernels[i].operands)
      for (size_t k = i + 1; o.write && k < w.kernels.size(); ++k) {
        const auto& later = w.kernels[k].operands;
        const auto read = std::find_if(later.begin(), later.end(),
                                       [&](const OperandWork& x) { return !x.write && x.name == o.name; });
        if (read == later.end()) continue;
        out.push_back({o.name + " written", o.bytes()});
        out.push_back({o.name + " read", read->bytes()});
        break;
      }
  return out;
}

/// The power of 1000 within `tolerance` of the ratio; 1 when there is none.
double prefix_slip(double ratio, double tolerance) {
  for (double factor : {1e3, 1e6, 1e9, 1e12})
    for (double f : {factor, 1 / factor})
      if (near(ratio, f, tolerance)) return f;
  return 1;
}

/// "a thousand times less than", "1e+06 times more than".
std::string times_text(double ratio) {
  const double size = ratio < 1 ? 1 / ratio : ratio;
  const std::string count =
      near(size, 1000, 0.2) ? "a thousand" : number_text(size < 100 ? std::round(size * 10) / 10 : std::round(size));
  return fmt::format("{} times {} than", count, ratio < 1 ? "less" : "more");
}

/// A unit of bytes with a binary prefix and its decimal neighbour.
struct Prefix {
  double binary, decimal;
  const char* binary_name;
  const char* decimal_name;
};
constexpr std::array<Prefix, 4> kPrefixes = {
    {{0x1p10, 1e3, "KiB", "kB"}, {0x1p20, 1e6, "MiB", "MB"}, {0x1p30, 1e9, "GiB", "GB"}, {0x1p40, 1e12, "TiB", "TB"}}};

/// Bytes stated in GiB that are right as GB, or the reverse. The tolerance is 2 %: tables round to two or more digits.
void binary_prefix(const Claim& c, double right, const char* from, Findings& out) {
  const double stated = *c.bytes;
  for (const Prefix& p : kPrefixes) {
    const bool is_binary = c.bytes_unit == p.binary, is_decimal = c.bytes_unit == p.decimal;
    if (!is_binary && !is_decimal) continue;
    const double digits = stated / c.bytes_unit, other = digits * (is_binary ? p.decimal : p.binary);
    const double miss = std::fabs(stated / right - 1), other_miss = std::fabs(other / right - 1);
    if (miss < 0.02 || other_miss > 0.02 || miss < 2 * other_miss) continue;
    out.add("bytes", fmt::format("{} {} differs from {}: {} {} = {} {}; the number fits {}", number_text(digits),
                                 is_binary ? p.binary_name : p.decimal_name, from, number_text(right / p.decimal),
                                 p.decimal_name, number_text(right / p.binary), p.binary_name,
                                 is_binary ? p.decimal_name : p.binary_name));
    return;
  }
}

/// "AI 1.25 x 8000 GB/s = 10 TFLOPS", or the ceiling.
std::string roof_text(const Claim& c, double roof) {
  const auto ai = ai_of(c), bandwidth = bandwidth_of(c);
  if (ai && bandwidth && near(roof, *ai * *bandwidth / 1000, 0.01))
    return fmt::format("AI {} x {} GB/s = {} TFLOPS", number_text(*ai), number_text(*bandwidth), number_text(roof));
  return fmt::format("the ceiling of {} TFLOPS", number_text(roof));
}

/// A rate more than 100 times above the roof at the row's own intensity or, unless `may_be_slow`, as far below.
bool rate_slip(const Claim& c, const char* field, double stated, bool may_be_slow, const Restated* restated,
               Findings& out) {
  const auto roof = roof_at(c);
  if (!roof || *roof <= 0 || !ai_of(c) || stated <= 0) return false;
  const double ratio = stated / *roof;
  if (ratio <= 100 && (may_be_slow || ratio >= 0.01)) return false;
  out.add(field, fmt::format("{} is {} {}", restated ? restated->stated : number_text(stated) + " TFLOPS",
                             times_text(ratio), roof_text(c, *roof)));
  return true;
}

/// Bytes that leave out a pass over an intermediate tensor.
void missing_pass(const Claim& c, Findings& out) {
  const std::vector<Crossing> all = crossings(*c.work);
  if (all.empty()) return;
  const double right = c.work->dram_bytes(), stated = bytes_of(c).value_or(right);
  const auto least =
      std::min_element(all.begin(), all.end(), [](const Crossing& a, const Crossing& b) { return a.bytes < b.bytes; });
  if (right - stated < 0.9 * least->bytes || prefix_slip(stated / right, 0.1) != 1) return;
  std::string passes;
  for (const Crossing& x : all)
    passes += fmt::format("{}{} {}", passes.empty() ? "" : ", ", x.text, bytes_text(x.bytes));
  const std::string what =
      c.bytes ? bytes_text(stated) : fmt::format("AI {} means {}", number_text(*c.ai), bytes_text(stated));
  out.add(c.bytes ? "bytes" : "ai",
          fmt::format("{}; {} ({}) moves {}, AI {}: {} are missing, and each of these passes counts: {}", what,
                      c.work->op, c.work->form, bytes_text(right), number_text(c.work->arithmetic_intensity()),
                      bytes_text(right - stated), passes));
}

/// Up to twice the bytes have other causes: operands of another width (R03), a mask, rounding.
constexpr double kTooMany = 2.1;

/// More bytes than the operands have. Measured bytes may exceed the formula, so only bytes from formulas are checked,
/// and only for matrix work, where all FLOPs count alike.
void too_many_bytes(const Claim& c, Findings& out) {
  const bool may_be_counted = c.origin.empty() && (c.achieved_tflops || c.time_us);
  if (may_be_counted || c.origin == "measured" || c.origin == "counter" || c.origin == "simulated") return;
  if (c.traffic_open || !c.work->uses_matrix_units()) return;
  const double right = c.work->dram_bytes(), right_ai = c.work->arithmetic_intensity();
  // Without a stated dtype the formula assumes 16 bits; FP32 would double the bytes.
  const double most = kTooMany * (c.dtype.empty() ? 2 : 1);
  const bool bytes = c.bytes && *c.bytes > most * right;
  if (!bytes && !(c.ai && *c.ai > 0 && right_ai > most * *c.ai)) return;
  const double ratio = bytes ? *c.bytes / right : right_ai / *c.ai;
  if (prefix_slip(ratio, 0.1) != 1) return;
  out.add(bytes ? "bytes" : "ai",
          fmt::format("{}; {} ({}) moves {}, AI {}: {:.1f} times more bytes than the operator has, each operand once",
                      bytes ? bytes_text(*c.bytes) : "AI " + number_text(*c.ai), c.work->op, c.work->form,
                      bytes_text(right), number_text(right_ai), ratio));
}

}  // namespace

void other_traffic(const Claim& c, Findings& out) {
  if (!c.work || c.work->dram_bytes() <= 0 || (!c.bytes && !c.ai)) return;
  missing_pass(c, out);
  too_many_bytes(c, out);
}

void unit_slip(const Claim& c, Findings& out) {
  const auto restated = [&](const char* field) -> const Restated* {
    const auto found =
        std::find_if(c.restated.begin(), c.restated.end(), [&](const Restated& r) { return r.field == field; });
    return found == c.restated.end() ? nullptr : &*found;
  };
  // A slow kernel is not a unit slip; a ceiling a hundred times below its own roof is.
  const bool attainable =
      c.attainable_tflops && rate_slip(c, "attainable", *c.attainable_tflops, false, restated("attainable"), out);
  const bool achieved =
      c.achieved_tflops && rate_slip(c, "achieved", *c.achieved_tflops, true, restated("achieved"), out);
  for (const Restated& r : c.restated) {
    if ((r.field == "attainable" && attainable) || (r.field == "achieved" && achieved)) continue;
    out.add(r.field.c_str(),
            fmt::format("{} in a column of {}: roofgen uses the cell's unit, readers may use the column's", r.stated,
                        r.column_unit));
  }
  std::optional<double> right;
  const char* from = "";
  if (c.bytes && c.flops && c.ai && *c.ai > 0) {
    right = *c.flops / *c.ai;
    from = "FLOPs / AI";
  } else if (c.bytes && c.work && c.work->dram_bytes() > 0) {
    right = c.work->dram_bytes();
    from = "the formula";
  }
  if (!right || *right <= 0 || *c.bytes <= 0) return;
  if (const double slip = prefix_slip(*c.bytes / *right, 0.1); slip != 1)
    out.add("bytes", fmt::format("{} is {} {}, which {} gives", bytes_text(*c.bytes), times_text(slip),
                                 bytes_text(*right), from));
  else
    binary_prefix(c, *right, from, out);
}

void above_limit(const Claim& c, Findings& out) {
  if (!c.ai) return;
  const std::optional<double> limit = c.work ? c.work->ai_limit : c.ai_limit;
  const std::string of = c.work ? c.work->ai_limit_of : c.ai_limit_of;
  // Rounding to two digits adds up to 2 %.
  if (limit && *c.ai > 1.02 * *limit) {
    std::string text = fmt::format("AI {} is above {}, the most this shape reaches as {} grows", number_text(*c.ai),
                                   number_text(*limit), of);
    if (const auto roof = ceiling_of(c)) {
      const double at = ridge(*c.device, *roof, RoofSet::kDatasheet);
      if (*limit < at)
        text +=
            fmt::format("; it never reaches the ridge of {} ({}) and stays memory-bound", number_text(at), roof->name);
    }
    out.add("ai", text);
    return;
  }
  // Without a stated dtype the formula assumes 16 bits; 4-bit operands would need a quarter of the bytes.
  const double narrower = c.dtype.empty() ? 4 : 1;
  if (c.work && c.work->dram_bytes() > 0 && *c.ai > 1.25 * narrower * c.work->arithmetic_intensity())
    out.add("ai", fmt::format("AI {} is above {}, which {} FLOPs and {} of this shape give", number_text(*c.ai),
                              number_text(c.work->arithmetic_intensity()), count_text(c.work->flops()),
                              bytes_text(c.work->dram_bytes())));
}

void shared_cache(const Claim& c, Findings& out) {
  if (!c.ai || c.phase != "decode") return;
  if (c.work && c.own_cache) {
    const auto batch = c.work->dims.find("batch");
    if (batch == c.work->dims.end() || batch->second <= 1 || *c.ai <= 1.25 * c.work->arithmetic_intensity()) return;
    out.add("ai", fmt::format("AI {} at batch {}: each sequence reads its own cache, so that the intensity of "
                              "decode attention is {} at any batch",
                              number_text(*c.ai), batch->second, number_text(c.work->arithmetic_intensity())));
    return;
  }
  const auto bytes = decode_bytes(c);
  if (!bytes || !c.batch) return;
  const double right = decode_ai(*c.batch, bytes->weights, bytes->cache, bytes->element_bytes);
  const double limit = (bytes->weights + bytes->cache) * 2 / bytes->element_bytes / bytes->cache;
  if (!(*c.ai > 1.25 * right)) return;
  out.add("ai", fmt::format("AI {} at batch {}: the weights are shared by the batch, the cache is not; it is {}, "
                            "and no batch goes beyond {}",
                            number_text(*c.ai), number_text(*c.batch), number_text(right), number_text(limit)));
}

void shared_cache_in_table(const std::vector<Claim>& claims, TableFindings& out) {
  // Rows of the same decode attention, by batch: the intensity must not grow with the batch.
  using Key = std::tuple<std::string, std::string, std::optional<double>, std::map<std::string, int64_t>>;
  std::map<Key, std::vector<size_t>> groups;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& c = claims[i];
    if (c.phase != "decode" || !c.own_cache || !c.ai || !c.batch) continue;
    std::map<std::string, int64_t> dims = c.dims;
    std::erase_if(dims, [](const auto& d) { return d.first == "batch"; });
    groups[{c.name, c.dtype, c.kv_len, std::move(dims)}].push_back(i);
  }
  for (auto& [key, rows] : groups) {
    std::stable_sort(rows.begin(), rows.end(), [&](size_t a, size_t b) { return *claims[a].batch < *claims[b].batch; });
    // The lowest intensity at a smaller batch. Rows of equal batch are not compared.
    const Claim *least = nullptr, *least_here = nullptr;
    double batch = 0;
    for (const size_t i : rows) {
      const Claim& big = claims[i];
      if (*big.batch > batch) {
        if (least_here && (!least || *least_here->ai < *least->ai)) least = least_here;
        least_here = nullptr;
        batch = *big.batch;
      }
      if (!least_here || *big.ai < *least_here->ai) least_here = &big;
      if (!least || big.work || *big.ai <= 1.25 * *least->ai) continue;
      out.add(i, "ai",
              fmt::format("AI {} at batch {}, but {} at batch {}: each sequence reads its own cache, so that "
                          "the intensity of decode attention does not grow with the batch",
                          number_text(*big.ai), number_text(*big.batch), number_text(*least->ai),
                          number_text(*least->batch)));
    }
  }
}

void does_not_fit(const Claim& c, Findings& out) {
  if (!c.device) return;
  const double memory = c.device->at("memory_bytes");
  double need = c.memory_bytes.value_or(0);
  std::string of = "it";
  if (!c.memory_bytes) {
    const auto bytes = c.layers || (c.weight_bytes && c.kv_bytes) ? decode_bytes(c) : std::nullopt;
    if (bytes && c.batch) {
      need = bytes->weights + *c.batch * bytes->cache;
      of = fmt::format("{} of weights and {} sequences of {}", bytes_text(bytes->weights), number_text(*c.batch),
                       bytes_text(bytes->cache));
      if (need > memory) {
        const double most = std::floor((memory - bytes->weights) / bytes->cache);
        out.add("batch",
                fmt::format("{} make {}; {} has {}{}", of, bytes_text(need), c.device->name, bytes_text(memory),
                            most >= 1 ? fmt::format(": at most {} sequences fit", number_text(most)) : ""));
      }
      return;
    }
    if (c.work) {
      need = working_set(*c.work);
      of = "the working set";
    }
  }
  if (need > memory)
    out.add(c.memory_bytes ? "memory" : "",
            fmt::format("{} needs {}; {} has {}", of, bytes_text(need), c.device->name, bytes_text(memory)));
}

}  // namespace roofgen::lint_rules

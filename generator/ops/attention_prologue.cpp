#include "generator/ops/attention_prologue.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <tuple>

#include "base/memo.h"
#include "generator/ops/attention_cache.h"
#include "generator/ops/elements.h"
#include "generator/ops/limits.h"
#include "generator/ops/problem_part.h"

namespace roofgen::attention {
namespace {

constexpr double kDefaultBase = 10000, kMostBase = 1e9;
constexpr int64_t kPairStep = 16;
/// Tiles of fp8 are copied in pairs of 16 bytes; a product in e4m3 takes 32 columns.
constexpr int64_t kFp8Step = 32;
/// Positions that one entry of the coarse table stands for.
constexpr int64_t kFine = 256;

bool has_flag(const Problem& p, const char* name) {
  const auto at = p.flags.find(name);
  return at != p.flags.end() && at->second;
}

bool has_text(const Problem& p, const char* name) {
  const auto at = p.texts.find(name);
  return at != p.texts.end() && !at->second.empty();
}

bool has_fp8_cache(const Problem& p) { return p.dtypes.count("kv") > 0; }
bool has_fp8_products(const Problem& p) { return p.dtype == DType::kFp8; }

/// K is a cache, in which keys are stored rotated.
bool is_cache(const Problem& p) {
  return appends(p) || has_fp8_cache(p) || p.dims.count("page") > 0 || p.texts.count("kv_lengths") > 0;
}

Result<void> complete_rotary(Problem& p) {
  if (!has_text(p, "rotary")) {
    p.texts.erase("rotary");
    for (const auto& [given, flag] : {std::pair{p.reals.count("rotary_base") > 0, "--rotary-base"},
                                      std::pair{p.dims.count("rotary_dim") > 0, "--rotary-dim"},
                                      std::pair{has_flag(p, "rotary_table"), "--rotary-table"}})
      if (given) return usage(fmt::format("{} needs --rotary half or interleaved", flag));
    return {};
  }
  const std::string& pairing = p.texts["rotary"];
  if (pairing != "half" && pairing != "interleaved")
    return usage(fmt::format("rotary is '{}'; half or interleaved was expected", pairing));
  const int64_t d = p.dims.at("d"), n = p.dims.emplace("rotary_dim", d).first->second;
  if (n % kPairStep != 0 || n < kPairStep || n > d)
    return usage(fmt::format("rotary_dim is {}; a multiple of 16 from 16 to {} was expected", n, d));
  if (has_flag(p, "rotary_table")) {
    if (p.reals.count("rotary_base"))
      return usage("--rotary-base and --rotary-table: the table has the cosines and sines; leave one out");
    if (const int64_t first = shortest_cache(p) - p.dims.at("L"); first < 0 && !has_text(p, "lengths"))
      return usage(
          fmt::format("--rotary-table: with fewer keys than queries positions begin at {}; the table has no "
                      "such row",
                      first));
    return {};
  }
  const double base = p.reals.emplace("rotary_base", kDefaultBase).first->second;
  if (!(base > 1 && base <= kMostBase))
    return usage(fmt::format("rotary_base is {}; a number above 1, at most {}, was expected", base, kMostBase));
  return {};
}

Result<void> complete_append(const Problem& p) {
  if (!appends(p)) return {};
  const int64_t length = p.dims.at("L"), shortest = shortest_cache(p);
  if (length <= shortest) return {};
  if (!p.texts.count("kv_lengths"))
    return usage(
        fmt::format("L is {}, but every sequence has {} keys; with --append at most as many queries as keys "
                    "were expected",
                    length, shortest));
  const std::vector<int64_t> lengths = *parse_lengths("kv_lengths", p.texts.at("kv_lengths"));
  const auto at = std::find(lengths.begin(), lengths.end(), shortest);
  return usage(
      fmt::format("L is {}, but sequence {} of --kv-lengths has {} keys; with --append at most as many "
                  "queries as keys were expected",
                  length, at - lengths.begin(), shortest));
}

/// --dtype fp8: one kernel multiplies e4m3 as it is in memory.
Result<void> check_fp8_products(const Problem& p) {
  for (const auto& [given, flag, why] : {std::tuple{has_fp8_cache(p), "--kv-dtype", "K and V are e4m3 already"},
                                         {has_text(p, "rotary"), "--rotary", "rotated elements are not e4m3"},
                                         {appends(p), "--append", "Q, K and V of one call have the same format"}})
    if (given)
      return usage(fmt::format("--dtype fp8 and {}: {}; leave it out{}", flag, why,
                               flag == std::string("--kv-dtype") ? "" : ", or use --kv-dtype fp8 with a 16-bit dtype"));
  return {};
}

Result<void> complete_fp8(Problem& p) {
  if (has_fp8_products(p)) ROOFGEN_CHECK(check_fp8_products(p));
  const bool e4m3 = has_fp8_products(p) || has_fp8_cache(p);
  const auto kv = p.dtypes.find("kv");
  if (kv != p.dtypes.end() && kv->second != DType::kFp8)
    return usage(fmt::format("kv_dtype is {}; fp8 was expected (without --kv-dtype K and V have the dtype of Q)",
                             to_string(kv->second)));
  if (const auto scales = p.texts.find("kv_scales"); scales != p.texts.end()) {
    if (!scales->second.empty()) {
      if (scales->second != "tensor" && scales->second != "head")
        return usage(fmt::format("kv_scales is '{}'; tensor or head was expected", scales->second));
      if (!e4m3) return usage("--kv-scales needs --dtype fp8 or --kv-dtype fp8");
      if (scales->second == "head") p.flags["kv_scale_per_head"] = true;
    }
    p.texts.erase(scales);
  }
  if (has_flag(p, "kv_scale_per_head") && !e4m3) return usage("--kv-scales needs --dtype fp8 or --kv-dtype fp8");
  if (const int64_t d = p.dims.at("d"); e4m3 && d % kFp8Step != 0)
    return usage(fmt::format("d is {}; with {} fp8 a multiple of {} was expected", d,
                             has_fp8_products(p) ? "--dtype" : "--kv-dtype", kFp8Step));
  return {};
}

}  // namespace

Result<void> complete_prologue(Problem& p) {
  // Without a choice the problem stays as it was before there was one.
  for (const char* name : {"rotary_table", "append", "kv_scale_per_head"})
    if (p.flags.count(name) && !p.flags[name]) p.flags.erase(name);
  ROOFGEN_CHECK(complete_append(p));
  ROOFGEN_CHECK(complete_rotary(p));
  return complete_fp8(p);
}

bool has_prologue(const Problem& p) {
  return has_text(p, "rotary") || appends(p) || has_fp8_cache(p) || has_fp8_products(p);
}

std::shared_ptr<const Prologue> Prologue::of(const Problem& p) {
  if (!has_prologue(p)) return nullptr;
  static Memo<std::string, Prologue> memo(16);
  const Problem part = part_of(p, {"L", "kv_len", "kv_heads", "page", "rotary_dim", "rotary_base", "rotary", "lengths",
                                   "kv_lengths", "append", "rotary_table", "kv_scale_per_head"});
  return memo.get(to_string(part), [&] { return std::make_shared<const Prologue>(part); });
}

Prologue::Prologue(const Problem& p)
    : rotary_(has_text(p, "rotary") ? p.texts.at("rotary") : ""),
      kv_len_(p.dims.at("kv_len")),
      kv_heads_(p.dims.at("kv_heads")),
      base_(p.reals.count("rotary_base") ? p.reals.at("rotary_base") : kDefaultBase),
      interleaved_(rotary_ == "interleaved"),
      table_(has_flag(p, "rotary_table")),
      append_(appends(p)),
      kv_fp8_(has_fp8_cache(p) || has_fp8_products(p)),
      q_fp8_(has_fp8_products(p)),
      scale_per_head_(has_flag(p, "kv_scale_per_head")) {
  if (!rotary_.empty()) pairs_ = p.dims.at("rotary_dim") / 2;
  rotates_keys_ = !rotary_.empty() && !is_cache(p);
  if (rotary_.empty()) return;
  const int64_t first = has_text(p, "lengths") ? 0 : std::min<int64_t>(0, shortest_cache(p) - p.dims.at("L"));
  first_block_ = first < 0 ? -((-first + kFine - 1) / kFine) : 0;
  constexpr long double kTurn = 2 * std::numbers::pi_v<long double>;
  const auto at = [&](int64_t position, int64_t i) {
    const double angle = static_cast<double>(std::remainder(static_cast<long double>(position) * frequency(i), kTurn));
    return std::pair{std::cos(angle), std::sin(angle)};
  };
  for (int64_t block = first_block_; block * kFine < kv_len_; ++block)
    for (int64_t i = 0; i < pairs_; ++i) coarse_.push_back(at(block * kFine, i));
  for (int64_t position = 0; position < kFine; ++position)
    for (int64_t i = 0; i < pairs_; ++i) fine_.push_back(at(position, i));
}

long double Prologue::frequency(int64_t i) const {
  return std::pow(static_cast<long double>(base_),
                  -2 * static_cast<long double>(i) / static_cast<long double>(rotary_dim()));
}

std::vector<Buffer> Prologue::buffers() const {
  std::vector<Buffer> out;
  if (table_)
    out.push_back(
        {"rotary_table", DType::kFp32, static_cast<uint64_t>(kv_len_ * rotary_dim()) * 4, Buffer::Role::kInput});
  for (const auto& [scaled, name] : {std::pair{q_fp8_, "q_scale"}, {kv_fp8_, "k_scale"}, {kv_fp8_, "v_scale"}})
    if (scaled)
      out.push_back(
          {name, DType::kFp32, static_cast<uint64_t>(scale_per_head_ ? kv_heads_ : 1) * 4, Buffer::Role::kInput});
  return out;
}

bool Prologue::fill(const std::string& buffer, uint64_t offset, std::span<std::byte> out) const {
  if (buffer != "rotary_table" || !table_) return false;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t byte = offset + i;
    const auto element = static_cast<int64_t>(byte / 4);
    const int64_t position = element / rotary_dim(), column = element % rotary_dim();
    const auto [c, s] = angle(position, column % pairs_);
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(column < pairs_ ? c : s));
    out[i] = static_cast<std::byte>(bits >> (8 * (byte % 4)) & 255);
  }
  return true;
}

expr::Map Prologue::scope() const {
  expr::List turns;
  constexpr long double kTurn = 2 * std::numbers::pi_v<long double>;
  for (int64_t i = 0; i < pairs_ && !table_; ++i)
    turns.push_back(
        fmt::format("0x{:016x}ull", static_cast<uint64_t>(std::nearbyint(std::ldexp(frequency(i) / kTurn, 64)))));
  return {{"rotary", rotary_},
          {"rotary_dim", rotary_dim()},
          {"rotary_table", table_},
          {"rotary_turns", std::move(turns)},
          {"rotates_keys", rotates_keys_},
          {"append", append_},
          {"kv_fp8", kv_fp8_},
          {"kv_scale_per_head", scale_per_head_},
          {"prologue", !q_fp8_}};
}

std::pair<double, double> Prologue::angle(int64_t position, int64_t i) const {
  const int64_t block = (position - first_block_ * kFine) / kFine, rest = position - (block + first_block_) * kFine;
  const auto& [c, s] = coarse_[static_cast<size_t>(block * pairs_ + i)];
  const auto& [fine_c, fine_s] = fine_[static_cast<size_t>(rest * pairs_ + i)];
  const std::pair<double, double> exact{c * fine_c - s * fine_s, s * fine_c + c * fine_s};
  if (!table_) return exact;
  // Not by way of float: GCC 12.2 drops a pair of such conversions when it vectorises.
  return {round_to_dtype(exact.first, DType::kFp32), round_to_dtype(exact.second, DType::kFp32)};
}

void Prologue::rotate(int64_t position, double* row, bool back) const {
  for (int64_t i = 0; i < pairs_; ++i) {
    const auto [a, b] = columns(i);
    const auto [c, s] = angle(position, i);
    const double x = row[a], y = row[b], sine = back ? -s : s;
    row[a] = x * c - y * sine;
    row[b] = x * sine + y * c;
  }
}

}  // namespace roofgen::attention

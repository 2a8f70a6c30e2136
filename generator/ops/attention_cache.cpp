#include "generator/ops/attention_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/memo.h"
#include "generator/ops/attention_modifiers.h"
#include "generator/ops/attention_prologue.h"
#include "generator/ops/counter_random.h"
#include "generator/ops/limits.h"
#include "generator/ops/problem_part.h"

namespace roofgen::attention {
namespace {

constexpr int64_t kPages[] = {16, 32, 64, 128, 256};
/// An entry of the block table that no kernel may follow: its page is outside every pool.
constexpr int32_t kNoPage = 0x7fffffff;
/// Pools have one unused page, and one more for each so many pages.
constexpr int64_t kPagesPerUnused = 16;

/// An accepted problem's lengths; empty: kv_len each.
std::vector<int64_t> lengths_of(const Problem& p) {
  const auto text = p.texts.find("kv_lengths");
  if (text == p.texts.end()) return {};
  return *parse_lengths("kv_lengths", text->second);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Result<void> check_packed(const Problem& p) {
  const auto lengths = p.texts.find("lengths"), kv_lengths = p.texts.find("kv_lengths");
  if (lengths == p.texts.end() || lengths->second.empty()) return {};
  const auto append = p.flags.find("append");
  for (const auto& [given, flag] : {std::pair{kv_lengths != p.texts.end(), "--kv-lengths"},
                                    {p.dims.count("page") != 0, "--page"},
                                    {append != p.flags.end() && append->second, "--append"}})
    if (given) return usage(fmt::format("--lengths and {}: packed sequences have no cache; leave one out", flag));
  return {};
}

Result<void> complete_cache(Problem& p) {
  // Without a choice the problem stays as it was before there was one.
  for (const char* name : {"kv_lengths", "kv_layout"})
    if (const auto at = p.texts.find(name); at != p.texts.end() && at->second.empty()) p.texts.erase(at);
  if (const auto layout = p.texts.find("kv_layout"); layout != p.texts.end()) {
    if (layout->second != "nhd" && layout->second != "hnd")
      return usage(fmt::format("kv_layout is '{}'; nhd or hnd was expected", layout->second));
    if (layout->second == "nhd") p.texts.erase(layout);
  }
  const auto page = p.dims.find("page");
  if (page != p.dims.end() && std::count(std::begin(kPages), std::end(kPages), page->second) == 0)
    return usage(fmt::format("page is {}; 16, 32, 64, 128 or 256 was expected", page->second));
  const auto text = p.texts.find("kv_lengths");
  if (text == p.texts.end()) return {};
  ROOFGEN_TRY(const std::vector<int64_t> lengths, parse_lengths("kv_lengths", text->second));
  const auto [shortest, longest] = std::minmax_element(lengths.begin(), lengths.end());
  if (*longest == 0) return usage("all sequences of --kv-lengths have 0 keys; at least one key was expected");
  const auto count = static_cast<int64_t>(lengths.size());
  if (const int64_t batch = p.dims.emplace("batch", count).first->second; batch != count)
    return usage(fmt::format("batch is {}, but --kv-lengths has {} sequences; leave it out", batch, count));
  if (const int64_t keys = p.dims.emplace("kv_len", *longest).first->second; keys < *longest)
    return usage(fmt::format("kv_len is {}, but the longest of --kv-lengths is {}; leave it out", keys, *longest));
  if (const auto causal = p.flags.find("causal"); causal != p.flags.end() && causal->second)
    if (const int64_t queries = p.dims.count("L") ? p.dims.at("L") : 0; queries > *shortest)
      return usage(
          fmt::format("L is {}, but sequence {} of --kv-lengths has {} keys; with --causal at most as many "
                      "queries as keys were expected",
                      queries, shortest - lengths.begin(), *shortest));
  p.flags["ragged"] = true;
  return {};
}

int64_t shortest_cache(const Problem& p) {
  const std::vector<int64_t> lengths = lengths_of(p);
  return lengths.empty() ? p.dims.at("kv_len") : *std::min_element(lengths.begin(), lengths.end());
}

std::shared_ptr<const KvCache> KvCache::of(const Problem& p) {
  const auto text = p.texts.find("kv_lengths");
  const auto page = p.dims.find("page");
  if (text == p.texts.end() && page == p.dims.end()) return nullptr;
  static Memo<std::string, KvCache> memo(16);
  const Problem part = part_of(p, {"L", "batch", "kv_len", "page", "append", "kv_lengths"});
  return memo.get(to_string(part), [&] { return std::make_shared<const KvCache>(part); });
}

KvCache::KvCache(const Problem& p)
    : ragged_(p.texts.count("kv_lengths") > 0),
      page_(p.dims.count("page") ? p.dims.at("page") : 0),
      appended_(appends(p) ? p.dims.at("L") : 0),
      lengths_(lengths_of(p)) {
  const int64_t batch = p.dims.at("batch"), kv_len = p.dims.at("kv_len");
  if (!ragged_) lengths_.assign(static_cast<size_t>(batch), kv_len);
  if (page_ == 0) return;
  pages_per_sequence_ = ceil_div(kv_len, page_);
  first_.assign(1, 0);
  for (int64_t b = 0; b < batch; ++b) first_.push_back(first_.back() + ceil_div(keys(b), page_) - shares(b));
  const int64_t used = first_.back();
  pages_ = used + 1 + used / kPagesPerUnused;
  // A page may be anywhere in the pool.
  place_.resize(static_cast<size_t>(pages_));
  std::iota(place_.begin(), place_.end(), 0);
  for (size_t i = place_.size(); i-- > 1;) std::swap(place_[i], place_[mix(i) % (i + 1)]);
  inverse_.resize(place_.size());
  for (size_t i = 0; i < place_.size(); ++i) inverse_[static_cast<size_t>(place_[i])] = static_cast<int32_t>(i);
}

KvCache::Place KvCache::contents(int64_t page_of_pool) const {
  const int64_t number = inverse_[static_cast<size_t>(page_of_pool)];
  if (number >= first_.back()) return {};
  const int64_t b = std::upper_bound(first_.begin(), first_.end(), number) - first_.begin() - 1;
  return {b, number - first_[static_cast<size_t>(b)] + shares(b)};
}

int32_t KvCache::table(int64_t b, int64_t page) const {
  if (page * page_ >= keys(b)) return kNoPage;
  const int64_t owner = this->owner(b, page * page_), own = page - (owner == b && shares(b));
  return place_[static_cast<size_t>(first_[static_cast<size_t>(owner)] + own)];
}

int64_t KvCache::distinct_keys() const {
  int64_t out = 0;
  for (int64_t b = 0; b < static_cast<int64_t>(lengths_.size()); ++b)
    out += keys(b) - (page_ > 0 && shares(b) ? page_ : 0);
  return out;
}

int64_t KvCache::table_entries() const {
  int64_t out = 0;
  for (int64_t length : lengths_) out += page_ > 0 ? ceil_div(length, page_) : 0;
  return out;
}

std::vector<Buffer> KvCache::buffers() const {
  std::vector<Buffer> out;
  if (ragged_) out.push_back({"kv_lengths", DType::kInt32, lengths_.size() * 4, Buffer::Role::kInput});
  if (page_ > 0)
    out.push_back({"block_table", DType::kInt32, lengths_.size() * static_cast<uint64_t>(pages_per_sequence_) * 4,
                   Buffer::Role::kInput});
  return out;
}

bool KvCache::fill(const std::string& buffer, uint64_t offset, std::span<std::byte> out) const {
  const bool is_table = buffer == "block_table";
  if (!is_table && buffer != "kv_lengths") return false;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t byte = offset + i;
    const auto element = static_cast<int64_t>(byte / 4);
    const int64_t value =
        is_table ? table(element / pages_per_sequence_, element % pages_per_sequence_) : keys(element);
    out[i] = static_cast<std::byte>(value >> (8 * (byte % 4)) & 255);
  }
  return true;
}

}  // namespace roofgen::attention

#include "generator/ops/gemm_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "generator/ops/counter_random.h"
#include "generator/ops/declared.h"
#include "generator/ops/limits.h"

namespace roofgen::gemm {
namespace {

constexpr int64_t kMaxExperts = 1024, kMaxRows = int64_t{1} << 30;
const std::string kSizes = "sizes";

/// Shares between 1 and 7: the busiest of eight experts has about twice the mean.
std::vector<int64_t> uneven_sizes(int64_t rows, int64_t experts) {
  std::vector<double> until{0};
  for (int64_t e = 0; e < experts; ++e)
    until.push_back(until.back() + 1 + static_cast<double>(mix(static_cast<uint64_t>(e)) % 1024) / 1024 * 6);
  std::vector<int64_t> out;
  int64_t taken = 0;
  for (size_t e = 1; e < until.size(); ++e) {
    const int64_t end = std::llround(until[e] / until.back() * static_cast<double>(rows));
    out.push_back(end - taken);
    taken = end;
  }
  return out;
}

/// M of the routed tokens.
Result<void> complete_routing(Problem& p) {
  const bool tokens = p.dims.count("tokens") > 0, topk = p.dims.count("topk") > 0;
  if (const std::string how = p.texts.emplace("scatter", "").first->second; !how.empty() && how != "weighted")
    return usage(fmt::format("scatter is '{}'; weighted was expected", how));
  for (const auto& [asked, flag] : {std::pair{p.flags["gather"], "--gather"}, std::pair{is_scattered(p), "--scatter"}})
    if (asked && !tokens && !topk) return usage(fmt::format("{} needs --tokens and --topk", flag));
  if (!tokens && !topk) return {};
  if (!tokens || !topk)
    return usage(fmt::format("--{} needs --{}", tokens ? "tokens" : "topk", tokens ? "topk" : "tokens"));
  ROOFGEN_CHECK(in_range("tokens", p.dims["tokens"], 1, kMaxRows));
  ROOFGEN_CHECK(in_range("topk", p.dims["topk"], 1, kMaxExperts));
  const int64_t rows = p.dims["tokens"] * p.dims["topk"];
  if (const int64_t given = p.dims.emplace("M", rows).first->second; given != rows)
    return usage(fmt::format("M is {}, but {} tokens with {} experts each have {} rows; leave it out", given,
                             p.dims["tokens"], p.dims["topk"], rows));
  return {};
}

void set_sizes(Problem& p, const std::vector<int64_t>& sizes) {
  p.texts[kSizes] = fmt::format("{}", fmt::join(sizes, ","));
  p.dims["experts"] = static_cast<int64_t>(sizes.size());
  p.dims["M"] = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

}  // namespace

Routing::Routing(int64_t tokens) : tokens_(tokens), step_(std::max<int64_t>(1, tokens * 5 / 8)), back_(1) {
  while (std::gcd(tokens_, step_) != 1) ++step_;
  // Euclid: `back` times step is `rest` modulo tokens, until rest is 1.
  int64_t rest = step_, next_rest = tokens_, next_back = 0;
  while (next_rest != 0) {
    const int64_t quotient = rest / next_rest;
    rest = std::exchange(next_rest, rest - quotient * next_rest);
    back_ = std::exchange(next_back, back_ - quotient * next_back);
  }
  back_ = (back_ % tokens_ + tokens_) % tokens_;
}

bool is_scattered(const Problem& problem) {
  const auto text = problem.texts.find("scatter");
  return text != problem.texts.end() && !text->second.empty();
}

bool is_index(const std::string& buffer) {
  return buffer == "offsets" || buffer == "row_tokens" || buffer == "token_rows";
}

bool fill_index(const Problem& problem, const std::string& buffer, uint64_t offset, std::span<std::byte> out) {
  if (!is_index(buffer)) return false;
  const bool offsets = buffer == "offsets", tokens = buffer == "row_tokens";
  const Groups groups(problem);
  const auto count = problem.dims.find("tokens"), topk = problem.dims.find("topk");
  const Routing routing(count == problem.dims.end() ? 1 : count->second);
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>((offset + i) / 4);
    const int64_t value = offsets  ? groups.offsets()[static_cast<size_t>(at)]
                          : tokens ? routing.token_of(at)
                                   : routing.row_of(at / topk->second, at % topk->second);
    out[i] = static_cast<std::byte>(value >> ((offset + i) % 4 * 8) & 0xff);
  }
  return true;
}

Groups::Groups(const Problem& problem) : offsets_{0} {
  const std::vector<int64_t> sizes = *parse_numbers("--sizes", problem.texts.at(kSizes), "size", 0, kMaxRows);
  for (const int64_t size : sizes) offsets_.push_back(offsets_.back() + size);
}

int64_t Groups::used() const {
  int64_t out = 0;
  for (int64_t e = 0; e < count(); ++e) out += begin(e) < end(e);
  return out;
}

int64_t Groups::row_tiles(int64_t height) const {
  int64_t out = 0;
  for (int64_t e = 0; e < count(); ++e) out += (end(e) - begin(e) + height - 1) / height;
  return out;
}

Result<void> complete_groups(Problem& p) {
  ROOFGEN_CHECK(complete_routing(p));
  const auto text = p.texts.find(kSizes);
  if (text == p.texts.end()) {
    for (const char* dim : {"M", "experts"})
      if (!p.dims.count(dim)) return usage(fmt::format("grouped_gemm needs --{}, or --sizes", dim));
    ROOFGEN_CHECK(in_range("experts", p.dims["experts"], 1, kMaxExperts));
    ROOFGEN_CHECK(in_range("M", p.dims["M"], 1, kMaxRows));
    set_sizes(p, uneven_sizes(p.dims["M"], p.dims["experts"]));
    return {};
  }
  ROOFGEN_TRY(const std::vector<int64_t> sizes, parse_numbers("--sizes", text->second, "size", 0, kMaxRows));
  const auto experts = static_cast<int64_t>(sizes.size());
  if (experts > kMaxExperts)
    return usage(fmt::format("--sizes has {} experts; at most {} were expected", experts, kMaxExperts));
  if (const auto given = p.dims.find("experts"); given != p.dims.end() && given->second != experts)
    return usage(fmt::format("experts is {}, but --sizes has {}; leave it out", given->second, experts));
  const int64_t rows = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (const auto given = p.dims.find("M"); given != p.dims.end() && given->second != rows)
    return usage(
        p.dims.count("tokens")
            ? fmt::format("--tokens and --topk give {} rows, but --sizes adds up to {}", given->second, rows)
            : fmt::format("M is {}, but --sizes adds up to {} rows; leave one of them out", given->second, rows));
  if (rows < 1 || rows > kMaxRows)
    return usage(fmt::format("--sizes adds up to {} rows; 1 to {} were expected", rows, kMaxRows));
  set_sizes(p, sizes);
  return {};
}

Problem with_few_rows(Problem problem) {
  constexpr int64_t kFew = 300, kLeast = 160;  // more than one row tile of most schedules, and a part of another
  const Groups all(problem);
  int64_t largest = 0;
  for (int64_t e = 0; e < all.count(); ++e)
    if (all.end(e) - all.begin(e) > all.end(largest) - all.begin(largest)) largest = e;
  std::vector<int64_t> sizes;
  for (const int64_t e : {int64_t{0}, largest, all.count() - 1}) {
    const int64_t size = all.end(e) - all.begin(e);
    sizes.push_back(size <= kFew ? size : kLeast + size % (kFew - kLeast));
  }
  if (const auto topk = problem.dims.find("topk"); topk != problem.dims.end()) {
    // As many rows as some tokens have.
    const int64_t rows = sizes[0] + sizes[1] + 1 + sizes[2], more = (topk->second - rows % topk->second) % topk->second;
    sizes[1] += more;
    problem.dims["tokens"] = (rows + more) / topk->second;
  }
  // The lanes of a warp look at 32 experts at a time: more than 32 of them, most without rows, unless B is large.
  constexpr int64_t kMostElements = int64_t{1} << 27;
  const bool many = problem.dims.at("N") * problem.dims.at("K") <= kMostElements / 38;
  std::vector<int64_t> of_experts(many ? 38 : 5, 0);
  of_experts.front() = sizes[0];
  of_experts[many ? 17 : 2] = sizes[1];
  of_experts[many ? 35 : 3] = 1;
  of_experts.back() = sizes[2];
  set_sizes(problem, of_experts);
  return problem;
}

}  // namespace roofgen::gemm

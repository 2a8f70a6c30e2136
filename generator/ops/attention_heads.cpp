#include <array>
#include <bitset>

#include "generator/ops/attention_shape.h"

namespace roofgen::attention {
namespace {

constexpr size_t kWrongMaps = 10;

/// Bit i: the wrong map i, kept in range, gives another K/V head than the right one.
std::bitset<kWrongMaps> told_by(int64_t h, int64_t heads, int64_t kv_heads) {
  const int64_t group = heads / kv_heads, right = h / group;
  const std::array<int64_t, kWrongMaps> wrong{h % kv_heads,
                                              h / kv_heads,
                                              h % group,
                                              (h + 1) / group,
                                              (h + group - 1) / group,
                                              h > 0 ? (h - 1) / group : 0,
                                              h / (group + 1),
                                              h / (group - 1),
                                              kv_heads - 1 - right,
                                              0};
  std::bitset<kWrongMaps> out;
  for (size_t i = 0; i < kWrongMaps; ++i) out[i] = std::clamp<int64_t>(wrong[i], 0, kv_heads - 1) != right;
  return out;
}

}  // namespace

std::vector<int64_t> telling_heads(int64_t heads, int64_t kv_heads) {
  std::vector<int64_t> out;
  if (kv_heads > 1 && kv_heads < heads) {
    // Greedy: the head that tells most of the maps not told yet, until no head tells another one.
    std::bitset<kWrongMaps> told = told_by(heads - 1, heads, kv_heads);
    for (;;) {
      int64_t best = -1;
      size_t most = 0;
      for (int64_t h = 0; h < heads - 1; ++h)
        if (const size_t more = (told_by(h, heads, kv_heads) & ~told).count(); more > most) best = h, most = more;
      if (best < 0) break;
      out.push_back(best);
      told |= told_by(best, heads, kv_heads);
    }
  }
  if (out.empty()) out.push_back((heads - 1) / 2);
  out.push_back(heads - 1);
  return out;
}

}  // namespace roofgen::attention

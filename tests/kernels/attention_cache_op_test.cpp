// Caches of attention without a kernel: rejected input with its messages, the contents of pools and tables, and the
// reference against a plain computation from the bytes of the buffers.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "generator/ops/attention_reference.h"
#include "generator/ops/float16.h"
#include "generator/ops/op.h"

namespace roofgen::attention_cache_op_test {
namespace {

using attention::KvCache;
using attention::Shape;
using Dims = std::map<std::string, int64_t>;
using Texts = std::map<std::string, std::string>;

const Op& op() { return **find_op("attention"); }

Problem given(Dims dims, Texts texts, std::map<std::string, bool> flags = {}) {
  Problem p{"attention", std::move(dims), DType::kBf16, std::move(flags), {}};
  p.texts = std::move(texts);
  return p;
}

Problem complete(Dims dims, Texts texts, std::map<std::string, bool> flags = {}) {
  auto done = op().complete(given(std::move(dims), std::move(texts), std::move(flags)));
  EXPECT_TRUE(done) << to_string(done.error());
  return *done;
}

std::string refusal(Dims dims, Texts texts, std::map<std::string, bool> flags = {}) {
  dims.emplace("d", 64);
  auto done = op().complete(given(std::move(dims), std::move(texts), std::move(flags)));
  if (done) return "accepted";
  EXPECT_EQ(done.error().exit, Exit::kUsage);
  const std::string text = to_string(done.error());
  return text.starts_with("error: ") ? text.substr(7) : text;
}

template <class T>
std::vector<T> filled(const Problem& p, const std::string& name, InputPattern pattern = InputPattern::kNormal) {
  for (const Buffer& b : op().buffers(p)) {
    if (b.name != name) continue;
    std::vector<T> out(b.bytes / sizeof(T));
    op().fill(p, pattern, name, 0, std::as_writable_bytes(std::span(out)));
    return out;
  }
  return {};
}

bool is_nan(uint16_t bits) { return std::isnan(decode16(bits, DType::kBf16)); }

TEST(AttentionCacheOp, RefusesInvalidCaches) {
  EXPECT_EQ(refusal({{"L", 4}, {"page", 48}}, {}), "page is 48; 16, 32, 64, 128 or 256 was expected");
  EXPECT_EQ(refusal({{"L", 4}, {"page", 0}}, {}), "page is 0; 16, 32, 64, 128 or 256 was expected");
  EXPECT_EQ(refusal({{"L", 4}}, {{"kv_layout", "dhn"}}), "kv_layout is 'dhn'; nhd or hnd was expected");
  EXPECT_EQ(refusal({{"L", 4}}, {{"kv_lengths", "5,-5"}}),
            "--kv-lengths:1:3: error: a length of 0 to 16777216 was expected\n"
            "    1 | 5,-5\n"
            "      |   ^~");
  EXPECT_NE(refusal({{"L", 4}}, {{"kv_lengths", "0,0"}}).find("at least one key was expected"), std::string::npos);
  EXPECT_NE(refusal({{"L", 4}}, {{"kv_lengths", "5,x"}}).find("--kv-lengths:1:3: error: a length was expected"),
            std::string::npos);
  EXPECT_EQ(refusal({{"L", 4}, {"batch", 3}}, {{"kv_lengths", "5,6"}}),
            "batch is 3, but --kv-lengths has 2 sequences; leave it out");
  EXPECT_EQ(refusal({{"L", 4}, {"kv_len", 50}}, {{"kv_lengths", "5,60"}}),
            "kv_len is 50, but the longest of --kv-lengths is 60; leave it out");
  EXPECT_EQ(refusal({{"L", 8}}, {{"kv_lengths", "60,5"}}, {{"causal", true}}),
            "L is 8, but sequence 1 of --kv-lengths has 5 keys; with --causal at most as many queries as keys were "
            "expected");
  EXPECT_EQ(refusal({{"L", 8}}, {{"kv_lengths", "60,8"}}, {{"causal", true}}), "accepted");
  EXPECT_EQ(refusal({{"L", 8}}, {{"kv_lengths", "60,5"}}), "accepted");
  EXPECT_EQ(refusal({}, {{"kv_lengths", "5,6"}, {"lengths", "5,6"}}),
            "--lengths and --kv-lengths: packed sequences have no cache; leave one out");
  EXPECT_EQ(refusal({{"page", 16}}, {{"lengths", "5,6"}}),
            "--lengths and --page: packed sequences have no cache; leave one out");
  EXPECT_EQ(refusal({}, {{"kv_lengths", "5,6"}}), "attention needs L");
  EXPECT_NE(refusal({{"L", 1}, {"kv_len", 1 << 24}, {"batch", 256}, {"heads", 1}, {"page", 16}}, {})
                .find("the number of pages is 268435456; 0 to 67108864 was expected"),
            std::string::npos);
}

TEST(AttentionCacheOp, LengthsImplyBatchAndCapacity) {
  const Problem p = complete({{"L", 4}, {"d", 64}, {"heads", 2}}, {{"kv_lengths", "33,150,1"}});
  EXPECT_EQ(p.dims.at("batch"), 3);
  EXPECT_EQ(p.dims.at("kv_len"), 150);
  EXPECT_EQ(complete({{"L", 4}, {"d", 64}, {"kv_len", 200}}, {{"kv_lengths", "33,150,1"}}).dims.at("kv_len"), 200);
  EXPECT_EQ(filled<int32_t>(p, "kv_lengths"), (std::vector<int32_t>{33, 150, 1}));
  EXPECT_EQ(op().extent(p).batch_rows, (std::vector<int64_t>{4, 4, 4}));
  EXPECT_EQ(op().weight(p, {0, 0, 0, 4}), 4 * 33);
  EXPECT_EQ(op().weight(p, {1, 0, 0, 4}), 4 * 150);
  EXPECT_EQ(op().reduced(p).texts.at("kv_lengths"), "1,150,0");
  EXPECT_EQ(op().reduced(p).dims.at("kv_len"), 150);
  EXPECT_EQ(op().reduced(complete({{"L", 4}, {"d", 64}, {"page", 16}}, {})).dims.at("batch"), 2);
  // The choice that is the default leaves no trace: the same problem has one text.
  EXPECT_EQ(to_string(complete({{"L", 4}, {"d", 64}}, {{"kv_layout", "nhd"}, {"kv_lengths", ""}})),
            to_string(complete({{"L", 4}, {"d", 64}}, {})));
  EXPECT_TRUE(op().thinner(p).empty());
}

TEST(AttentionCacheOp, ThinProblemsHaveMoreThanTwoPages) {
  const Problem p = complete({{"L", 4}, {"d", 64}, {"kv_len", 200}, {"page", 32}}, {});
  ASSERT_FALSE(op().thinner(p).empty());
  EXPECT_EQ(op().thinner(p).front().problem.dims.at("kv_len"), 72);
  EXPECT_TRUE(op().thinner(complete({{"L", 4}, {"d", 64}, {"kv_len", 200}, {"page", 128}}, {})).empty());
}

TEST(AttentionCacheOp, WithAPatternBothOrdersOfLengthsOccur) {
  const Problem reduced =
      op().reduced(complete({{"L", 4}, {"d", 64}, {"heads", 2}, {"page", 16}}, {{"kv_lengths", "33,150,1"}}));
  std::set<std::string> orders;
  for (InputPattern pattern : op().patterns(reduced)) {
    const Problem p = op().with_pattern(reduced, pattern);
    EXPECT_EQ(p.dims.at("batch"), 2);
    EXPECT_EQ(p.dims.at("kv_heads"), 2);
    orders.insert(p.texts.at("kv_lengths"));
  }
  EXPECT_EQ(orders, (std::set<std::string>{"1,150", "150,1"}));
  const Problem one = op().reduced(complete({{"L", 4}, {"d", 64}}, {{"kv_lengths", "33"}}));
  EXPECT_EQ(op().with_pattern(one, InputPattern::kGrowing).texts.at("kv_lengths"), "33,33");
}

// Rows of NaN agree with any kernel that reads V of its head. The last head of the last sequence is compared.
TEST(AttentionCacheOp, GrowingScoresHaveAFiniteResult) {
  for (int64_t page : {0, 16}) {
    Dims dims{{"L", 4}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}};
    if (page > 0) dims["page"] = page;
    const InputPattern growing = InputPattern::kGrowing;
    const Shape s(op().with_pattern(op().reduced(complete(std::move(dims), {{"kv_lengths", "33,150,20"}})), growing));
    for (const auto& [head, finite] : {std::pair{s.heads - 1, true}, std::pair{int64_t{0}, false}}) {
      const auto band = attention::reference_of(s, growing, attention::Rounding::kFused, {s.batch - 1, head, 0, 4});
      for (double x : band->o) ASSERT_EQ(std::isfinite(x), finite) << "page " << page << " head " << head;
    }
  }
}

TEST(AttentionCacheOp, KeysBehindTheEndOfACacheAreNaN) {
  for (const char* layout : {"nhd", "hnd"}) {
    const Problem p = complete({{"L", 1}, {"d", 32}, {"heads", 2}}, {{"kv_lengths", "3,7"}, {"kv_layout", layout}});
    const Shape s(p);
    for (const char* name : {"K", "V"}) {
      const auto bits = filled<uint16_t>(p, name);
      ASSERT_EQ(bits.size(), 2u * 7 * 2 * 32);
      std::vector<uint16_t> row(32);
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t k = 0; k < 7; ++k) {
            const int64_t at = std::string(layout) == "nhd" ? ((b * 7 + k) * 2 + h) * 32 : ((b * 2 + h) * 7 + k) * 32;
            attention::Inputs(s, InputPattern::kNormal)
                .row(*name == 'K' ? attention::Tensor::kK : attention::Tensor::kV, b, h, k, row.data());
            for (int64_t c = 0; c < 32; ++c) {
              const uint16_t got = bits[static_cast<size_t>(at + c)];
              if (k < s.keys(b))
                ASSERT_EQ(got, row[static_cast<size_t>(c)]) << layout << " " << b << " " << h << " " << k;
              else
                ASSERT_TRUE(is_nan(got)) << layout << " " << b << " " << h << " " << k;
            }
          }
    }
  }
}

// Two of four sequences fill no page; the last shares its first page.
const Texts kLengths{{"kv_lengths", "40,9,100,33"}};

TEST(AttentionCacheOp, PagesAreSharedShuffledAndPartlyFilled) {
  const Problem p = complete({{"L", 1}, {"d", 32}, {"heads", 1}, {"kv_len", 120}, {"page", 16}}, kLengths);
  const Shape s(p);
  const int64_t per_sequence = 8;  // ceil(120 / 16)
  const auto table = filled<int32_t>(p, "block_table");
  ASSERT_EQ(table.size(), 4u * per_sequence);
  std::set<int32_t> used;
  std::vector<int32_t> in_order;
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t i = 0; i < per_sequence; ++i) {
      const int32_t entry = table[static_cast<size_t>(b * per_sequence + i)];
      if (i * 16 >= s.keys(b)) {
        EXPECT_EQ(entry, 0x7fffffff) << "entries behind the last page must not be followed";
        continue;
      }
      ASSERT_GE(entry, 0);
      ASSERT_LT(entry, s.cache->pages());
      if (b == 3 && i == 0)
        EXPECT_EQ(entry, table[2 * per_sequence]) << "a common prefix";
      else
        EXPECT_TRUE(used.insert(entry).second) << "a page of two owners";
      in_order.push_back(entry);
    }
  EXPECT_EQ(used.size(), 3u + 1 + 7 + 2);
  EXPECT_LT(static_cast<int64_t>(used.size()), s.cache->pages()) << "some pages are unused";
  int neighbours = 0;
  for (size_t i = 1; i < in_order.size(); ++i) neighbours += in_order[i] == in_order[i - 1] + 1;
  EXPECT_LT(neighbours, 4) << "the pool is shuffled";

  const auto bits = filled<uint16_t>(p, "K");
  ASSERT_EQ(static_cast<int64_t>(bits.size()), s.cache->pages() * 16 * 32);
  for (int64_t page = 0; page < s.cache->pages(); ++page) {
    const auto [owner, number] = s.cache->contents(page);
    EXPECT_EQ(used.count(static_cast<int32_t>(page)), owner >= 0);
    for (int64_t k = 0; k < 16; ++k) {
      const bool filled_row = owner >= 0 && number * 16 + k < s.keys(owner);
      EXPECT_EQ(is_nan(bits[static_cast<size_t>((page * 16 + k) * 32)]), !filled_row) << page << " " << k;
    }
  }
}

// The reference against a softmax computed from the bytes of Q, K, V and the block table, for every pattern and two
// sets of lengths: a result of one must not be kept for the other.
TEST(AttentionCacheOp, TheReferenceReadsThroughTheTable) {
  for (const char* lengths : {"40,9,100,33", "40,16,100,20"})
    for (int64_t page : {0, 16})
      for (bool spread : {false, true}) {
        Dims dims{{"L", 2}, {"d", 32}, {"heads", 2}, {"kv_heads", 2}, {"kv_len", 120}};
        if (page > 0) dims["page"] = page;
        Problem p = complete(std::move(dims), {{"kv_lengths", lengths}}, {{"causal", true}});
        if (spread) p.dims[attention::kSpread] = 1;
        const Shape s(p);
        const auto q = filled<uint16_t>(p, "Q"), k = filled<uint16_t>(p, "K"), v = filled<uint16_t>(p, "V");
        const auto table = filled<int32_t>(p, "block_table");
        const auto number = [](uint16_t bits) { return static_cast<double>(decode16(bits, DType::kBf16)); };
        const attention::Layout of_q = s.layout_of_q(), of_k = s.layout_of_k(), of_v = s.layout_of_v();
        for (int64_t b = 0; b < 4; ++b) {
          const auto band =
              attention::reference_of(s, InputPattern::kNormal, attention::Rounding::kFused, {b, 1, 0, 2});
          const auto place = [&](const attention::Layout& l, int64_t key) {
            const int64_t block =
                page > 0 ? table[static_cast<size_t>(b * s.cache->pages_per_sequence() + key / page)] : b;
            return static_cast<size_t>(block * l.block + l.head + (page > 0 ? key % page : key) * l.row);
          };
          for (int64_t r = 0; r < 2; ++r) {
            std::vector<double> o(32, 0.0);
            double sum = 0;
            for (int64_t key = 0; key <= s.keys(b) - 2 + r; ++key) {
              double product = 0;
              for (size_t c = 0; c < 32; ++c)
                product += number(q[static_cast<size_t>(b * of_q.block + of_q.head + r * of_q.row) + c]) *
                           number(k[place(of_k, key) + c]);
              const double e = std::exp(product * s.scale);
              sum += e;
              for (size_t c = 0; c < 32; ++c) o[c] += e * number(v[place(of_v, key) + c]);
            }
            for (size_t c = 0; c < 32; ++c)
              ASSERT_NEAR(band->o[static_cast<size_t>(r) * 32 + c], o[c] / sum, 1e-9)
                  << lengths << " page " << page << " spread " << spread << " sequence " << b;
          }
        }
      }
}

TEST(AttentionCacheOp, RequiredWorkCountsVisibleKeysAndSharedPagesOnce) {
  const auto required = [](int64_t page) {
    Dims dims{{"L", 2}, {"d", 32}, {"heads", 4}, {"kv_heads", 2}, {"kv_len", 120}};
    if (page > 0) dims["page"] = page;
    return *op().required(complete(std::move(dims), kLengths));
  };
  const double keys = 40 + 9 + 100 + 33, qo = 2 * 4 * 2 * 4 * 32 * 2;
  EXPECT_EQ(required(0).mma_flops, 4.0 * keys * 2 * 4 * 32);
  EXPECT_EQ(required(0).exps, keys * 2 * 4);
  EXPECT_EQ(required(0).dram_bytes, qo + 2 * keys * 2 * 32 * 2 + 4 * 4);
  EXPECT_EQ(required(16).mma_flops, required(0).mma_flops);
  EXPECT_EQ(required(16).dram_bytes, qo + 2 * (keys - 16) * 2 * 32 * 2 + 4 * 4 + (3 + 1 + 7 + 3) * 4);
}

// Of S and P, laid out for the capacity, kernels touch the keys of each sequence.
TEST(AttentionCacheOp, DistinctBytesOfATemporaryFollowTheLengths) {
  const Problem p = complete({{"L", 2}, {"d", 32}, {"heads", 4}, {"kv_len", 120}}, kLengths);
  EXPECT_DOUBLE_EQ(op().distinct_bytes(p, {"S", DType::kBf16, 4 * 120 * 8, Buffer::Role::kTemporary}),
                   (40 + 9 + 100 + 33) * 8);
  EXPECT_EQ(op().distinct_bytes(p, {"O", DType::kBf16, 1000, Buffer::Role::kOutput}), 1000);
}

TEST(AttentionCacheOp, LayoutsChangeOnlyStrides) {
  const auto strides = [](Dims dims, Texts texts) {
    dims.insert({{"L", 1}, {"d", 32}, {"heads", 4}, {"kv_heads", 2}, {"batch", 3}, {"kv_len", 100}});
    const expr::Map scope = op().scope(complete(std::move(dims), std::move(texts)));
    std::vector<int64_t> out;
    for (const char* name : {"k_batch_stride", "k_page_stride", "k_head_stride", "k_row_stride", "q_row_stride"})
      out.push_back(*scope.at(name).as<int64_t>());
    return out;
  };
  EXPECT_EQ(strides({}, {}), (std::vector<int64_t>{100 * 64, 0, 32, 64, 128}));
  EXPECT_EQ(strides({}, {{"kv_layout", "hnd"}}), (std::vector<int64_t>{100 * 64, 0, 100 * 32, 32, 128}));
  EXPECT_EQ(strides({{"page", 16}}, {}), (std::vector<int64_t>{0, 16 * 64, 32, 64, 128}));
  EXPECT_EQ(strides({{"page", 16}}, {{"kv_layout", "hnd"}}), (std::vector<int64_t>{0, 16 * 64, 16 * 32, 32, 128}));
}

}  // namespace
}  // namespace roofgen::attention_cache_op_test

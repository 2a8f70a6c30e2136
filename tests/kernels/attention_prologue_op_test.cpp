// Attention with rotary positions, appended keys and a cache in fp8, without a kernel: completion, scope, buffers and
// inputs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/json_text.h"
#include "generator/space/problem_json.h"
#include "tests/kernels/attention_prologue_world.h"

namespace roofgen::attention_prologue_op_test {
namespace {

using namespace attention_prologue;

class EveryCacheCase : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Prologue, EveryCacheCase, ::testing::ValuesIn(cases()), [](const auto& one) {
  std::string name = one.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// ---- problems ----------------------------------------------------------------------------------

TEST(PrologueOp, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(refusal({"", {}, {{"rotary", "both"}}}), "rotary is 'both'; half or interleaved was expected");
  EXPECT_EQ(refusal({"", {{"rotary_dim", 24}}, kHalf}),
            "rotary_dim is 24; a multiple of 16 from 16 to 64 was expected");
  EXPECT_EQ(refusal({"", {{"rotary_dim", 0}}, kHalf}), "rotary_dim is 0; a multiple of 16 from 16 to 64 was expected");
  EXPECT_EQ(refusal({"", {{"rotary_dim", 80}}, kHalf}),
            "rotary_dim is 80; a multiple of 16 from 16 to 64 was expected");
  EXPECT_EQ(refusal({"", {{"rotary_dim", 32}}}), "--rotary-dim needs --rotary half or interleaved");
  EXPECT_EQ(refusal({"", {}, {}, kTable}), "--rotary-table needs --rotary half or interleaved");
  EXPECT_EQ(refusal({"", {}, {}, {}, {{"rotary_base", 500}}}), "--rotary-base needs --rotary half or interleaved");
  for (const double base : {1.0, 0.0, -3.0, 2e9, static_cast<double>(NAN)})
    EXPECT_EQ(refusal({"", {}, kHalf, {}, {{"rotary_base", base}}}).find("rotary_base is "), 0u) << base;
  EXPECT_EQ(refusal({"", {}, kHalf, {}, {{"rotary_base", 1}}}),
            "rotary_base is 1; a number above 1, at most 1000000000, was expected");
  EXPECT_EQ(refusal({"", {}, kHalf, {}, {{"rotary_base", 1e9}}}), "accepted");
  EXPECT_EQ(refusal({"", {}, kHalf, kTable, {{"rotary_base", 500}}}),
            "--rotary-base and --rotary-table: the table has the cosines and sines; leave one out");
  EXPECT_EQ(refusal({"", {{"L", 40}}, kHalf, kTable}),
            "--rotary-table: with fewer keys than queries positions begin at -3; the table has no such row");
  EXPECT_EQ(refusal({"", {{"L", 40}}, kHalf}), "accepted");
  EXPECT_EQ(refusal({"", {}, {{"lengths", "7,3"}}, kAppend}),
            "--lengths and --append: packed sequences have no cache; leave one out");
  EXPECT_EQ(refusal({"", {{"L", 38}}, {}, kAppend}),
            "L is 38, but every sequence has 37 keys; with --append at most as many queries as keys were expected");
  EXPECT_EQ(refusal({"", {{"L", 37}}, {}, kAppend}), "accepted");
  EXPECT_EQ(refusal({"", {{"L", 10}}, {{"kv_lengths", "40,9"}}, kAppend}),
            "L is 10, but sequence 1 of --kv-lengths has 9 keys; with --append at most as many queries as keys were "
            "expected");
  EXPECT_EQ(refusal({"", {{"L", 9}}, {{"kv_lengths", "40,9"}}, kAppend}), "accepted");
  EXPECT_EQ(refusal({"", {{"d", 80}}, {}, {}, {}, true}), "d is 80; with --kv-dtype fp8 a multiple of 32 was expected");
  EXPECT_EQ(refusal({"", {}, {{"kv_scales", "head"}}}), "--kv-scales needs --dtype fp8 or --kv-dtype fp8");
  EXPECT_EQ(refusal({"", {}, {{"kv_scales", "tensor"}}}), "--kv-scales needs --dtype fp8 or --kv-dtype fp8");
  EXPECT_EQ(refusal({"", {}, {}, {{"kv_scale_per_head", true}}}), "--kv-scales needs --dtype fp8 or --kv-dtype fp8");
  EXPECT_EQ(refusal({"", {}, {{"kv_scales", "row"}}, {}, {}, true}), "kv_scales is 'row'; tensor or head was expected");
  EXPECT_EQ(refusal({"", {}, {}, {}, {}, false, DType::kFp8}), "accepted");
  EXPECT_EQ(refusal({"", {{"d", 80}}, {}, {}, {}, false, DType::kFp8}),
            "d is 80; with --dtype fp8 a multiple of 32 was expected");
  EXPECT_EQ(refusal({"", {}, {{"kv_scales", "head"}}, {}, {}, false, DType::kFp8}), "accepted");
  EXPECT_EQ(refusal({"", {}, {}, {}, {}, true, DType::kFp8}),
            "--dtype fp8 and --kv-dtype: K and V are e4m3 already; leave it out");
  const std::string other = "; leave it out, or use --kv-dtype fp8 with a 16-bit dtype";
  EXPECT_EQ(refusal({"", {}, {{"rotary", "half"}}, {}, {}, false, DType::kFp8}),
            "--dtype fp8 and --rotary: rotated elements are not e4m3" + other);
  EXPECT_EQ(refusal({"", {}, {}, kAppend, {}, false, DType::kFp8}),
            "--dtype fp8 and --append: Q, K and V of one call have the same format" + other);
  EXPECT_EQ(refusal({"", {{"page", 16}}, {}, {}, {}, false, DType::kFp8}), "accepted");
  Problem p = complete({"plain"});
  p.dtypes["kv"] = DType::kBf16;
  EXPECT_EQ(op().complete(p).error().message,
            "kv_dtype is bf16; fp8 was expected (without --kv-dtype K and V have the dtype of Q)");
  // Names of its own tensors, where there are any.
  p = complete({"half", {}, kHalf, kAppend});
  p.texts["score"] = "s + K_new";
  p.args = {{"K_new", DType::kFp32, {}}};
  EXPECT_EQ(op().complete(p).error().message, "--arg K_new:fp32: K_new is a tensor of attention itself");
  p = complete({"plain"});
  p.texts["score"] = "s + K_new";
  p.args = {{"K_new", DType::kFp32, {}}};
  EXPECT_TRUE(op().complete(p));
}

TEST(PrologueOp, DefaultsAndChoicesThatAreTheDefaultLeaveNoTrace) {
  const Problem p = complete({"half", {}, kHalf});
  EXPECT_EQ(p.dims.at("rotary_dim"), 64);
  EXPECT_EQ(p.reals.at("rotary_base"), 10000);
  EXPECT_FALSE(complete({"table", {}, kHalf, kTable}).reals.count("rotary_base"));
  const std::string plain = to_string(complete({"plain"}));
  EXPECT_EQ(to_string(complete({"plain", {}, {{"rotary", ""}, {"kv_scales", ""}}, {{"append", false}}})), plain);
  EXPECT_EQ(to_string(complete({"fp8", {}, {{"kv_scales", "tensor"}}, {}, {}, true})),
            to_string(complete({"fp8", {}, {}, {}, {}, true})));
  for (const Case& c : cases()) {
    const Problem once = complete(c);
    EXPECT_NE(to_string(once), plain) << c.name;
    EXPECT_EQ(to_string(*op().complete(once)), to_string(once)) << c.name;
  }
  const std::string all = to_string(complete(
      *std::find_if(cases().begin(), cases().end(), [](const Case& c) { return c.name == "fp8 rotated append"; })));
  for (const char* part : {" append=1", " kv=fp8", " kv_scale_per_head=1", " rotary='half'", " rotary_dim=64"})
    EXPECT_NE(all.find(part), std::string::npos) << all;
}

TEST(PrologueOp, TheScopeNamesWhatTemplatesNeed) {
  const auto text = [](const expr::Map& scope) {
    std::string out;
    for (const char* name : {"rotary", "rotary_dim", "rotary_table", "rotates_keys", "append", "kv_fp8",
                             "kv_scale_per_head", "kv_esize", "prologue"})
      out += scope.at(name).str() + " ";
    return out + std::to_string(scope.at("rotary_turns").list()->size());
  };
  EXPECT_EQ(text(op().scope(complete({"plain"}))), " 0 False False False False False 2 False 0");
  EXPECT_EQ(text(op().scope(complete({"", {}, kHalf}))), "half 64 False True False False False 2 True 32");
  EXPECT_EQ(text(op().scope(complete({"", {{"rotary_dim", 32}}, kInterleaved, kTable}))),
            "interleaved 32 True True False False False 2 True 0");
  EXPECT_EQ(text(op().scope(complete({"", {}, {}, kAppend}))), " 0 False False True False False 2 True 0");
  EXPECT_EQ(text(op().scope(complete({"", {{"page", 16}}, {{"rotary", "half"}, {"kv_scales", "head"}}, {}, {}, true}))),
            "half 64 False False False True True 1 True 32");
  // Keys are in a cache with any of --append, --page, --kv-lengths; a packed batch has none.
  const auto rotates = [](Dims dims, Texts texts, Flags flags) {
    texts["rotary"] = "half";
    return *op().scope(complete({"", std::move(dims), std::move(texts), std::move(flags)}))
                .at("rotates_keys")
                .as<bool>();
  };
  EXPECT_TRUE(rotates({}, {}, {}));
  EXPECT_TRUE(rotates({}, {{"lengths", "7,3"}}, {}));
  EXPECT_FALSE(rotates({}, {}, kAppend));
  EXPECT_FALSE(rotates({{"page", 16}}, {}, {}));
  EXPECT_FALSE(rotates({}, {{"kv_lengths", "30,9"}}, {}));

  const auto strides = [](const Problem& p, const std::string& prefix) {
    const expr::Map scope = op().scope(p);
    std::vector<int64_t> out;
    for (const char* name : {"_batch_stride", "_row_stride", "_head_stride"})
      out.push_back(*scope.at(prefix + name).as<int64_t>());
    return out;
  };
  using Strides = std::vector<int64_t>;
  EXPECT_EQ(strides(complete({"plain"}), "k_new"), (Strides{0, 0, 0}));
  Problem p = complete({"", {}, {{"kv_layout", "hnd"}}, kAppend, {}, true});
  for (const char* prefix : {"k_new", "v_new"}) EXPECT_EQ(strides(p, prefix), (Strides{4 * 2 * 64, 2 * 64, 64}));
  EXPECT_EQ(strides(p, "k"), (Strides{37 * 2 * 64, 64, 37 * 64}));
  p.dims[attention::kSpread] = 1;
  // Rows begin at multiples of 16 bytes.
  EXPECT_EQ(strides(p, "k_new"), (Strides{2 * ((4 + 256) * 72 + 16) + 32, 72, (4 + 256) * 72 + 16}));
  EXPECT_EQ(strides(p, "k"), (Strides{2 * ((37 + 256) * 80 + 16) + 32, 80, (37 + 256) * 80 + 16}));
}

TEST(PrologueOp, TurnsAreFixedPointFractions) {
  const Problem p = complete({"", {{"rotary_dim", 32}}, kHalf, {}, {{"rotary_base", 500}}});
  const expr::Map scope = op().scope(p);
  const expr::List& turns = *scope.at("rotary_turns").list();
  ASSERT_EQ(turns.size(), 16u);
  EXPECT_EQ(turns[0].str().substr(0, 12), "0x28be60db93");  // 1 / (2 pi)
  for (size_t i = 0; i < turns.size(); ++i) {
    const std::string text = turns[i].str();
    ASSERT_EQ(text.size(), 21u);
    ASSERT_EQ(text.substr(18), "ull");
    const uint64_t turn = std::stoull(text, nullptr, 16);
    for (const uint64_t position : {uint64_t{1}, uint64_t{1000}, (uint64_t{1} << 24) - 1}) {
      const double exact = static_cast<double>(position) * std::pow(500.0, -2.0 * static_cast<double>(i) / 32);
      const double angle = std::ldexp(static_cast<double>(turn * position), -64) * 2 * M_PI;
      EXPECT_NEAR(std::cos(angle), std::cos(exact), 0x1p-26);
      EXPECT_NEAR(std::sin(angle), std::sin(exact), 0x1p-26);
    }
  }
}

TEST(PrologueOp, BuffersHaveTheirRolesAndSizes) {
  const auto text = [](const Problem& p) {
    std::string out;
    for (const Buffer& b : op().buffers(p))
      out += fmt::format("{}:{}:{}{} ", b.name, to_string(b.dtype), b.bytes,
                         b.role == Buffer::Role::kUpdated  ? "*"
                         : b.role == Buffer::Role::kOutput ? "!"
                                                           : "");
    return out;
  };
  const std::string q = std::to_string(2 * 4 * 4 * 64 * 2), kv = std::to_string(2 * 37 * 2 * 64 * 2),
                    fresh = std::to_string(2 * 4 * 2 * 64 * 2), kv8 = std::to_string(2 * 37 * 2 * 64);
  EXPECT_EQ(text(complete({"", {{"rotary_dim", 32}}, kHalf, {{"append", true}, {"rotary_table", true}}})),
            "Q:bf16:" + q + " K:bf16:" + kv + "* V:bf16:" + kv + "* O:bf16:" + q + "! K_new:bf16:" + fresh +
                " V_new:bf16:" + fresh + " rotary_table:fp32:" + std::to_string(37 * 32 * 4) + " ");
  EXPECT_EQ(text(complete({"", {}, {{"kv_scales", "head"}}, {}, {}, true})),
            "Q:bf16:" + q + " K:fp8:" + kv8 + " V:fp8:" + kv8 + " O:bf16:" + q + "! k_scale:fp32:8 v_scale:fp32:8 ");
  EXPECT_EQ(text(complete({"", {}, {}, {}, {}, true})).substr(text(complete({"", {}, {}, {}, {}, true})).find("k_sc")),
            "k_scale:fp32:4 v_scale:fp32:4 ");
}

TEST(PrologueOp, RequiredWorkCountsTheCacheOnceInItsFormat) {
  const double pairs = 2 * 4 * 4 * 37, qo = 2 * (2 * 4 * 4 * 64 * 2);
  const auto half = op().required(complete({"", {}, kHalf}));
  ASSERT_TRUE(half);
  EXPECT_EQ(half->mma_flops, 4 * pairs * 64);
  EXPECT_EQ(half->dram_bytes, qo + 2 * (2 * 37 * 2 * 64 * 2));
  EXPECT_EQ(op().required(complete({"", {}, {}, kAppend}))->dram_bytes, half->dram_bytes + 2 * (2 * 4 * 2 * 64 * 2));
  EXPECT_EQ(op().required(complete({"", {}, {}, {}, {}, true}))->dram_bytes, qo + 2 * (2 * 37 * 2 * 64) + 8);
  // Pages: 100 keys of one sequence in fp8.
  EXPECT_EQ(
      op().required(complete({"", {{"page", 16}, {"batch", 1}}, {{"kv_lengths", "100"}}, {}, {}, true}))->dram_bytes,
      qo / 2 + 2 * (100 * 2 * 64) + 8 + 4 + 7 * 4);
  // Rotation has no FLOPs, and a plain problem has the same tensors.
  EXPECT_EQ(op().required(complete({"plain"}))->mma_flops, half->mma_flops);
  EXPECT_EQ(op().required(complete({"plain"}))->dram_bytes, half->dram_bytes);
  const Problem ragged = complete({"", {{"batch", 2}}, {{"kv_lengths", "10,30"}, {"rotary", "half"}}});
  EXPECT_EQ(op().distinct_bytes(ragged, {"Q_plain", DType::kBf16, 600, Buffer::Role::kTemporary}), 600);
  EXPECT_EQ(op().distinct_bytes(ragged, {"K_plain", DType::kBf16, 600, Buffer::Role::kTemporary}), 400);
  EXPECT_TRUE(op().by_rows("Q_plain") && op().by_rows("K_plain") && op().by_rows("V_plain"));
  EXPECT_FALSE(op().by_rows("S") || op().by_rows("partial_O"));
}

TEST(PrologueOp, ThinProblemsKeepANewKeyForEachQuery) {
  const auto least = [](const Case& c) {
    const auto thin = op().thinner(complete(c));
    return thin.empty() ? int64_t{0} : thin.front().problem.dims.at("kv_len");
  };
  EXPECT_EQ(least({"", {{"L", 100}, {"kv_len", 200}}, kHalf}), 24);
  EXPECT_EQ(least({"", {{"L", 100}, {"kv_len", 200}}, kHalf, kTable}), 104);
  EXPECT_EQ(least({"", {{"L", 100}, {"kv_len", 200}}, {}, kAppend}), 104);
  EXPECT_EQ(least({"", {{"L", 200}, {"kv_len", 200}}, {}, kAppend}), 0);
  EXPECT_FALSE(op().fed(complete({"", {}, kHalf})));
  EXPECT_TRUE(op().fed(complete({"plain"})));
}

// The first head of a group answers for the cache: slices of large problems have one.
TEST(PrologueOp, OneSampledHeadIsTheFirstOfItsGroup) {
  int without = 0;
  for (const auto& [heads, kv_heads] : {std::pair{4, 2}, {28, 4}, {8, 1}, {6, 6}, {1, 1}}) {
    const auto sampled = [&, heads = heads, kv_heads = kv_heads](Flags flags) {
      return op().sampled_heads(complete({"", {{"heads", heads}, {"kv_heads", kv_heads}}, {}, std::move(flags)}));
    };
    const auto has_first = [group = heads / kv_heads](const std::vector<int64_t>& in) {
      return std::any_of(in.begin(), in.end(), [&](int64_t h) { return h % group == 0; });
    };
    const std::vector<int64_t> plain = sampled({}), with = sampled(kAppend);
    without += !has_first(plain);
    EXPECT_TRUE(has_first(with)) << heads;
    EXPECT_EQ(with.size(), plain.size() + !has_first(plain));
    EXPECT_EQ(with.back(), heads - 1);
  }
  EXPECT_GT(without, 0);
}

TEST(PrologueOp, ReportsNameTheFormatOfTheCache) {
  const Json json = problem_json(complete({"", {}, {{"kv_scales", "head"}, {"rotary", "half"}}, kAppend, {}, true}));
  EXPECT_EQ(json.at("kv_dtype"), "fp8");
  EXPECT_EQ(json.at("kv_scale_per_head"), true);
  EXPECT_EQ(json.at("append"), true);
  EXPECT_EQ(json.at("rotary"), "half");
  EXPECT_EQ(json.at("rotary_dim"), 64);
  EXPECT_EQ(json.at("rotary_base"), 10000);
}

TEST(PrologueOp, ReducedProblemsAndPatternsAreComplete) {
  for (const Case& c : cases()) {
    const Problem reduced = op().reduced(complete(c));
    EXPECT_TRUE(op().complete(reduced)) << c.name;
    for (InputPattern pattern : op().patterns(reduced)) {
      const Problem p = op().with_pattern(reduced, pattern);
      EXPECT_EQ(p.dims.at("kv_heads"), 2) << c.name;
      EXPECT_TRUE(op().complete(p)) << c.name << ": " << op().complete(p).error().message;
    }
  }
}

// ---- inputs ------------------------------------------------------------------------------------

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

TEST_P(EveryCacheCase, FillGivesTheSameBytesInAnyPieces) {
  for (InputPattern pattern : kPatterns) {
    const Problem p = spread(complete(GetParam()), pattern);
    for (const Buffer& b : op().buffers(p)) {
      if (!b.has_contents()) continue;
      std::vector<std::byte> whole(b.bytes), pieces(b.bytes);
      op().fill(p, pattern, b.name, 0, whole);
      for (size_t at = 0, step = 1; at < b.bytes; at += step, step = step * 5 % 997 + 1)
        op().fill(p, pattern, b.name, at, std::span(pieces).subspan(at, std::min<size_t>(step, b.bytes - at)));
      EXPECT_EQ(whole, pieces) << b.name;
    }
  }
}

// A kernel that reads the place of a new key before it was written gets NaN; all others are numbers. Rows of the spread
// layout begin at multiples of 16 bytes.
TEST_P(EveryCacheCase, NewKeysAreNotInTheCacheYet) {
  for (InputPattern pattern : {InputPattern::kNormal, InputPattern::kOneHot}) {
    const Problem p = spread(complete(GetParam()), pattern);
    const World world(p, pattern);
    const Shape s(p);
    for (const char* name : {"K", "V"})
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.kv_heads; ++h)
          for (int64_t j = 0; j < s.keys(b); ++j) {
            const int64_t at = world.key(*name == 'V', b, h, j);
            ASSERT_EQ(at, s.place_of_key(*name == 'V', b, h, j));
            ASSERT_EQ(at * size_of(s.kv_dtype()) % 16, 0);
            for (int64_t c = 0; c < s.d; ++c)
              ASSERT_EQ(std::isnan(world.get(name, at + c)), world.is("append") && j >= s.keys(b) - s.q_len)
                  << name << " " << b << " " << h << " " << j;
          }
    if (!s.append()) continue;
    for (const char* name : {"K_new", "V_new"})
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t j = 0; j < s.q_len; ++j)
          for (int64_t c = 0; c < s.d; ++c) ASSERT_TRUE(std::isfinite(world.get(name, world.fresh(b, 1, j) + c)));
  }
}

TEST(PrologueInputs, APageWithNewKeysHasOneSequence) {
  const auto table = [](int64_t length, Flags flags) {
    const Problem p =
        complete({"", {{"L", length}, {"batch", 4}, {"page", 16}}, {{"kv_lengths", "40,33,20,19"}}, flags});
    const auto entries = filled<int32_t>(p, "block_table");
    return std::pair{entries[0] == entries[3], entries[6] == entries[9]};  // three entries for each sequence
  };
  EXPECT_EQ(table(4, {}), (std::pair{true, true}));
  EXPECT_EQ(table(3, kAppend), (std::pair{true, true}));
  EXPECT_EQ(table(4, kAppend), (std::pair{true, false}));  // 19 - 4 is in the first page
  EXPECT_EQ(table(17, kAppend), (std::pair{true, false}));
  EXPECT_EQ(table(18, kAppend), (std::pair{false, false}));
}

TEST(PrologueInputs, TheTableHasCosinesThenSines) {
  const Problem p = complete({"", {{"rotary_dim", 32}}, kInterleaved, kTable});
  const auto table = filled<float>(p, "rotary_table");
  ASSERT_EQ(table.size(), 37u * 32);
  for (size_t position = 0; position < 37; ++position)
    for (size_t i = 0; i < 16; ++i) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -static_cast<double>(i) / 16);
      ASSERT_NEAR(table[position * 32 + i], std::cos(angle), 0x1p-24);
      ASSERT_NEAR(table[position * 32 + 16 + i], std::sin(angle), 0x1p-24);
    }
}

TEST(PrologueInputs, AnglesAreExactAtEveryPosition) {
  const Problem p = complete(
      {"", {{"rotary_dim", 32}, {"kv_len", 1 << 20}, {"L", (1 << 20) + 700}}, kHalf, {}, {{"rotary_base", 500}}});
  const Shape s(p);
  for (const int64_t position : {-700, -513, -512, -1, 0, 1, 255, 256, 5000, 65536, (1 << 20) - 1})
    for (int64_t i = 0; i < 16; ++i) {
      std::vector<double> row(64, 0.0);
      row[static_cast<size_t>(i)] = 2;
      row[40] = 5;
      s.prologue->rotate(position, row.data());
      const long double angle =
          static_cast<long double>(position) * std::pow(500.0L, -static_cast<long double>(i) / 16);
      EXPECT_NEAR(row[static_cast<size_t>(i)], 2 * static_cast<double>(std::cos(angle)), 1e-12) << position << " " << i;
      EXPECT_NEAR(row[static_cast<size_t>(i) + 16], 2 * static_cast<double>(std::sin(angle)), 1e-12) << position;
      EXPECT_EQ(row[40], 5);
      s.prologue->rotate(position, row.data(), true);
      EXPECT_NEAR(row[static_cast<size_t>(i)], 2, 1e-12);
      EXPECT_NEAR(row[static_cast<size_t>(i) + 16], 0, 1e-12);
    }
}

// Codes of keys: every element has one magnitude after the rotation and, but for keys that are stored rotated, not
// before.
TEST(PrologueInputs, RotatedRowsHaveTheStructure) {
  for (const Case& c : cases()) {
    if (!c.texts.count("rotary")) continue;
    const Problem p = complete(c);
    const Shape s(p);
    const Inputs inputs(s, InputPattern::kOneHot);
    std::vector<double> memory(s.d), row(s.d);
    for (const Tensor tensor : {Tensor::kQ, Tensor::kK})
      for (int64_t j = 0; j < (tensor == Tensor::kQ ? s.rows(0) : s.keys(0)); ++j) {
        inputs.row(tensor, 0, 1, j, memory.data());
        inputs.operand(tensor, 0, 1, j, row.data(), nullptr);
        double unit = 0, before = 0, after = 0;
        for (double x : row) unit += x * x / static_cast<double>(s.d);
        unit = std::sqrt(unit);
        for (double x : row) after = std::max(after, std::fabs(std::fabs(x) / unit - 1));
        double memory_unit = 0;
        for (double x : memory) memory_unit += x * x / static_cast<double>(s.d);
        for (double x : memory) before = std::max(before, std::fabs(std::fabs(x) / std::sqrt(memory_unit) - 1));
        EXPECT_LT(after, 0.03) << c.name << " " << j;
        const bool stored_rotated = tensor == Tensor::kK && !s.rotates_keys() && j < s.first_new(0);
        const int64_t position = tensor == Tensor::kQ ? s.position(0, j) : j;
        if (stored_rotated || position == 0) {
          EXPECT_LT(before, 1e-9) << c.name << " " << j;
        } else {
          EXPECT_GT(before, 0.2) << c.name << " " << j;
        }
      }
  }
}

// The gap of one-hot scores remains, so that O is the row of V of one key: of e4m3 its number times the scale.
TEST(PrologueInputs, OneHotSelectsOneKeyExactly) {
  for (const Case& c : cases()) {
    if (c.reals.count("softcap")) continue;
    const Problem p = spread(complete(c), InputPattern::kOneHot);
    const Shape s(p);
    const Inputs inputs(s, InputPattern::kOneHot);
    std::vector<double> q(s.d), k(s.d), v(s.d);
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t h = 0; h < s.heads; ++h)
        for (int64_t r = 0; r < s.rows(b); ++r) {
          const int64_t target = inputs.target(b, h, r);
          inputs.operand(Tensor::kQ, b, h, r, q.data(), nullptr);
          const auto score = [&](int64_t j) {
            inputs.operand(Tensor::kK, b, h / s.group(), j, k.data(), nullptr);
            return s.scale * std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
          };
          const double hot = score(target);
          for (int64_t j = 0; j < s.allowed(b, r); ++j)
            ASSERT_GT(j == target ? attention::kGap : hot - score(j), 100)
                << c.name << " " << b << " " << h << " " << r << " " << j;
          const auto band =
              attention::reference_of(s, InputPattern::kOneHot, attention::Rounding::kFused, {b, h, r, r + 1});
          inputs.operand(Tensor::kV, b, h / s.group(), target, v.data(), nullptr);
          for (int64_t i = 0; i < s.d; ++i) {
            ASSERT_NEAR(band->o[static_cast<size_t>(i)], v[static_cast<size_t>(i)], 1e-12) << c.name;
            ASSERT_EQ(v[static_cast<size_t>(i)], rounded(v[static_cast<size_t>(i)], s.dtype)) << c.name;
          }
        }
  }
}

TEST(PrologueInputs, ScalesDifferByHeadAndKeepPatternsInRange) {
  const Problem p = complete({"", {{"heads", 6}, {"kv_heads", 6}}, {{"kv_scales", "head"}}, {}, {}, true});
  for (InputPattern pattern : kPatterns) {
    const auto k = filled<float>(p, "k_scale", pattern), v = filled<float>(p, "v_scale", pattern);
    ASSERT_EQ(k.size(), 6u);
    for (const auto& scales : {k, v}) {
      EXPECT_NE(scales[0], scales[1]);
      for (float x : scales) {
        int exponent;
        EXPECT_EQ(std::frexp(x, &exponent) == 0.5, pattern != InputPattern::kNormal) << x;
      }
    }
    EXPECT_NE(k, v);
    for (const char* name : {"K", "V"})
      for (uint8_t code : filled<uint8_t>(p, name, pattern)) ASSERT_TRUE((code & 127) == 127 || (code & 127) < 126);
    // Small integers and codes are the numbers of the pattern.
    if (pattern != InputPattern::kZeroQuery) continue;
    const Inputs inputs(Shape(p), pattern);
    double row[64];
    for (int64_t h = 0; h < 6; ++h) {
      inputs.operand(Tensor::kV, 0, h, 3, row, nullptr);
      for (double x : row) {
        const double n = x / v[static_cast<size_t>(h)];
        ASSERT_TRUE(n == std::nearbyint(n) && n >= -5 && n <= 10) << n;
      }
    }
  }
}

TEST(PrologueInputs, AHeadHoldsTheSameNumbersInTheReducedProblem) {
  const Case c{"", {{"page", 16}}, {{"kv_scales", "head"}, {"rotary", "half"}}, kAppend, {}, true};
  const Problem p = complete(c), r = op().reduced(p);
  const Shape big(p), small(r);
  double a[64], b[64];
  for (const Tensor tensor : {Tensor::kQ, Tensor::kK, Tensor::kV})
    for (const int64_t row : {0, 3}) {
      Inputs(big, InputPattern::kNormal).operand(tensor, 1, 0, row, a, nullptr);
      Inputs(small, InputPattern::kNormal).operand(tensor, 1, 0, row, b, nullptr);
      for (int i = 0; i < 64; ++i) EXPECT_EQ(a[i], b[i]);
    }
}

}  // namespace
}  // namespace roofgen::attention_prologue_op_test

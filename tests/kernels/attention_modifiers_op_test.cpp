// Attention modifiers without a kernel: rejected input with its messages, the reference against explicit formulas, and
// the count of visible pairs.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_reference.h"
#include "generator/ops/elements.h"
#include "generator/ops/float16.h"
#include "generator/ops/op.h"

namespace roofgen::attention_modifiers_op_test {
namespace {

using attention::Inputs;
using attention::Shape;
using attention::Tensor;
using Texts = std::map<std::string, std::string>;

const Op& op() { return **find_op("attention"); }

Problem given(std::map<std::string, int64_t> dims, Texts texts, std::vector<TensorArg> args = {},
              std::map<std::string, bool> flags = {}, std::map<std::string, double> reals = {}) {
  Problem p{"attention", std::move(dims), DType::kBf16, std::move(flags), std::move(reals)};
  p.texts = std::move(texts);
  p.args = std::move(args);
  return p;
}

Problem complete(Problem p) {
  auto done = op().complete(std::move(p));
  EXPECT_TRUE(done) << to_string(done.error());
  return *done;
}

std::string refusal(Problem p) {
  auto done = op().complete(std::move(p));
  if (done) return "accepted";
  EXPECT_EQ(done.error().exit, Exit::kUsage);
  return to_string(done.error());
}

const std::map<std::string, int64_t> kDims{{"L", 64}, {"d", 64}};

TEST(AttentionModifiersOp, RefusesInvalidModifiersWithACaret) {
  EXPECT_EQ(refusal(given(kDims, {{"mask", "k < s"}})),
            "--mask:1:5: error: a mask may not depend on the score: it decides which tiles are computed\n"
            "    1 | k < s\n"
            "      |     ^");
  EXPECT_EQ(refusal(given({{"L", 1 << 20}, {"d", 64}}, {{"mask", "q * k > 5"}})),
            "--mask:1:1: error: this can become 1099509530625, past the 32 bits that kernels compute indices with\n"
            "    1 | q * k > 5\n"
            "      | ^~~~~");
  EXPECT_EQ(refusal(given(kDims, {{"lengths", "12,x,5"}})),
            "--lengths:1:4: error: a length was expected; lengths are whole numbers with commas between them, like "
            "512,1024,33\n"
            "    1 | 12,x,5\n"
            "      |    ^");
  EXPECT_NE(refusal(given(kDims, {{"lengths", "12,0"}})).find("a length of 1 to 16777216 was expected"),
            std::string::npos);
  EXPECT_NE(refusal(given(kDims, {{"lengths", "12,"}})).find("a length was expected"), std::string::npos);
  EXPECT_NE(refusal(given({{"L", 64}, {"d", 64}}, {{"lengths", "12,15"}}))
                .find("L is 64, but --lengths gives 15; leave it out"),
            std::string::npos);
  EXPECT_NE(refusal(given(kDims, {{"score", "s + slop[h]"}}, {{"slope", DType::kFp32, {"h"}}})).find("slope"),
            std::string::npos);
  EXPECT_NE(refusal(given(kDims, {{"score", "s / 2 +"}})).find("--score"), std::string::npos);
  EXPECT_NE(refusal(given(kDims, {{"score", "s - max(s)"}})).find("no kernel of attention holds a row of scores"),
            std::string::npos);
  EXPECT_NE(
      refusal(given(kDims, {{"score", "s + x[m]"}}, {{"x", DType::kFp32, {"m"}}})).find("attention has no index m"),
      std::string::npos);
  EXPECT_NE(refusal(given(kDims, {{"score", "s + 1"}}, {{"x", DType::kFp32, {"h"}}}))
                .find("neither --score nor --mask reads x"),
            std::string::npos);
  EXPECT_NE(refusal(given(kDims, {}, {{"x", DType::kFp32, {"h"}}})).find("needs --score or --mask"), std::string::npos);
  EXPECT_NE(refusal(given(kDims, {{"score", "s + O[h]"}}, {{"O", DType::kFp32, {"h"}}}))
                .find("O is a tensor of attention itself"),
            std::string::npos);
  EXPECT_NE(
      refusal(given({{"L", 64}, {"kv_len", 60}, {"d", 64}}, {{"score", "s + x[q]"}}, {{"x", DType::kFp32, {"q"}}}))
          .find("q begins at -4"),
      std::string::npos);
  EXPECT_NE(refusal(given(kDims, {}, {}, {}, {{"softcap", -1.0}})).find("softcap is -1; 0.001 to 1000000 was expected"),
            std::string::npos);
}

TEST(AttentionModifiersOp, LengthsImplyTheBatch) {
  const Problem p = complete(given({{"d", 64}, {"heads", 3}}, {{"lengths", "33,150,1"}}, {}, {{"lse", true}}));
  EXPECT_EQ(p.dims.at("L"), 150);
  EXPECT_EQ(p.dims.at("kv_len"), 150);
  EXPECT_EQ(p.dims.at("batch"), 3);
  EXPECT_EQ(op().extent(p).rows, 150);
  EXPECT_EQ(op().extent(p).batch_rows, (std::vector<int64_t>{33, 150, 1}));
  for (const Buffer& b : op().buffers(p)) {
    if (b.name == "cu_seqlens") {
      int32_t values[4];
      op().fill(p, InputPattern::kNormal, b.name, 0, std::as_writable_bytes(std::span(values)));
      EXPECT_EQ(b.bytes, sizeof values);
      EXPECT_EQ(std::vector(values, values + 4), (std::vector{0, 33, 183, 184}));
    } else {
      EXPECT_EQ(b.bytes, b.name == "LSE" ? 184u * 3 * 4 : 184u * 3 * 64 * 2) << b.name;
    }
  }
  const Problem reduced = op().reduced(p);
  EXPECT_EQ(reduced.texts.at("lengths"), "1,150");
  EXPECT_TRUE(op().complete(reduced));
}

TEST(AttentionModifiersOp, ReducedKeepsHeadsApartWhereTheyDiffer) {
  const auto heads = [](Texts texts, std::vector<TensorArg> args) {
    return op().reduced(
        complete(given({{"L", 64}, {"d", 64}, {"heads", 8}, {"batch", 4}}, std::move(texts), std::move(args))));
  };
  EXPECT_EQ(heads({{"mask", "q >= k"}}, {}).dims.at("heads"), 1);
  EXPECT_EQ(heads({{"score", "s + slope[h]"}}, {{"slope", DType::kFp32, {"h"}}}).dims.at("heads"), 2);
  EXPECT_EQ(heads({{"mask", "k > h"}}, {}).dims.at("heads"), 2);
  EXPECT_EQ(heads({{"mask", "k > h"}}, {}).dims.at("batch"), 1);
  EXPECT_EQ(heads({{"mask", "k > b"}}, {}).dims.at("batch"), 2);
}

TEST(AttentionModifiersOp, CountsVisiblePairsExactly) {
  for (const auto& [q, kv] : {std::pair<int64_t, int64_t>{97, 97}, {50, 133}, {120, 41}})
    for (const char* mask : {"q >= k", "q >= k and q - k < 30", "abs(q - k) <= 7", "(q - k) % 3 == 0",
                             "k < 4 or q - k < 9", "k < 0", "q // 16 == k // 16"})
      for (bool causal : {false, true}) {
        SCOPED_TRACE(mask);
        const Shape s(complete(given({{"L", q}, {"kv_len", kv}, {"d", 64}, {"heads", 2}, {"batch", 3}},
                                     {{"mask", mask}}, {}, {{"causal", causal}})));
        double pairs = 0;
        for (int64_t r = 0; r < q; ++r) {
          std::vector<char> visible(static_cast<size_t>(kv), 1);
          s.mask(InputPattern::kNormal, 0, 0, r, 0, visible);
          const double row = static_cast<double>(std::count(visible.begin(), visible.end(), char{1}));
          EXPECT_EQ(s.pairs(0, 0, r, r + 1), row);
          pairs += row;
        }
        EXPECT_EQ(s.pairs(0, 0, 0, q), pairs);
        EXPECT_EQ(s.all_pairs(), 6 * pairs);
      }
  const Shape window(complete(given({{"L", 16384}, {"d", 64}}, {{"mask", "q >= k and q - k < 1024"}})));
  EXPECT_EQ(window.pairs(0, 0, 0, 16384), 1024.0 * 1025 / 2 + 1024.0 * (16384 - 1024));
  const Shape written(complete(given({{"L", 300}, {"kv_len", 500}, {"d", 64}}, {{"mask", "q >= k"}})));
  const Shape causal(complete(given({{"L", 300}, {"kv_len", 500}, {"d", 64}}, {}, {}, {{"causal", true}})));
  EXPECT_EQ(written.pairs(0, 0, 0, 300), causal.pairs(0, 0, 0, 300));
}

// The reference against an explicit formula.
TEST(AttentionModifiersOp, TheReferenceAgreesWithThePlainFormula) {
  const TensorArg slope{"slope", DType::kFp32, {"h"}};
  Problem p = given({{"L", 90}, {"kv_len", 300}, {"d", 64}, {"heads", 4}, {"kv_heads", 2}, {"batch", 1}},
                    {{"score", "s + 0.1 * slope[h] * (k - q)"}, {"mask", "q - k < 100 and q != 250"}}, {slope},
                    {{"causal", true}}, {{"softcap", 2.0}});
  const Shape s(complete(std::move(p)));
  double slopes[4];
  TensorContents{InputPattern::kNormal, "slope", DType::kFp32}.values(0, slopes);
  const Inputs inputs(s, InputPattern::kNormal);
  const int64_t head = 3;
  for (auto rounding : {attention::Rounding::kFused, attention::Rounding::kUnfused}) {
    const auto band = attention::reference_of(s, InputPattern::kNormal, rounding, {0, head, 0, 90});
    for (int64_t r = 0; r < 90; ++r) {
      const int64_t q = r + 210;
      std::vector<double> row(64), key(64), value(64), o(64, 0.0);
      inputs.row(Tensor::kQ, 0, head, r, row.data());
      double sum = 0;
      int64_t count = 0;
      for (int64_t k = 0; k <= q; ++k) {
        if (q - k >= 100 || q == 250) continue;
        inputs.row(Tensor::kK, 0, 1, k, key.data());
        inputs.row(Tensor::kV, 0, 1, k, value.data());
        const double raw = std::inner_product(row.begin(), row.end(), key.begin(), 0.0) / 8;
        const double e = std::exp(2 * std::tanh(raw / 2) + 0.1 * slopes[head] * static_cast<double>(k - q));
        sum += e;
        ++count;
        for (int c = 0; c < 64; ++c) o[c] += e * value[c];
      }
      const auto& facts = band->facts[r];
      EXPECT_EQ(facts.keys, count);
      if (count == 0) {
        EXPECT_EQ(facts.lse, -INFINITY);
        continue;
      }
      EXPECT_NEAR(facts.lse, std::log(sum), 1e-6);
      EXPECT_GT(facts.p_sigma, 0);
      EXPECT_LT(facts.p_sigma, 1e-4) << "the error of a softcap in fp32 is not that large";
      for (int c = 0; c < 64; ++c) EXPECT_NEAR(band->o[r * 64 + c], o[c] / sum, 1e-6);
    }
  }
}

/// P or O (stages softmax and pv) as kernels of their own compute them: scores and probabilities are rounded in
/// between. `shift`: of the rows of V.
Result<Comparison> compare_unfused(const Problem& p, InputPattern pattern, const std::string& stage,
                                   int64_t shift = 0) {
  const Shape shape(p);
  const Format16 format = format_of(p.dtype);
  const Region band{0, 0, 0, shape.q_len};
  const auto scores =
      attention::scores_of(shape, pattern, attention::Rounding::kUnfused, attention::Value::kMasked, band);
  const Inputs inputs(shape, pattern);
  std::vector<double> probabilities(static_cast<size_t>(shape.q_len * shape.kv_pitch()));
  std::vector<double> out(static_cast<size_t>(shape.q_len * shape.d)), value(static_cast<size_t>(shape.d));
  for (int64_t r = 0; r < shape.q_len; ++r) {
    std::vector<double> s;
    for (int64_t j = 0; j < shape.kv_len; ++j)
      s.push_back(j < shape.allowed(0, r) ? round_to(scores->s[r * shape.kv_pitch() + j], format) : -INFINITY);
    const double max = *std::ranges::max_element(s);
    double sum = 0;
    for (double& x : s) sum += x = x == -INFINITY ? 0 : std::exp(x - max);
    for (int64_t j = 0; j < shape.kv_len; ++j) {
      const double probability = round_to(s[j] / sum, format);
      if (probability == 0) continue;
      probabilities[static_cast<size_t>(r * shape.kv_pitch() + j)] = probability;
      inputs.operand(Tensor::kV, 0, 0, (j + shift) % shape.kv_len, value.data(), nullptr);
      for (int64_t c = 0; c < shape.d; ++c) out[r * shape.d + c] += probability * value[c];
    }
  }
  const ElementReader read = [&](const std::string& buffer, uint64_t first, std::span<double> to,
                                 std::vector<bool>* valid) -> Result<void> {
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = round_to((buffer == "P" ? probabilities : out)[first + i], format);
      (*valid)[i] = true;
    }
    return {};
  };
  return op().compare(p, pattern, "unfused", stage, band, read);
}

// bf16 rounds scores of hundreds by more than the distance of the best keys, and those of 's - 100000' beyond measure.
TEST(SlowAttentionCompare, LargeScoresAreAsInexactAsTheirFormat) {
  for (const char* score : {"s + 0.31 * (k - q)", "s - 300", "20 * s", "s - 100000"})
    for (const InputPattern pattern : {InputPattern::kNormal, InputPattern::kOneHot, InputPattern::kGrowing}) {
      SCOPED_TRACE(std::string(score) + ", " + to_string(pattern));
      const Problem p = complete(given({{"L", 640}, {"d", 32}, {"heads", 1}, {"batch", 1}},
                                       {{"score", score}, {"mask", "q >= k and q - k < 500"}}));
      const auto softmax = compare_unfused(p, pattern, "softmax"), right = compare_unfused(p, pattern, "pv"),
                 wrong = compare_unfused(p, pattern, "pv", 1);
      ASSERT_TRUE(softmax && right && wrong);
      EXPECT_EQ(softmax->failure, "");
      EXPECT_EQ(right->failure, "");
      if (std::string(score) != "s - 100000") {
        EXPECT_GT(wrong->worst, 10);
      }
    }
}

}  // namespace
}  // namespace roofgen::attention_modifiers_op_test

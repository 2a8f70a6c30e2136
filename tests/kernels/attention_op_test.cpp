// The attention op without a kernel: defaults, limits, inputs, reference and tolerance.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_parts.h"
#include "generator/ops/attention_reference.h"
#include "generator/ops/elements.h"
#include "generator/ops/float16.h"
#include "generator/ops/op.h"

namespace roofgen::attention_op_test {
namespace {

using attention::Inputs;
using attention::Shape;
using attention::Tensor;

const Op& op() { return **find_op("attention"); }

Problem problem(std::map<std::string, int64_t> dims, std::map<std::string, bool> flags = {},
                DType dtype = DType::kBf16) {
  Problem p{"attention", std::move(dims), dtype, std::move(flags), {}};
  auto done = op().complete(p);
  EXPECT_TRUE(done) << done.error().message;
  return *done;
}

std::string refusal(std::map<std::string, int64_t> dims, std::map<std::string, double> reals = {}) {
  auto done = op().complete(Problem{"attention", std::move(dims), DType::kBf16, {}, std::move(reals)});
  if (done) return "accepted";
  EXPECT_EQ(done.error().exit, Exit::kUsage);
  return done.error().message;
}

TEST(AttentionOp, DefaultsFollowTheBenchmarkConvention) {
  const Problem p = problem({{"L", 2048}, {"d", 64}});
  EXPECT_EQ(p.dims.at("batch"), 8);
  EXPECT_EQ(p.dims.at("heads"), 32);
  EXPECT_EQ(p.dims.at("kv_heads"), 32);
  EXPECT_EQ(p.dims.at("kv_len"), 2048);
  EXPECT_DOUBLE_EQ(p.reals.at("scale"), 0.125);
  EXPECT_EQ(problem({{"L", 300}, {"d", 96}, {"kv_len", 20000}}).dims.at("batch"), 1);
}

TEST(AttentionOp, RefusesImpossibleProblemsWithTheLimit) {
  EXPECT_EQ(refusal({{"L", 0}, {"d", 64}}), "L is 0; 1 to 16777216 was expected");
  EXPECT_EQ(refusal({{"L", int64_t{1} << 40}, {"d", 64}}), "L is 1099511627776; 1 to 16777216 was expected");
  EXPECT_EQ(refusal({{"L", -5}, {"d", 64}}), "L is -5; 1 to 16777216 was expected");
  EXPECT_EQ(refusal({{"L", 64}, {"d", 0}}), "d is 0; 32 to 256 was expected");
  EXPECT_EQ(refusal({{"L", 64}, {"d", 72}}), "d is 72; a multiple of 16 from 32 to 256 was expected");
  EXPECT_EQ(refusal({{"L", 64}, {"d", 64}, {"heads", 6}, {"kv_heads", 4}}),
            "heads (6) is not a multiple of kv_heads (4)");
  EXPECT_EQ(refusal({{"L", 64}, {"d", 64}, {"kv_len", 0}}), "kv_len is 0; 1 to 16777216 was expected");
  EXPECT_EQ(refusal({{"d", 64}}), "attention needs L");
  EXPECT_EQ(refusal({{"L", 64}, {"d", 64}}, {{"scale", -1.0}}), "scale is -1; 1e-06 to 16 was expected");
  EXPECT_EQ(refusal({{"L", 64}, {"d", 64}}, {{"scale", NAN}}), "scale is nan; 1e-06 to 16 was expected");
  EXPECT_NE(refusal({{"L", 1 << 24}, {"d", 256}, {"heads", 65535}, {"batch", 65535}}).find("2^40"), std::string::npos);
}

TEST(AttentionOp, AnUnknownOpGetsASuggestion) {
  EXPECT_EQ(find_op("atention").error().message, "unknown op \"atention\"; did you mean \"attention\"?");
  const auto unknown = find_op("quicksort");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message.find("unknown op \"quicksort\"; known: "), 0u) << unknown.error().message;
  EXPECT_NE(unknown.error().message.find(" attention"), std::string::npos);
  EXPECT_EQ(unknown.error().exit, Exit::kUsage);
}

TEST(AttentionOp, ReducedKeepsLengthsAndSharing) {
  const Problem p = op().reduced(problem({{"L", 257}, {"d", 64}, {"heads", 6}, {"kv_heads", 2}}));
  EXPECT_EQ(p.dims.at("L"), 257);
  EXPECT_EQ(p.dims.at("batch"), 1);
  EXPECT_EQ(p.dims.at("heads"), 2);
  EXPECT_EQ(p.dims.at("kv_heads"), 1);
  EXPECT_EQ(op().reduced(problem({{"L", 257}, {"d", 64}})).dims.at("heads"), 1);
}

TEST(Float16, EncodingRoundTripsEveryFiniteValue) {
  for (DType dtype : {DType::kBf16, DType::kFp16})
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const float x = decode16(static_cast<uint16_t>(bits), dtype);
      if (!std::isfinite(x)) continue;
      ASSERT_EQ(encode16(x, dtype), bits);
      ASSERT_EQ(round_to(x, format_of(dtype)), x);
    }
}

TEST(Float16, RoundingErrorsStayInsideTheModel) {
  for (DType dtype : {DType::kBf16, DType::kFp16}) {
    const Format16 f = format_of(dtype);
    double squares = 0, largest = 0;
    constexpr int kCount = 1 << 16;
    for (int i = 0; i < kCount; ++i) {
      const double x = std::exp2((i + 0.5) / kCount);
      const double error = std::fabs(round_to(x, f) / x - 1);
      squares += error * error;
      largest = std::max(largest, error);
    }
    EXPECT_NEAR(largest / unit_roundoff(f), 1, 0.01);
    // u / sqrt(3) is the deviation at the lower end of a binade, 1.36 times the average.
    EXPECT_NEAR(std::sqrt(squares / kCount) / (unit_roundoff(f) / std::sqrt(3.0)), 1 / 1.36, 0.01);
  }
}

TEST(AttentionInputs, NormalHasMeanZeroAndVarianceOne) {
  const Shape s(problem({{"L", 512}, {"d", 64}}));
  const Inputs inputs(s, InputPattern::kNormal);
  double sum = 0, squares = 0, row[64];
  for (int r = 0; r < 512; ++r) {
    inputs.row(Tensor::kQ, 0, 3, r, row);
    for (double x : row) sum += x, squares += x * x;
  }
  const double n = 512 * 64;
  EXPECT_LT(std::fabs(sum / n), 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(2 / n));
}

TEST(AttentionInputs, FillGivesTheSameBytesInAnyPieces) {
  const Problem p = problem({{"L", 37}, {"d", 48}, {"batch", 2}, {"heads", 6}, {"kv_heads", 3}}, {}, DType::kFp16);
  for (InputPattern pattern :
       {InputPattern::kNormal, InputPattern::kZeroQuery, InputPattern::kOneHot, InputPattern::kGrowing})
    for (const Buffer& b : op().buffers(p)) {
      if (b.role != Buffer::Role::kInput) continue;
      std::vector<std::byte> whole(b.bytes), pieces(b.bytes);
      op().fill(p, pattern, b.name, 0, whole);
      for (size_t at = 0, step = 1; at < b.bytes; at += step, step = step * 5 % 997 + 1)
        op().fill(p, pattern, b.name, at, std::span(pieces).subspan(at, std::min<size_t>(step, b.bytes - at)));
      EXPECT_EQ(whole, pieces) << b.name;
    }
}

/// A wrong map that differs from head / group anywhere differs at a sampled head.
TEST(AttentionHeads, WrongMapsDifferAtASampledHead) {
  for (int64_t kv = 1; kv <= 16; ++kv)
    for (int64_t group = 1; group <= 16; ++group) {
      const int64_t heads = kv * group;
      const std::vector<int64_t> sampled = attention::telling_heads(heads, kv);
      EXPECT_EQ(sampled.back(), heads - 1);
      EXPECT_LE(sampled.size(), 4u) << heads << "/" << kv;
      if (kv == 1 || group == 1) continue;
      const std::vector<std::function<int64_t(int64_t)>> wrong{
          [&](int64_t h) { return h % kv; }, [&](int64_t h) { return std::min(h / kv, kv - 1); },
          [&](int64_t h) { return std::min((h + 1) / group, kv - 1); }, [&](int64_t h) { return h / (group + 1); },
          [&](int64_t h) { return kv - 1 - h / group; }};
      for (const auto& map : wrong) {
        const auto differs = [&](int64_t h) { return map(h) != h / group; };
        bool anywhere = false;
        for (int64_t h = 0; h < heads; ++h) anywhere |= differs(h);
        EXPECT_EQ(std::any_of(sampled.begin(), sampled.end(), differs), anywhere) << heads << "/" << kv;
      }
    }
}

TEST(AttentionInputs, AHeadHoldsTheSameNumbersInTheReducedProblem) {
  const Problem p = problem({{"L", 33}, {"d", 64}, {"batch", 3}, {"heads", 4}});
  const Problem r = op().reduced(p);
  for (const char* name : {"Q", "K", "V"}) {
    std::vector<uint16_t> big(4 * 64), small(64);
    op().fill(p, InputPattern::kNormal, name, 7 * 4 * 64 * 2, std::as_writable_bytes(std::span(big)));
    op().fill(r, InputPattern::kNormal, name, 7 * 64 * 2, std::as_writable_bytes(std::span(small)));
    EXPECT_TRUE(std::equal(small.begin(), small.end(), big.begin())) << name;
  }
}

/// Textbook attention.
std::vector<double> plain_attention(const Shape& s, InputPattern pattern, int64_t head, int64_t r, double* lse) {
  const Inputs inputs(s, pattern);
  std::vector<double> q(s.d), k(s.d), o(s.d, 0.0), p(s.allowed(0, r));
  inputs.row(Tensor::kQ, 0, head, r, q.data());
  for (size_t j = 0; j < p.size(); ++j) {
    inputs.row(Tensor::kK, 0, head / s.group(), static_cast<int64_t>(j), k.data());
    p[j] = s.scale * std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
  }
  const double max = p.empty() ? 0 : *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - max);
  *lse = max + std::log(sum);
  for (size_t j = 0; j < p.size(); ++j) {
    inputs.row(Tensor::kV, 0, head / s.group(), static_cast<int64_t>(j), k.data());
    for (int64_t c = 0; c < s.d; ++c) o[c] += p[j] / sum * k[c];
  }
  return o;
}

TEST(AttentionReference, AgreesWithThePlainFormula) {
  for (auto [q, kv, d] : {std::tuple{37, 37, 48}, {300, 1111, 64}, {70, 20, 32}, {5, 513, 256}})
    for (bool causal : {false, true}) {
      const Shape s(problem({{"L", q}, {"kv_len", kv}, {"d", d}, {"heads", 4}, {"kv_heads", 2}}, {{"causal", causal}}));
      const Region band{0, 3, q / 3, q};
      const auto reference = attention::reference_of(s, InputPattern::kNormal, attention::Rounding::kFused, band);
      for (int64_t r = band.row_begin; r < band.row_end; r += 7) {
        double lse;
        const auto o = plain_attention(s, InputPattern::kNormal, 3, r, &lse);
        const auto& facts = reference->facts[r - band.row_begin];
        if (s.allowed(0, r) == 0) {
          EXPECT_EQ(facts.lse, -INFINITY);
        } else {
          EXPECT_NEAR(facts.lse, lse, 1e-12);
        }
        for (int64_t c = 0; c < s.d; ++c) EXPECT_NEAR(reference->o[(r - band.row_begin) * d + c], o[c], 1e-12);
      }
    }
}

TEST(AttentionReference, OneHotPicksTheRowOfItsKey) {
  for (int64_t kv : {1, 2, 777, 5000}) {
    const Shape s(problem({{"L", 40}, {"kv_len", kv}, {"d", 32}}, {{"causal", true}}, DType::kFp16));
    const auto reference =
        attention::reference_of(s, InputPattern::kOneHot, attention::Rounding::kFused, {0, 0, 0, 40});
    const Inputs inputs(s, InputPattern::kOneHot);
    double v[32];
    for (int64_t r = 0; r < 40; ++r) {
      if (s.allowed(0, r) == 0) continue;
      inputs.row(Tensor::kV, 0, 0, attention::one_hot_target(r, 0, s.allowed(0, r)), v);
      for (int c = 0; c < 32; ++c) EXPECT_NEAR(reference->o[r * 32 + c], v[c], 1e-15);
    }
  }
}

/// Stands in for device buffers that hold the rounded reference with one change.
struct Fake {
  Problem p;
  std::shared_ptr<const attention::BandReference> reference;
  std::function<void(const std::string&, uint64_t, double*, bool*)> change = [](auto&&...) {};

  Result<Comparison> compare() const {
    const Shape s(p);
    const ElementReader read = [&](const std::string& buffer, uint64_t first, std::span<double> out,
                                   std::vector<bool>* valid) -> Result<void> {
      for (size_t i = 0; i < out.size(); ++i) {
        out[i] =
            buffer == "O" ? round_to(reference->o[first + i], format_of(p.dtype)) : reference->facts[first + i].lse;
        bool written = true;
        change(buffer, first + i, &out[i], &written);
        (*valid)[i] = written;
      }
      return {};
    };
    return op().compare(p, InputPattern::kNormal, "fused", "attention", {0, 0, 0, s.q_len}, read);
  }
};

Fake fake(bool lse = false) {
  const Problem p = problem({{"L", 100}, {"d", 64}, {"batch", 1}, {"heads", 1}}, {{"lse", lse}});
  return {p, attention::reference_of(Shape(p), InputPattern::kNormal, attention::Rounding::kFused, {0, 0, 0, 100})};
}

TEST(AttentionCompare, TheRoundedReferencePasses) {
  const auto c = fake(true).compare();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->rows, 100u);
  EXPECT_EQ(c->failure, "");
  EXPECT_GT(c->worst, 0.01);
  EXPECT_LE(c->worst, 0.5);
}

TEST(AttentionCompare, NamesTheWorstElement) {
  Fake f = fake();
  f.change = [](const std::string&, uint64_t i, double* x, bool*) {
    if (i == 17 * 64 + 3) *x += 0.25;
  };
  const auto c = f.compare();
  ASSERT_TRUE(c);
  EXPECT_GT(c->worst, 1);
  EXPECT_EQ(c->failure.rfind("O[batch 0, head 0, row 17, column 3] is ", 0), 0u) << c->failure;
}

TEST(AttentionCompare, MissingElementsAndNansFail) {
  Fake f = fake();
  f.change = [](const std::string&, uint64_t i, double*, bool* written) {
    if (i == 100 || i == 101) *written = false;
  };
  auto c = f.compare();
  EXPECT_EQ(c->failure, "O[batch 0, head 0, row 1, column 36] and 1 more elements were never written");
  EXPECT_GT(c->worst, 1);
  f.change = [](const std::string&, uint64_t i, double* x, bool*) {
    if (i == 5) *x = NAN;
  };
  c = f.compare();
  EXPECT_GT(c->worst, 1);
  EXPECT_NE(c->failure.find("row 0, column 5] is nan"), std::string::npos) << c->failure;
}

TEST(AttentionCompare, AnLseInTheWrongBaseFails) {
  Fake f = fake(true);
  f.change = [](const std::string& b, uint64_t, double* x, bool*) {
    if (b == "LSE") *x /= std::log(2.0);
  };
  const auto c = f.compare();
  EXPECT_GT(c->worst, 100);
  EXPECT_EQ(c->failure.rfind("LSE[", 0), 0u) << c->failure;
}

// One key too many changes every row by p (v - o); the bound must detect this in rows of 2048 keys as well.
TEST(AttentionCompare, OneExtraKeyIsFarOutsideTheTolerance) {
  const Problem p = problem({{"L", 64}, {"kv_len", 2047}, {"d", 64}, {"batch", 1}, {"heads", 1}});
  Problem longer = p;
  longer.dims["kv_len"] = 2048;
  const Fake f{
      p, attention::reference_of(Shape(longer), InputPattern::kNormal, attention::Rounding::kFused, {0, 0, 0, 64})};
  EXPECT_GT(f.compare()->worst, 3);
}

TEST(AttentionParts, AllButOneCutCanBeBuilt) {
  for (bool causal : {false, true}) {
    const Problem p = problem({{"L", 64}, {"d", 64}, {"batch", 1}, {"heads", 1}}, {{"causal", causal}});
    const auto partitions = attention_partitions(p);
    EXPECT_EQ(partitions.size(), causal ? 16u : 8u);
    EXPECT_EQ(partitions[0].name, causal ? "qk+scale+mask+softmax+pv" : "qk+scale+softmax+pv");
    for (const Partition& partition : partitions)
      EXPECT_EQ(!partition.illegal.empty(),
                partition.name == (causal ? "qk+scale+mask+softmax | pv" : "qk+scale+softmax | pv"))
          << partition.name;
  }
}

TEST(AttentionParts, GivenScoresCarryTheMask) {
  for (DType dtype : {DType::kBf16, DType::kFp16}) {
    const Problem p =
        problem({{"L", 3}, {"kv_len", 5}, {"d", 64}, {"batch", 1}, {"heads", 1}}, {{"causal", true}}, dtype);
    Problem masked = p;
    masked.texts["mask"] = "k != 1";
    const AttentionParts op(masked, {{3, 4}});
    const std::vector<Buffer> buffers = op.buffers(masked);
    ASSERT_EQ(buffers[0].name, "S(mask)");
    ASSERT_EQ(buffers[0].bytes, 3u * 8 * 2);
    std::vector<std::byte> whole(buffers[0].bytes), piece(7);
    op.fill(masked, InputPattern::kNormal, "S(mask)", 0, whole);
    op.fill(masked, InputPattern::kNormal, "S(mask)", 13, piece);
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + 13));  // for any first element of a page
    for (size_t row = 0; row < 3; ++row)
      for (size_t key = 0; key < 8; ++key) {
        const double x = load_element(whole.data(), row * 8 + key, dtype);
        if (key > row + 2)
          EXPECT_TRUE(std::isnan(x)) << row << " " << key;
        else if (key == 1)
          EXPECT_EQ(x, -INFINITY);
        else
          EXPECT_TRUE(std::isfinite(x));
      }
  }
}

// Scores rounded both after the product and after scaling have twice the squared error.
TEST(AttentionReference, EveryRoundingOfScoresCounts) {
  const Shape s(problem({{"L", 8}, {"kv_len", 100}, {"d", 64}, {"batch", 1}, {"heads", 1}}));
  const auto squares = [&](attention::Rounding r) {
    return attention::reference_of(s, InputPattern::kNormal, r, {0, 0, 0, 8})->facts[5].ps_squared;
  };
  EXPECT_EQ(squares(attention::Rounding::kFused), 0);
  const double once = squares(attention::Rounding::kUnfused);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(squares({true, false, true}) / once, 1, 1e-12);
  EXPECT_NEAR(squares({true, true, true}) / once, 2, 1e-12);
}

// A softcap of 4 makes growing scores equal: each rounds by the same amount, and their errors do not cancel.
TEST(AttentionReference, EqualScoresHaveEqualErrors) {
  Problem p = problem({{"L", 8}, {"kv_len", 100}, {"d", 64}, {"batch", 1}, {"heads", 1}});
  const auto facts = [&] {
    return attention::reference_of(Shape(p), InputPattern::kGrowing, attention::Rounding::kUnfused, {0, 0, 0, 8})
        ->facts[3];
  };
  const attention::RowFacts plain = facts();
  EXPECT_EQ(plain.ties_squared, plain.ps_squared);
  p.reals["softcap"] = 4;
  const attention::RowFacts capped = facts();
  EXPECT_GT(capped.ties_squared, 2 * capped.ps_squared);
  // The same from the scores themselves: those that bf16 rounds to one number from one side are one term.
  const Region row{0, 0, 3, 4};
  const auto scores = attention::scores_of(Shape(p), InputPattern::kGrowing, attention::Rounding::kUnfused,
                                           attention::Value::kScores, row);
  std::map<std::pair<float, bool>, double> terms;
  double total = 0, all = 0;
  for (int j = 0; j < 100; ++j) total += std::exp(double{scores->s[j]});
  for (int j = 0; j < 100; ++j) {
    const double s = scores->s[j], u = 1.0 / 256, error = std::exp(s) / total * std::expm1(u * std::fabs(s)) / u;
    const auto rounded = static_cast<float>(round_to(s, format_of(DType::kBf16)));
    terms[{rounded, rounded > s}] += error;
    all += error;
  }
  double squares = 0;
  for (const auto& [score, error] : terms) squares += error * error;
  EXPECT_NEAR(capped.roundings, all, 1e-4);
  EXPECT_GE(capped.ties_squared, squares * 0.999) << "errors of the expression come on top";
  EXPECT_LE(capped.ties_squared, squares * 1.1);
  EXPECT_GT(capped.roundings, 3.5);  // no more than that of one score
  EXPECT_LT(capped.roundings, 4.1);
}

}  // namespace
}  // namespace roofgen::attention_op_test

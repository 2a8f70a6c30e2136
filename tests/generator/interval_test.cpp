// Interval analysis against brute force: a decision for a box holds for each of its elements and for its parts, and
// single elements are always decided.
#include "generator/pointwise/interval.h"

#include <gtest/gtest.h>

#include "generator/expr/expr.h"
#include "tests/generator/random_condition.h"

namespace roofgen::pointwise::interval_test {
namespace {

struct Box {
  int q0, q1, k0, k1, h;
};

Truth judge(const Condition& c, const Box& b) {
  return c.judge([&](const std::string& name) -> std::optional<Range> {
    if (name == "q") return Range{double(b.q0), double(b.q1)};
    if (name == "k") return Range{double(b.k0), double(b.k1)};
    if (name == "h") return Range{double(b.h), double(b.h)};
    return std::nullopt;
  });
}

Truth judge(const char* text, const Box& b) { return judge(Condition::parse(text, "--mask"), b); }

TEST(Interval, DecidesTheUsualMasksExactly) {
  const char* window = "q >= k and q - k < 64";
  EXPECT_EQ(judge(window, {128, 191, 0, 63, 0}), Truth::kNever);
  EXPECT_EQ(judge(window, {128, 191, 64, 64, 0}), Truth::kNever);
  EXPECT_EQ(judge(window, {128, 191, 65, 65, 0}), Truth::kUnknown);
  EXPECT_EQ(judge(window, {128, 191, 191, 300, 0}), Truth::kUnknown);
  EXPECT_EQ(judge(window, {128, 191, 192, 300, 0}), Truth::kNever);
  EXPECT_EQ(judge(window, {128, 159, 100, 128, 0}), Truth::kAlways);
  EXPECT_EQ(judge("q // 100 == k // 100", {100, 199, 150, 160, 0}), Truth::kAlways);
  EXPECT_EQ(judge("q // 100 == k // 100", {100, 199, 200, 250, 0}), Truth::kNever);
  EXPECT_EQ(judge("k % 64 < 16", {0, 0, 70, 79, 0}), Truth::kAlways);
  EXPECT_EQ(judge("(k - 200) // 64 == -3", {0, 0, 8, 71, 0}), Truth::kAlways);  // rounds down, not towards zero
  EXPECT_EQ(judge("abs(q - k) <= 3", {0, 9, 13, 20, 0}), Truth::kNever);
  EXPECT_EQ(judge("k <= q if h == 0 else k >= q", {10, 20, 0, 5, 1}), Truth::kNever);
}

TEST(Interval, KnowsNothingOfTablesFunctionsAndNan) {
  EXPECT_EQ(judge("document[q] == document[k]", {0, 0, 0, 0, 0}), Truth::kUnknown);
  EXPECT_EQ(judge("min(table[q], 5) < 6", {0, 0, 0, 0, 0}), Truth::kUnknown);  // comparisons with NaN are false
  EXPECT_EQ(judge("sigmoid(q) < 6", {0, 0, 0, 0, 0}), Truth::kUnknown);
  EXPECT_EQ(judge("table[q] > 0 and k > 5", {0, 9, 0, 5, 0}), Truth::kNever);
  EXPECT_EQ(judge("table[q] > 0 or k > 5", {0, 9, 6, 9, 0}), Truth::kAlways);
  const Condition c = Condition::parse("q - k < window[h]", "--mask");
  const auto with = [&](double window) {
    return c.judge([&](const std::string& name) -> std::optional<Range> {
      if (name == "window") return Range{window, window};
      return name == "q" ? Range{64, 127} : Range{0, 31};
    });
  };
  EXPECT_EQ(with(33), Truth::kNever);
  EXPECT_EQ(with(34), Truth::kUnknown);
  EXPECT_EQ(with(128), Truth::kAlways);
  EXPECT_EQ(with(std::numeric_limits<double>::quiet_NaN()), Truth::kUnknown);
}

TEST(Interval, DetectsValuesBeyond32Bits) {
  const auto check = [](const char* text) {
    const auto done = Condition::parse(text, "--mask").check_int32([](const std::string& name) -> std::optional<Range> {
      return name == "q" || name == "k" ? std::optional(Range{0, 1 << 20}) : std::nullopt;
    });
    return done ? std::string() : to_string(done.error());
  };
  EXPECT_EQ(check("q * 2000 >= k"), "");
  EXPECT_EQ(check("q * k * table[h] >= 0"),
            "--mask:1:1: error: this can become 1099511627776, past the 32 bits that kernels compute indices with\n"
            "    1 | q * k * table[h] >= 0\n"
            "      | ^~~~~");
}

class RandomConditions : public testing::TestWithParam<int> {};

TEST_P(RandomConditions, AgreeWithBruteForce) {
  int decided = 0, boxes = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    test::RandomCondition random(static_cast<uint64_t>(GetParam()) * 1000 + seed);
    const std::string text = random.condition();
    SCOPED_TRACE(text);
    const auto exact = expr::Expr::parse(text);
    ASSERT_TRUE(exact) << exact.error().message;
    const Condition condition = Condition::parse(text, "--mask");
    for (int i = 0; i < 8; ++i) {
      Box box{random.between(-20, 90), 0, random.between(0, 90), 0, random.below(3)};
      box.q1 = box.q0 + random.below(8);
      box.k1 = box.k0 + random.below(8);
      const Truth whole = judge(condition, box);
      for (int q = box.q0; q <= box.q1; ++q)
        for (int k = box.k0; k <= box.k1; ++k) {
          const auto value = exact->eval({{"q", q}, {"k", k}, {"h", box.h}});
          ASSERT_TRUE(value) << value.error().message;
          const Truth one = judge(condition, {q, q, k, k, box.h});
          ASSERT_EQ(one, value->truthy() ? Truth::kAlways : Truth::kNever) << q << " " << k;
          if (whole != Truth::kUnknown) {
            ASSERT_EQ(one, whole) << q << " " << k;
          }
          // The decision for a part equals that for the whole.
          if (whole != Truth::kUnknown) {
            ASSERT_EQ(judge(condition, {q, box.q1, box.k0, k, box.h}), whole);
          }
        }
      decided += whole != Truth::kUnknown;
      ++boxes;
    }
  }
  EXPECT_GT(decided, boxes / 3) << "an analysis that decides nothing would pass";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomConditions, testing::Range(0, 5));

}  // namespace
}  // namespace roofgen::pointwise::interval_test

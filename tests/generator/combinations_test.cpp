#include "generator/combinations.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/generator/large_space.h"

namespace roofgen::combinations_test {
namespace {

struct Space {
  std::vector<Combinations::Param> params;
  expr::Map constants;
  std::vector<std::pair<std::string, expr::Expr>> derived;
  std::vector<expr::Expr> conditions;
};

expr::Expr parsed(const std::string& text) {
  auto e = expr::Expr::parse(text);
  EXPECT_TRUE(e) << text;
  return *e;
}

/// Integers with few common factors, so that exact divisions often fail; a text parameter; names derived of names.
Space random_space(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t n) { return random() % n; };
  Space out;
  out.constants = {{"limit", int64_t{12}}, {"yes", true}, {"no", false}, {"device", expr::Map{{"smem", int64_t{40}}}}};
  std::vector<std::string> names = {"limit", "device.smem"};
  const size_t params = 1 + pick(5);
  for (size_t i = 0; i < params; ++i) {
    Combinations::Param p{std::string(1, static_cast<char>('a' + i)), {}};
    const size_t values = 1 + pick(5);
    for (size_t v = 0; v < values; ++v) p.values.emplace_back(static_cast<int64_t>(1 + pick(12)));
    names.push_back(p.name);
    out.params.push_back(std::move(p));
  }
  out.params.push_back({"mode", {"direct", "staged"}});
  const auto term = [&]() -> std::string {
    const std::string& left = names[pick(names.size())];
    const std::string& right = names[pick(names.size())];
    const char* const operators[] = {"*", "+", "-", "%", "//", "/"};
    // An exact division that has no integer result is an error: rare, or no space would have a legal point.
    return left + " " + operators[pick(8) == 0 ? 5 : pick(5)] + " " + right;
  };
  const size_t derived = pick(4);
  for (size_t i = 0; i < derived; ++i) {
    const std::string name = pick(6) == 0 ? names[2] : "n" + std::to_string(i);  // or a parameter's name again
    out.derived.emplace_back(name, parsed(pick(3) ? term() : "(" + term() + ") if no else " + term()));
    names.push_back(name);
  }
  const size_t conditions = pick(5);
  for (size_t i = 0; i < conditions; ++i) {
    const std::string compare = term() + (pick(2) ? " <= " : " != ") + std::to_string(pick(30));
    const char* const forms[] = {"", "no or ", "yes and ", "mode == 'direct' or ", "a < 9 or "};
    out.conditions.push_back(parsed(forms[pick(5)] + compare));
  }
  return out;
}

/// Every combination of the product is checked by itself.
struct Filtered {
  std::vector<uint16_t> rows;
  uint64_t considered = 0, legal = 0;
  bool fails = false;
};
Filtered filter(const Space& space) {
  Filtered out;
  std::vector<uint16_t> row(space.params.size());
  for (bool more = true; more; ++out.considered) {
    expr::Map scope = space.constants;
    for (size_t i = 0; i < row.size(); ++i) scope[space.params[i].name] = space.params[i].values[row[i]];
    bool legal = true, fails = false;
    for (const auto& [name, e] : space.derived) {
      const auto value = e.eval(scope);
      if (legal = legal && value; value) scope[name] = *value;
    }
    for (size_t i = 0; legal && i < space.conditions.size(); ++i) {
      const auto holds = space.conditions[i].check(scope);
      fails = fails || !holds;
      legal = !holds || *holds;
    }
    out.fails = out.fails || (legal && fails);
    if (legal) out.rows.insert(out.rows.end(), row.begin(), row.end());
    out.legal += legal;
    more = false;
    for (size_t i = row.size(); i-- > 0 && !more;) {
      more = ++row[i] < space.params[i].values.size();
      if (!more) row[i] = 0;
    }
  }
  return out;
}

Combinations of(const Space& space) {
  Combinations out(space.params);
  out.add(space.constants, space.derived, space.conditions);
  return out;
}

}  // namespace

TEST(Combinations, AreThoseOfTheFilteredProductInItsOrder) {
  size_t failing = 0, empty = 0, whole = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Space space = random_space(seed);
    const Filtered expected = filter(space);
    const auto found = of(space).find();
    ASSERT_EQ(!found, expected.fails) << seed;
    failing += expected.fails;
    if (!found) continue;
    ASSERT_EQ(found->rows, expected.rows) << seed;
    EXPECT_EQ(found->number, expected.legal);
    EXPECT_EQ(found->considered, expected.considered);
    uint64_t cut = 0;
    for (const LegalCombinations::Cut& c : found->cuts) {
      cut += c.combinations;
      EXPECT_FALSE(c.reason.empty());
    }
    EXPECT_EQ(cut + found->number, found->considered) << seed;
    empty += found->number == 0;
    whole += found->number == found->considered;
  }
  // All kinds of spaces occur.
  EXPECT_GT(failing, 50u);
  EXPECT_GT(empty, 50u);
  EXPECT_GT(whole, 50u);
  EXPECT_LT(failing + empty + whole, 2700u);
}

TEST(Combinations, EachRuleTellsItsCasesAndTheValuesOfTheFirst) {
  Space space;
  space.params = {{"BM", {64, 128}}, {"BN", {32, 64, 96}}};
  space.constants = {{"smem", int64_t{20000}}};
  space.derived = {{"bytes", parsed("2 * BM * BN")}, {"half", parsed("BM * 64 / BN")}};
  space.conditions = {parsed("bytes <= smem")};
  const auto found = of(space).find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, (std::vector<uint16_t>{0, 0, 0, 1, 1, 0, 1, 1}));
  ASSERT_EQ(found->cuts.size(), 1u);
  EXPECT_EQ(found->cuts[0].combinations, 2u);
  EXPECT_EQ(found->cuts[0].first, (std::vector<uint16_t>{0, 2}));
  EXPECT_NE(found->cuts[0].reason.find("half: 4096 / 96 is not an integer"), std::string::npos)
      << found->cuts[0].reason;
  space.derived.pop_back();
  const auto compared = of(space).find();
  ASSERT_TRUE(compared);
  ASSERT_EQ(compared->cuts.size(), 1u);
  EXPECT_EQ(compared->cuts[0].reason, "bytes <= smem (24576 > 20000)");
}

TEST(Combinations, SeveralSetsOfRulesHaveNamesOfTheirOwn) {
  Combinations space({{"x", {1, 2, 3, 4}}});
  const expr::Map real = {{"size", int64_t{4}}}, reduced = {{"size", int64_t{3}}};
  space.add(real, {{"double", parsed("2 * x")}}, {parsed("double <= 2 * size")});
  space.add(reduced, {{"double", parsed("2 * x")}}, {parsed("double <= 2 * size")}, "on the reduced problem: ");
  const auto found = space.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 3u);
  ASSERT_EQ(found->cuts.size(), 1u);
  EXPECT_EQ(found->cuts[0].reason, "on the reduced problem: double <= 2 * size (8 > 6)");
}

TEST(Combinations, WithoutParametersThereIsOne) {
  Combinations space({});
  const auto found = space.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 1u);
  EXPECT_EQ(found->considered, 1u);
}

TEST(Combinations, ALargeSpaceIsFound) {
  const auto found = large_space();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->considered, 100'000'000u);
  EXPECT_GT(found->number, 50'000u);
  EXPECT_LT(found->number, 200'000u);
}

TEST(Combinations, HostileSpacesEndInOneLine) {
  std::vector<expr::Value> thousand(1000, expr::Value(1));
  std::vector<Combinations::Param> params;
  for (int i = 0; i < 30; ++i) params.push_back({"p" + std::to_string(i), thousand});
  const auto product = Combinations(params).find();
  ASSERT_FALSE(product);
  EXPECT_EQ(product.error().message, "more than 2^62 combinations");
  params.resize(4);
  const auto legal = Combinations(params).find();
  ASSERT_FALSE(legal);
  EXPECT_EQ(legal.error().message, "more than 4000000 legal points");
  Combinations steps(params);
  const expr::Map none;
  steps.add(none, {}, {parsed("p0 + p1 + p2 + p3 == 5")});
  const auto endless = steps.find(100'000);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().message, "its legal points take more than 100000 steps to find");
  const auto values = Combinations({{"p", std::vector<expr::Value>(5000, expr::Value(1))}}).find();
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().message, "5000 values of p; the limit is 4096");
}

}  // namespace roofgen::combinations_test

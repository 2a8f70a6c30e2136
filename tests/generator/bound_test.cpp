// Expressions at the points of a scope have the values and the errors that they have over a map of the same names.
#include "generator/expr/bound.h"

#include <gtest/gtest.h>

#include "tests/generator/json_value.h"
#include "tests/generator/random_template.h"

namespace roofgen::bound_test {
namespace {

template <class T>
std::string told(const Result<T>& r) {
  if (!r) return "error: " + to_string(r.error());
  const expr::Value v(*r);
  return std::string(v.type_name()) + " " + v.str();
}

/// What each way to evaluate an expression gives.
std::string told(const expr::Names& names, const expr::Expr& e) {
  std::string why;
  const std::string checked = told(names.check(e, &why));
  return told(names.eval(e)) + "\n" + told(names.eval_int(e)) + "\n" + told(names.eval_number(e)) + "\n" +
         told(names.check(e)) + "\n" + checked + " " + why;
}

std::string told(const expr::Map& map, const expr::Expr& e) {
  std::string why;
  const std::string checked = told(e.check(map, &why));
  return told(e.eval(map)) + "\n" + told(e.eval_int(map)) + "\n" + told(e.eval_number(map)) + "\n" +
         told(e.check(map)) + "\n" + checked + " " + why;
}

void expect_points_give_what_names_give(uint64_t seeds) {
  const expr::Map context = *test::to_value(test::random_context()).map();
  size_t values = 0, errors = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 bits(seed);
    test::RandomTemplate random(seed);
    const auto parsed = [&]() -> expr::Expr {
      for (;;)
        if (auto e = expr::Expr::parse(random.any_expression(3))) return *e;
    };
    // Some names vary over values of any type; the others are constants.
    expr::Map constants = context;
    std::vector<expr::Variable> variables;
    for (const auto& [name, value] : context) {
      if (bits() % 3 != 0) continue;
      constants.erase(name);
      variables.push_back(
          {name, {value, std::next(context.begin(), static_cast<long>(bits() % context.size()))->second}});
    }
    std::vector<std::pair<std::string, expr::Expr>> derived;
    for (const char* name : {"c", "derived", "xs"}) derived.emplace_back(name, parsed());
    const std::vector<expr::Expr> all{parsed(),
                                      parsed(),
                                      derived[1].second,
                                      *expr::Expr::parse("derived"),
                                      *expr::Expr::parse("entry + a"),
                                      *expr::Expr::parse("tuned.a == a")};
    expr::Points points(variables);
    const expr::Names bound(points, points.add_scope(constants, derived));
    const expr::Value item(int64_t{3});
    for (int round = 0; round < 6; ++round) {
      expr::Map map = constants;
      for (size_t v = 0; v < variables.size(); ++v) {
        const size_t at = bits() % 2;
        points.move(v, at);
        map[variables[v].name] = variables[v].values[at];
      }
      for (const auto& [name, e] : derived)
        if (auto value = e.eval(map)) map[name] = std::move(*value);
      const expr::Names names(map);
      for (const expr::Expr& e : all) {
        const std::string expected = told(map, e);
        (expected.starts_with("error") ? errors : values)++;
        EXPECT_EQ(told(bound, e), expected) << e.text() << " of seed " << seed;
        EXPECT_EQ(told(bound, e), expected) << "remembered: " << e.text() << " of seed " << seed;
        EXPECT_EQ(told(bound.with_entry(item), e), told(names.with_entry(item), e)) << e.text() << " of seed " << seed;
        EXPECT_EQ(told(bound.with_tuned(bound), e), told(names.with_tuned(names), e))
            << e.text() << " of seed " << seed;
      }
    }
  }
  EXPECT_GT(values, 7 * seeds);
  EXPECT_GT(errors, seeds / 2);
}

}  // namespace

TEST(Points, GiveWhatTheirNamesGive) { expect_points_give_what_names_give(80); }
TEST(SlowPoints, GiveWhatTheirNamesGive) { expect_points_give_what_names_give(1500); }

TEST(Points, EvaluateAnExpressionOnceForItsCombination) {
  const expr::Map constants{{"limit", int64_t{9}}};
  std::vector<expr::Value> numbers;
  for (int64_t i = 0; i < 8; ++i) numbers.emplace_back(i);
  expr::Points points({{"a", numbers}, {"b", numbers}, {"c", numbers}});
  const size_t scope = points.add_scope(constants, {{"sum", *expr::Expr::parse("a + b")}});
  const size_t rule = points.form(scope, *expr::Expr::parse("sum <= limit"));
  const auto walk = [&] {
    const uint64_t before = points.steps();
    for (size_t at = 0; at < 512; ++at) {
      for (size_t v = 0; v < 3; ++v) points.move(v, at >> 3 * v & 7);
      EXPECT_TRUE(points.eval(rule));
    }
    return points.steps() - before;
  };
  EXPECT_EQ(points.variables(rule), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(walk(), 64u * (3 + 3)) << "a sum and a comparison for each a and b, whatever c is";
  EXPECT_EQ(walk(), 0u);
}

}  // namespace roofgen::bound_test

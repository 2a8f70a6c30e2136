#include "generator/expr/expr.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace roofgen::expr::expr_test {
namespace {

const Map& scope() {
  static const Map kScope{{"BM", 128},
                          {"BN", 64},
                          {"d", 64},
                          {"stages", 2},
                          {"bytes", 262144},
                          {"causal", true},
                          {"dtype", "bf16"},
                          {"scale", 0.125},
                          {"none_value", Value()},
                          {"big", std::numeric_limits<int64_t>::max()},
                          {"small", std::numeric_limits<int64_t>::min()},
                          {"sizes", List{16, 32, 64}},
                          {"device", Map{{"smem", 232448}, {"arch", 90}, {"items", 3}}}};
  return kScope;
}

/// str() of the value, or the error message.
std::string value(std::string_view text) {
  auto e = Expr::parse(text);
  if (!e) return "error: " + e.error().message;
  auto v = e->eval(scope());
  return v ? v->str() : "error: " + v.error().message;
}

std::string type(std::string_view text) { return Expr::parse(text)->eval(scope())->type_name(); }

std::string why_not(std::string_view text) {
  std::string why;
  auto ok = Expr::parse(text)->check(scope(), &why);
  return !ok ? "error: " + ok.error().message : *ok ? "it holds" : why;
}

TEST(Expr, IntegersStayIntegers) {
  EXPECT_EQ(value("BM-1"), "127");
  EXPECT_EQ(value("BM/BN"), "2");
  EXPECT_EQ(type("BM/BN"), "int");
  EXPECT_EQ(value("7/2"), "error: 7 / 2 is not an integer; // rounds down, 1.0 * a / b is a float");
  EXPECT_EQ(value("7//2"), "3");
  EXPECT_EQ(value("7/2.0"), "3.5");
  EXPECT_EQ(value("2 ** 10"), "1024");
  EXPECT_EQ(value("2 ** -1"), "0.5");
  EXPECT_EQ(value("0x1F"), "31");
}

TEST(Expr, FloorDivisionAndRemainderHaveTheSignOfTheDivisor) {
  EXPECT_EQ(value("[7 // -2, -7 // 2, -7 // -2, 7 // 2]"), "[-4, -4, 3, 3]");
  EXPECT_EQ(value("[7 % -2, -7 % 2, -7 % -2, 7 % 2, 6 % -2]"), "[-1, 1, -1, 1, 0]");
  EXPECT_EQ(value("[7.5 // -2, -7.5 % 2, 1e300 % -3.5]"), "[-4.0, 0.5, -2.5]");
}

TEST(Expr, IntegerOverflowIsAnError) {
  EXPECT_EQ(value("big + 1"), "error: integer overflow: 9223372036854775807 + 1 does not fit 64 bits");
  EXPECT_EQ(value("small - 1"), "error: integer overflow: -9223372036854775808 - 1 does not fit 64 bits");
  EXPECT_EQ(value("big * 2"), "error: integer overflow: 9223372036854775807 * 2 does not fit 64 bits");
  EXPECT_EQ(value("small // -1"), "error: integer overflow: -9223372036854775808 // -1 does not fit 64 bits");
  EXPECT_EQ(value("small % -1"), "0");
  EXPECT_EQ(value("-small"), "error: integer overflow: 0 - -9223372036854775808 does not fit 64 bits");
  EXPECT_EQ(value("abs(small)"), "error: integer overflow: 0 - -9223372036854775808 does not fit 64 bits");
  EXPECT_EQ(value("2 ** 63"), "error: integer overflow: 2 ** 63 does not fit 64 bits");
  EXPECT_EQ(value("(-2) ** 63"), "-9223372036854775808");
  EXPECT_EQ(value("9223372036854775808"), "error: this integer does not fit 64 bits");
  EXPECT_EQ(value("int(1e19)"), "error: the number does not fit 64 bits");
}

TEST(Expr, FloatOverflowAndDivisionByZeroAreErrors) {
  EXPECT_EQ(value("1e308 * 10"), "error: the result does not fit a float");
  EXPECT_EQ(value("1 // 0"), "error: division by zero");
  EXPECT_EQ(value("1.0 / 0"), "error: division by zero");
  EXPECT_EQ(value("1.0 % 0.0"), "error: division by zero");
  EXPECT_EQ(value("(-8.0) ** 0.5"), "error: a negative number to a fractional power");
}

TEST(Expr, FloatsPrintAsInPython) {
  EXPECT_EQ(value("[1e-6, 0.0001, 1e15, 1e16, 1.0, 0.1, 1.5e300, 123456.789, -2.5]"),
            "[1e-06, 0.0001, 1000000000000000.0, 1e+16, 1.0, 0.1, 1.5e+300, 123456.789, -2.5]");
}

TEST(Expr, ComparisonsChain) {
  EXPECT_EQ(value("0 < BN < BM <= 128"), "True");
  EXPECT_EQ(value("0 < BM < BN"), "False");
  EXPECT_EQ(value("BN in sizes and 65 not in sizes"), "True");
  EXPECT_EQ(value("'f1' in dtype"), "True");
  EXPECT_EQ(value("'arch' in device"), "True");
  EXPECT_EQ(value("not BN == 64"), "False");
  EXPECT_EQ(value("[1, 2] < [1, 3]"), "True");
  EXPECT_EQ(value("1 == true and 1 == 1.0 and '1' != 1"), "True");
}

TEST(Expr, IntegersAndFloatsCompareExactly) {
  EXPECT_EQ(value("9007199254740993 == 9007199254740992.0"), "False");
  EXPECT_EQ(value("9007199254740993 > 9007199254740992.0"), "True");
  EXPECT_EQ(value("big < 9223372036854775808.0"), "True");
  EXPECT_EQ(value("-1 < -0.5"), "True");
}

TEST(Expr, LogicYieldsTheOperandThatDecides) {
  EXPECT_EQ(value("0 or 'x'"), "x");
  EXPECT_EQ(value("1 and []"), "[]");
  EXPECT_EQ(value("causal and BMM"), "error: undefined name \"BMM\"; did you mean \"BM\"?");
  EXPECT_EQ(value("false and BMM"), "False");
  EXPECT_EQ(value("'a' if causal else BMM"), "a");
  EXPECT_EQ(value("1 if false else 2 if false else 3"), "3");
}

TEST(Expr, ListsMapsAndStrings) {
  EXPECT_EQ(value("[sizes[0], sizes[-1], device.arch, device['items']]"), "[16, 64, 90, 3]");
  EXPECT_EQ(value("sizes + [BM,]"), "[16, 32, 64, 128]");
  EXPECT_EQ(value("'a' + \"b'\""), "ab'");
  EXPECT_EQ(value("['it\\'s', 'x\\n', none]"), "[\"it's\", 'x\\n', None]");
  EXPECT_EQ(value("sizes[3]"), "error: index 3 is outside a list of 3");
  EXPECT_EQ(value("device.items"), "error: maps have no methods; for a key of that name write [\"items\"]");
  EXPECT_EQ(value("BM.x"), "error: int has no \"x\"; only maps have members");
}

TEST(Expr, Functions) {
  EXPECT_EQ(value("[ceil_div(7, 2), ceil_div(8, 2), align_up(100, 16), log2(64)]"), "[4, 4, 112, 6]");
  EXPECT_EQ(value("[is_pow2(64), is_pow2(96), is_pow2(0)]"), "[True, False, False]");
  EXPECT_EQ(value("[min(3, 1, 2), max(sizes), abs(-2.5), int(-3.7), int('12'), float(2)]"),
            "[1, 64, 2.5, -3, 12, 2.0]");
  EXPECT_EQ(value("join(range(1, 10, 3), '-') + upper('x') + lower('Y') + str(1.0)"), "1-4-7Xy1.0");
  EXPECT_EQ(value("[len('\xC3\xA9'), len(sizes), len(device)]"), "[1, 3, 3]");
  EXPECT_EQ(value("range(3, 0, -1)"), "[3, 2, 1]");
  EXPECT_EQ(value("log2(96)"), "error: log2(96) is not an integer; log2(float(x)) is a float");
  EXPECT_EQ(value("log2(8.0)"), "3.0");
  EXPECT_EQ(value("ceil_div(1, 0)"), "error: argument 2 must be positive, not 0");
  EXPECT_EQ(value("ceil_div(1)"), "error: ceil_div takes 2 arguments, not 1");
}

TEST(Expr, Filters) {
  EXPECT_EQ(value("sizes|join('x')"), "16x32x64");
  EXPECT_EQ(value("' a '|trim|upper|replace('A', 'bb')"), "bb");
  EXPECT_EQ(value("[2.5|round, 2.675|round(2), 7|round, 1.5|round|int]"), "[2.0, 2.67, 7, 2]");
  EXPECT_EQ(value("[nothing|default(1), device.nothing|default(2), BM|default(3)]"), "[1, 2, 128]");
  EXPECT_EQ(value("devise.more|default(1)"), "error: undefined name \"devise\"; did you mean \"device\"?");
  EXPECT_EQ(value("-1|abs"), "1");
  EXPECT_EQ(value("sizes|upper"), "error: argument 1 must be a string, not list");
  EXPECT_EQ(value("sizes|uper"), "error: unknown filter \"uper\"; did you mean \"upper\"?");
}

TEST(Expr, UndefinedNamesSuggestTheNearest) {
  EXPECT_EQ(value("BMM"), "error: undefined name \"BMM\"; did you mean \"BM\"?");
  EXPECT_EQ(value("device.smen"), "error: no key \"smen\"; did you mean \"smem\"?");
  EXPECT_EQ(value("ceildiv(1, 2)"), "error: unknown function \"ceildiv\"; did you mean \"ceil_div\"?");
}

TEST(Expr, AmbiguousPowersNeedParentheses) {
  EXPECT_EQ(value("-2 ** 2"), "error: a sign before \"**\" is ambiguous; write (-a) ** b or -(a ** b)");
  EXPECT_EQ(value("2 ** 3 ** 2"), "error: a ** b ** c is ambiguous; write parentheses");
  EXPECT_EQ(value("[(-2) ** 2, -(2 ** 2), 2 ** (3 ** 2)]"), "[4, -4, 512]");
}

TEST(Expr, CheckNamesTheFailingComparison) {
  EXPECT_EQ(why_not("bytes <= device.smem"), "bytes <= device.smem (262144 > 232448)");
  EXPECT_EQ(why_not("BM == 128 and (bytes <= device.smem and causal)"), "bytes <= device.smem (262144 > 232448)");
  EXPECT_EQ(why_not("0 < BM < d"), "BM < d (128 >= 64)");
  EXPECT_EQ(why_not("(BM - 2) * d < BM"), "(BM - 2) * d < BM (8064 >= 128)");
  EXPECT_EQ(why_not("BM % 3 == 0"), "BM % 3 == 0 (2 != 0)");
  EXPECT_EQ(why_not("BM in sizes"), "BM in sizes (128 not in [16, 32, 64])");
  EXPECT_EQ(why_not("dtype == 'fp16' or d > 64"), "dtype == 'fp16' ('bf16' != 'fp16') and d > 64 (64 <= 64)");
  EXPECT_EQ(why_not("not causal"), "not causal (causal is True)");
  EXPECT_EQ(why_not("is_pow2(BM + 1)"), "is_pow2(BM + 1) (BM + 1 is 129)");
  EXPECT_EQ(why_not("bytes < 0 if causal else true"), "bytes < 0 (262144 >= 0)");
  EXPECT_EQ(why_not("BM <= 128"), "it holds");
  EXPECT_EQ(why_not("BM < 'a'"), "error: \"<\" does not work on int and string");
}

TEST(Expr, EvalIntAndNumberCheckTheType) {
  EXPECT_EQ(*Expr::parse("BM * 2")->eval_int(scope()), 256);
  EXPECT_EQ(*Expr::parse("BM")->eval_number(scope()), 128.0);
  EXPECT_EQ(Expr::parse("scale")->eval_int(scope()).error().message, "expected an int, this is a float");
  EXPECT_EQ(Expr::parse("dtype")->eval_number(scope()).error().message, "expected a number, this is a string");
}

TEST(Expr, AnExpressionThatWasNeverParsedIsAnError) {
  EXPECT_FALSE(Expr().eval(scope()));
  EXPECT_EQ(Expr().text(), "");
  EXPECT_TRUE(Expr().names().empty());
}

TEST(Expr, NamesAreTheFreeOnes) {
  const auto e = Expr::parse("max(BM, BN) * device.smem + (x if BM else y|default(z))");
  EXPECT_EQ(e->names(), (std::vector<std::string>{"BM", "BN", "device", "x", "y", "z"}));
}

TEST(Expr, ErrorsPointIntoTheFileTheTextWasCutFrom) {
  const Error e = Expr::parse("BM +\n  BX", {"space.json", 12, 20})->eval(scope()).error();
  EXPECT_EQ(e.where.file, "space.json");
  EXPECT_EQ(e.where.line, 13);
  EXPECT_EQ(e.where.col, 3);
  const Error first_line = Expr::parse("BM + BX", {"space.json", 12, 20})->eval(scope()).error();
  EXPECT_EQ(first_line.where.col, 25);
}

TEST(Expr, HostileTextEndsInAnError) {
  EXPECT_FALSE(Expr::parse(std::string(100000, '(')));
  EXPECT_FALSE(Expr::parse(std::string(60000, '-') + "1"));
  EXPECT_FALSE(Expr::parse(std::string(60000, '[')));
  std::string sum = "1", nots;
  for (int i = 0; i < 9000; ++i) sum += "+1", nots += "not ";
  EXPECT_FALSE(Expr::parse(sum));
  EXPECT_FALSE(Expr::parse(nots + "1"));
  std::string ands = "1";
  for (int i = 0; i < 9000; ++i) ands += " and 1";
  EXPECT_TRUE(Expr::parse(ands));  // flat, not nested
  EXPECT_EQ(value("range(65536) + [1]"), "error: a list of 65537 items; the limit is 65536");
  EXPECT_EQ(value("range(100000)"), "error: a range of more than 65536 items");
  std::string ranges = "[range(65536)";
  for (int i = 0; i < 20; ++i) ranges += ", range(65536)";
  EXPECT_EQ(value(ranges + "]"), "error: too many evaluation steps");
  std::string nested = "1";
  for (int i = 0; i < 40; ++i) nested = "[" + nested + "]";
  EXPECT_EQ(value(nested), "error: lists nest too deeply; the limit is 32");
}

TEST(Expr, EvaluationIsSafeFromManyThreads) {
  const auto e = Expr::parse("(BM * d + 2 * BN * d) * 2 * stages + len(join(sizes, ','))");
  std::vector<int64_t> got(8);
  std::vector<std::thread> threads;
  for (int64_t& slot : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) slot = *e->eval_int(scope());
    });
  for (std::thread& t : threads) t.join();
  for (const int64_t v : got) EXPECT_EQ(v, (128 * 64 + 2 * 64 * 64) * 2 * 2 + 8);
}

TEST(Value, Truth) {
  for (const Value& v : {Value(), Value(false), Value(0), Value(0.0), Value(""), Value(List{}), Value(Map{})})
    EXPECT_FALSE(v.truthy());
  for (const Value& v : {Value(true), Value(2), Value(0.5), Value("a"), Value(List{0}), Value(Map{{"a", 0}})})
    EXPECT_TRUE(v.truthy());
}

Expr at(std::string_view text, int line, int col) { return *Expr::parse(text, {"f.json", line, col}); }

std::string place_of(const Error& error) {
  return std::to_string(error.where.line) + ":" + std::to_string(error.where.col) + " " + error.message;
}

TEST(Expr, CasesAreANestedConditional) {
  const auto choose = [](std::vector<std::pair<Expr, Expr>> cases, const Expr& otherwise) {
    return Expr::cases(std::move(cases), otherwise)->eval(scope())->str();
  };
  const Expr yes = at("causal", 1, 1), no = at("not causal", 1, 1), one = at("1", 1, 1), two = at("2", 1, 1),
             three = at("3", 1, 1), nested = at("8 if causal else 9", 1, 1);
  EXPECT_EQ(choose({{yes, one}, {yes, two}}, three), "1");
  EXPECT_EQ(choose({{no, one}, {yes, two}}, three), "2");
  EXPECT_EQ(choose({{no, one}, {no, two}}, three), "3");
  EXPECT_EQ(choose({}, three), "3");
  // A conditional as a condition or value stays one.
  EXPECT_EQ(choose({{at("0 if causal else 1", 1, 1), one}, {yes, nested}}, three), "8");
  EXPECT_EQ(choose({{no, nested}}, nested), "8");
  // Only the case that holds is evaluated.
  EXPECT_EQ(choose({{yes, one}, {at("undefined", 1, 1), two}}, at("1 / 0", 1, 1)), "1");
}

TEST(Expr, AFaultInACaseHasItsPlace) {
  const Expr cases = *Expr::cases({{at("d > 64", 10, 7), at("BN", 10, 20)}, {at("causl", 11, 7), at("BM", 11, 20)}},
                                  at("7 / d", 12, 5));
  const Error error = cases.eval(scope()).error();
  EXPECT_EQ(place_of(error), "11:7 undefined name \"causl\"; did you mean \"causal\"?");
  ASSERT_EQ(error.notes.size(), 2u);
  EXPECT_EQ(error.notes[0], "   11 | if causl");
  EXPECT_EQ(error.notes[1], "      |    ^~~~~");
  const Expr last = *Expr::cases({{at("d > 64", 10, 7), at("BN", 10, 20)}}, at("7 / d", 12, 5));
  EXPECT_EQ(place_of(last.eval(scope()).error()).substr(0, 5), "12:7 ");
}

TEST(Expr, MeaningsTakeThePlaceOfNames) {
  std::map<std::string, Expr> meanings{{"rows", at("BM + 1", 3, 9)}};
  meanings.emplace("twice", *at("2 * rows", 4, 9).with(meanings));
  const Expr e = *at("rows * twice - rows", 20, 5).with(meanings);
  EXPECT_EQ(e.eval(scope())->str(), std::to_string(129 * 2 * 129 - 129));
  EXPECT_EQ(e.names(), std::vector<std::string>{"BM"});
  // Not in members, functions and strings.
  EXPECT_EQ(at("device.smem + len('rows')", 1, 1)
                .with({{"smem", at("1", 1, 1)}, {"len", at("1", 1, 1)}})
                ->eval(scope())
                ->str(),
            std::to_string(232448 + 4));
  const Expr wrong = *at("1 + rows * none_value", 20, 5).with({{"rows", at("BM + BNN", 3, 9)}});
  EXPECT_EQ(place_of(wrong.eval(scope()).error()), "3:14 undefined name \"BNN\"; did you mean \"BN\"?");
  const Expr after = *at("rows + causl", 20, 5).with(meanings);
  EXPECT_EQ(place_of(after.eval(scope()).error()).substr(0, 6), "20:12 ");
}

}  // namespace
}  // namespace roofgen::expr::expr_test

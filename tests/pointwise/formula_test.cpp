// Formulas without a compiler: rejected input with its messages, phases, common subexpressions, and the reference
// against hand-made numbers.
#include "generator/pointwise/formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "tests/pointwise/random_formula.h"

namespace roofgen::pointwise::formula_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Vocabulary norm_vocabulary() {
  return {.source = "x",
          .source_dtype = DType::kBf16,
          .tensors = {{"weight", DType::kBf16, {"n"}},
                      {"bias", DType::kBf16, {"n"}},
                      {"residual", DType::kBf16, {"m", "n"}}},
          .scalars = {{"eps", 0x1p-20}},
          .no_reductions = ""};
}

Formula parsed(std::vector<Definition> definitions, std::vector<Output> outputs,
               Vocabulary vocabulary = norm_vocabulary()) {
  auto out = Formula::parse(std::move(definitions), std::move(outputs), std::move(vocabulary));
  if (!out) ADD_FAILURE() << to_string(out.error());
  return *out;
}
Formula epilogue(const std::string& text, DType dtype = DType::kBf16) {
  return parsed({{"y", text}}, {{"y", "C", dtype}}, test::epilogue_vocabulary());
}

std::string cuda(const Formula& f) { return f.scope().at("cuda").str(); }
/// The body of a device function.
std::string body_of(const Formula& f, const std::string& function) {
  const std::string text = cuda(f);
  const size_t at = text.find(function + "(");
  if (at == std::string::npos) return "there is no " + function;
  const size_t begin = text.find("{\n", at) + 2;
  return text.substr(begin, text.find("\n}\n", begin) - begin + 1);
}
std::string field(const Formula& f, const char* list, size_t i, const char* key) {
  return (*f.scope().at(list).list())[i].map()->at(key).str();
}
size_t count(const std::string& text, const std::string& what) {
  size_t out = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++out;
  return out;
}

/// Tensors whose element (m, n) is 10 m + n + 1.
const TensorReader kReader = [](const TensorArg& t, std::span<const int64_t> row, int64_t first,
                                std::span<double> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    double v = 1;
    for (const std::string& index : t.indices)
      v += index == "m" ? 10.0 * static_cast<double>(row[0]) : static_cast<double>(first) + static_cast<double>(i);
    out[i] = v;
  }
};
std::vector<std::vector<Estimate>> evaluate(const Formula& f, const std::vector<double>& source, int64_t m = 0,
                                            int64_t first = 0, double sigma = 0) {
  std::vector<Estimate> in;
  for (double v : source) in.push_back({v, sigma});
  return f.evaluate(in, {&m, 1}, first, kReader);
}
double value(const std::string& text, double source, int64_t m = 0, int64_t n = 0) {
  return evaluate(epilogue(text, DType::kFp32), {source}, m, n)[0][0].value;
}

// ---- rejected formulas ---------------------------------------------------------------------------------

/// errors.txt: a line "> text" and the error for it; ROOFGEN_UPDATE_GOLDEN rewrites it.
TEST(FormulaErrors, AreExactlyAsRecorded) {
  const std::string path = ROOFGEN_SOURCE_DIR "/tests/pointwise/errors.txt";
  std::ifstream in(path);
  std::string recorded, now;
  int cases = 0;
  for (std::string line; std::getline(in, line);) {
    recorded += line + "\n";
    if (!line.starts_with("> ")) continue;
    const auto f = Formula::parse({{"e", "acc * 2"}, {"y", line.substr(2)}, {"z", "1.0"}}, {{"y", "C"}},
                                  test::epilogue_vocabulary());
    now += line + "\n" + (f ? "accepted" : to_string(f.error())) + "\n";
    EXPECT_FALSE(f) << line;
    if (!f) {
      EXPECT_EQ(f.error().exit, Exit::kUsage) << line;
    }
    ++cases;
  }
  EXPECT_GE(cases, 30);
  if (std::getenv("ROOFGEN_UPDATE_GOLDEN")) {
    std::ofstream(path) << now;
  } else {
    EXPECT_EQ(recorded, now);
  }
}

std::string error_of(std::vector<Definition> definitions, std::vector<Output> outputs,
                     Vocabulary v = norm_vocabulary()) {
  const auto f = Formula::parse(std::move(definitions), std::move(outputs), std::move(v));
  return f ? "accepted" : f.error().message;
}

TEST(FormulaErrors, OfTheWholeFormula) {
  Vocabulary v = norm_vocabulary();
  v.no_reductions = "a row of the output is spread over several CTAs; run the norm as a kernel of its own";
  EXPECT_EQ(error_of({{"y", "x * sum(x)"}}, {{"y", "y"}}, v),
            "sum of one argument goes over the row; " + v.no_reductions);
  EXPECT_EQ(error_of({{"y", "max(x, 0) + min(x, 1.0, 2)"}}, {{"y", "y"}}, v), "accepted");
  EXPECT_EQ(error_of({{"s", "x + 1"}}, {{"s", "row_scale", DType::kFp32, true}}),
            "row_scale must be one value for each row, but s differs along the row");
  EXPECT_EQ(error_of({{"x", "1.0"}}, {{"x", "y"}}), "\"x\" is the source already");
  EXPECT_EQ(error_of({{"bias", "1.0"}}, {{"bias", "y"}}), "\"bias\" is a tensor already");
  EXPECT_EQ(error_of({{"gelu", "1.0"}}, {{"gelu", "y"}}), "\"gelu\" is a function; give the a definition another name");
  EXPECT_EQ(error_of({{"y", "1.0"}}, {{"z", "out"}}), "the output out is to be z, which is not defined");
  std::string many = "x";
  for (int i = 0; i < 9; ++i) many += " + sum(x * " + std::to_string(i + 2) + ")";
  EXPECT_EQ(error_of({{"y", many}}, {{"y", "y"}}), "9 different reductions over the row; the limit is 8");
  EXPECT_EQ(error_of({{"y", std::string(9000, ' ') + "x"}}, {{"y", "y"}}),
            "a formula of 9001 bytes; the limit is 8192");
  v.tensors.push_back({"table", DType::kFp32, {"h"}});
  EXPECT_EQ(error_of({{"y", "x"}}, {{"y", "y"}}, v), "table:fp32[h]: unknown index h; valid: m, n");
}

TEST(FormulaErrors, TensorArguments) {
  EXPECT_EQ(to_string(*parse_tensor_arg("slope:fp32[h]")), "slope:fp32[h]");
  EXPECT_EQ(to_string(*parse_tensor_arg(" table : bf16 [ m , n ] ")), "table:bf16[m,n]");
  EXPECT_EQ(parse_tensor_arg("gain:fp16")->indices.size(), 0u);
  const auto message = [](const char* text) {
    const auto t = parse_tensor_arg(text);
    return t ? std::string("accepted") : std::to_string(t.error().where.col) + ": " + t.error().message;
  };
  EXPECT_EQ(message("slope:fp33[h]"), "7: unknown format \"fp33\"; did you mean \"fp32\"?");
  EXPECT_EQ(message("slope"), "6: expected \":\" and the format, as in slope:fp32[h], found the end");
  EXPECT_EQ(message("slope:fp32[h"), "13: expected \"]\" after the indices, found the end");
  EXPECT_EQ(message("slope:fp32[h,h]"), "14: this index is there twice");
  EXPECT_EQ(message("3:fp32"), "1: expected the tensor's name, found \"3\"");
  EXPECT_EQ(parse_tensor_arg("a:b").error().exit, Exit::kUsage);
}

// ---- phases ---------------------------------------------------------------------------------------------

TEST(FormulaPhases, RmsNormAddsTheResidualOnce) {
  const Formula f = parsed({{"e", "x + residual[m,n]"}, {"y", "e * rsqrt(mean(e * e) + eps) * weight[n]"}},
                           {{"y", "y"}, {"e", "sum"}});
  EXPECT_EQ(f.reductions(), 1);
  EXPECT_EQ(body_of(f, "formula_phase0"),
            "  const float t0 = (x + e.v_residual);\n  const float term = (t0 * t0);\n  x = t0;\n  return term;\n");
  EXPECT_EQ(body_of(f, "formula_row0"), "  r.r0 = total;\n  r.d0 = rsqrt_fast(((r.r0 * inv_cols) + s.s_eps));\n");
  EXPECT_EQ(body_of(f, "formula_y"), "  return ((x * r.d0) * e.v_weight);\n");
  EXPECT_EQ(body_of(f, "formula_sum"), "  return (x + e.v_residual);\n");
  EXPECT_EQ(field(f, "phases", 0, "reads"), "['residual']");
  EXPECT_EQ(field(f, "outputs", 0, "after_phase"), "0");
  EXPECT_EQ(field(f, "outputs", 1, "after_phase"), "-1");
}

TEST(FormulaPhases, LayerNormCarriesTheCentred) {
  const Formula f =
      parsed({{"c", "x - mean(x)"}, {"y", "c * rsqrt(mean(c * c) + eps) * weight[n] + bias[n]"}}, {{"y", "y"}});
  EXPECT_EQ(f.reductions(), 2);
  EXPECT_EQ(body_of(f, "formula_phase0"), "  return x;\n");
  EXPECT_EQ(body_of(f, "formula_row0"), "  r.r0 = total;\n  r.d0 = (r.r0 * inv_cols);\n");
  EXPECT_EQ(body_of(f, "formula_phase1"),
            "  const float t0 = (x - r.d0);\n  const float term = (t0 * t0);\n  x = t0;\n  return term;\n");
  EXPECT_EQ(body_of(f, "formula_y"), "  return (((x * r.d1) * e.v_weight) + e.v_bias);\n");
}

TEST(FormulaPhases, SoftmaxExponentiatesOnceAndIsOnline) {
  const Formula f = parsed({{"t", "exp(x - max(x))"}, {"y", "t / sum(t)"}}, {{"y", "y"}});
  EXPECT_EQ(body_of(f, "formula_phase1"), "  const float t0 = exp_fast((x - r.r0));\n  x = t0;\n  return x;\n");
  EXPECT_EQ(body_of(f, "formula_row1"), "  r.r1 = total;\n  r.d0 = rcp_fast(r.r1);\n");
  EXPECT_EQ(body_of(f, "formula_y"), "  return (x * r.d0);\n");
  EXPECT_EQ(field(f, "phases", 0, "online"), "True");
  EXPECT_EQ(field(f, "phases", 1, "online"), "False");
  // The maximum is of another term, so the sum is not online.
  const Formula g = parsed({{"t", "exp(x - max(x * 2))"}, {"y", "t / sum(t)"}}, {{"y", "y"}});
  EXPECT_EQ(field(g, "phases", 0, "online"), "False");
}

TEST(FormulaPhases, AQuantisedNormCarriesTheNormedAndWritesTheSumBefore) {
  const Formula f = parsed({{"e", "x + residual[m,n]"},
                            {"y", "e * rsqrt(mean(e * e) + eps) * weight[n]"},
                            {"row_scale", "amax(y) / 448"},
                            {"q", "y / row_scale"}},
                           {{"q", "y", DType::kFp8}, {"e", "sum"}, {"row_scale", "row_scale", DType::kFp32, true}});
  EXPECT_EQ(f.reductions(), 2);
  EXPECT_EQ(body_of(f, "formula_phase1"),
            "  const float t0 = ((x * r.d0) * e.v_weight);\n  const float term = abs_exact(t0);\n  x = t0;\n  return "
            "term;\n");
  EXPECT_EQ(body_of(f, "formula_y"), "  return (x * r.d2);\n");
  EXPECT_EQ(body_of(f, "formula_row_scale"), "  return r.d1;\n");
  EXPECT_EQ(field(f, "outputs", 1, "after_phase"), "-1");
}

TEST(FormulaPhases, XIsKeptForLaterOutputs) {
  // The output needs x and its square: only x can serve for both.
  const Formula f = parsed({{"y", "(x + x * x) / sum(x * x)"}}, {{"y", "y"}});
  EXPECT_EQ(count(body_of(f, "formula_phase0"), "x = "), 1u);  // x + x*x: all that remains
  const Formula g = parsed({{"y", "x * sum(x) + gelu(x) * max(x)"}}, {{"y", "y"}});
  EXPECT_EQ(count(cuda(g), " x = "), 0u);
  // The phase does not load tensors that it does not use.
  const Formula h = parsed({{"y", "x * weight[n] * rsqrt(mean(x * x))"}}, {{"y", "y"}});
  EXPECT_EQ(field(h, "phases", 0, "reads"), "[]");
  EXPECT_EQ(count(cuda(h), " x = "), 0u);
}

// ---- text, cost ---------------------------------------------------------------------------------------

TEST(FormulaText, EqualPartsAreComputedOnce) {
  const Formula f = epilogue("gelu(acc + bias[n]) * alpha + gelu(acc + bias[n]) * scale");
  EXPECT_EQ(count(cuda(f), "gelu_fast("), 1u);
  EXPECT_EQ(f.scalars(), (std::vector<std::string>{"alpha", "scale"}));
  ASSERT_EQ(f.tensors().size(), 1u);
  EXPECT_EQ(f.tensors()[0].name, "bias");
}

TEST(FormulaText, WideOutputsAreExact) {
  EXPECT_EQ(count(cuda(epilogue("tanh(acc)", DType::kFp16)), "tanh_fast("), 1u);
  EXPECT_EQ(count(cuda(epilogue("tanh(acc)", DType::kFp32)), "tanh_exact("), 1u);
  EXPECT_EQ(field(epilogue("acc", DType::kFp16), "outputs", 0, "exact"), "False");
  EXPECT_EQ(field(epilogue("acc", DType::kInt32), "outputs", 0, "exact"), "True");
}

/// Of integer accumulators; C is int32.
Formula integers(const std::string& text) {
  pointwise::Vocabulary v = test::epilogue_vocabulary();
  v.source_dtype = DType::kInt32;
  for (TensorArg& t : v.tensors)
    if (t.name == "bias") t.dtype = DType::kInt32;
  return parsed({{"y", text}}, {{"y", "C", DType::kInt32}}, std::move(v));
}

TEST(FormulaIntegers, StayWhatTheyAre) {
  const auto value = [](const std::string& text, double source) {
    return evaluate(integers(text), {source}, 3, 4)[0][0];
  };
  constexpr double kLargest = 2147483647;
  for (const auto& [text, source, expected] : {std::tuple{"acc", kLargest, kLargest},
                                               {"acc + 1", kLargest, -kLargest - 1},
                                               {"acc + 1", 0x1p24, 0x1p24 + 1},
                                               {"-acc", -kLargest - 1, -kLargest - 1},
                                               {"acc * acc", 100000.0, 1410065408.0},
                                               {"acc - bias[n]", -kLargest, kLargest - 3},
                                               {"acc // -1", -kLargest - 1, -kLargest - 1},
                                               {"acc // 3", -7.0, -3.0},
                                               {"acc % 3", -7.0, 2.0},
                                               {"acc % -1", 5.0, 0.0},
                                               {"relu(acc) + min(acc, 2)", 5.0, 7.0},
                                               {"abs(acc)", -kLargest, kLargest},
                                               {"acc / 2", 3.0, 1.5},
                                               {"acc + m * n", 1.0, 13.0}}) {
    const pointwise::Estimate got = value(text, source);
    EXPECT_EQ(got.value, expected) << text;
    const bool rounds = integers(text).rounds_integers();
    EXPECT_EQ(rounds, std::string(text) == "acc / 2") << text;
    EXPECT_EQ(got.sigma > 0, rounds) << text;
  }
  EXPECT_GT(value("acc * 1.0", 0x1p24 + 1).sigma, 0.1);
}

TEST(FormulaIntegers, ArePassedAsBits) {
  const Formula f = integers("acc + bias[n]");
  EXPECT_EQ(body_of(f, "float formula_C"),
            "  return __int_as_float(wrapping_sum(__float_as_int(x), __float_as_int(e.v_bias)));\n");
  EXPECT_EQ(field(f, "tensors", 0, "element"), "Whole<Element_int32>");
  EXPECT_EQ(field(f, "outputs", 0, "element"), "Whole<Element_int32>");
  EXPECT_EQ(field(integers("acc * 0.5"), "outputs", 0, "element"), "Element_int32");
  EXPECT_EQ(field(epilogue("acc", DType::kInt32), "outputs", 0, "element"), "Element_int32");
}

// Beside a source of floats, too: as floats, 16777216 and 16777217 would be one document.
TEST(FormulaIntegers, TablesAreComparedInAllTheirBits) {
  pointwise::Vocabulary v;
  v.tensors = {{"id", DType::kInt32, {"m"}}, {"other", DType::kInt32, {"n"}}, {"small", DType::kInt8, {"n"}}};
  const Formula f = parsed({{"y", "acc if id[m] == other[n] else acc * small[n]"}}, {{"y", "C", DType::kBf16}}, v);
  EXPECT_NE(cuda(f).find("(__float_as_int(e.v_id) == __float_as_int(e.v_other))"), std::string::npos) << cuda(f);
  EXPECT_NE(cuda(f).find("float(__float_as_int(e.v_small))"), std::string::npos) << cuda(f);
  for (const size_t i : {0u, 1u}) EXPECT_EQ(field(f, "tensors", i, "element"), "Whole<Element_int32>");
  EXPECT_EQ(f.scope().at("has_integers").str(), "True");
  const auto read = [](const TensorArg& t, std::span<const int64_t>, int64_t first, std::span<double> out) {
    for (size_t n = 0; n < out.size(); ++n)
      out[n] = t.name == "small" ? 0 : 0x1p24 + (t.name == "other" ? static_cast<double>(first) + double(n) : 1);
  };
  const std::vector<pointwise::Estimate> source(3, {5, 0});
  const int64_t row[] = {0};
  const auto y = f.evaluate(source, row, 0, read)[0];
  EXPECT_EQ(y[0].value, 0);
  EXPECT_EQ(y[1].value, 5);
  EXPECT_EQ(y[2].value, 0);
}

TEST(FormulaText, TensorsSayHowTheyAreIndexed) {
  const Formula f = epilogue("acc + bias[n] + row_bias[m] + residual[m,n] + gain");
  const char* expected[][3] = {{"bias", "True", "False"},
                               {"row_bias", "False", "True"},
                               {"residual", "True", "True"},
                               {"gain", "False", "False"}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(field(f, "tensors", i, "name"), expected[i][0]);
    EXPECT_EQ(field(f, "tensors", i, "along_row"), expected[i][1]);
    EXPECT_EQ(field(f, "tensors", i, "along_rows"), expected[i][2]);
  }
}

TEST(FormulaCost, CountsTheCostOfAnElement) {
  const Cost c = epilogue("gelu_tanh(acc + bias[n]) * scale + residual[m,n]").cost();
  EXPECT_EQ(c.fp32, 1 + 5 + 1);  // the addition, gelu, and one FMA
  EXPECT_EQ(c.mufu, 1);
  EXPECT_EQ(c.exps, 0);
  const Cost s = parsed({{"t", "exp(x - max(x))"}, {"y", "t / sum(t)"}}, {{"y", "y"}}).cost();
  EXPECT_EQ(s.exps, 1);
  EXPECT_EQ(s.mufu, 1);  // the reciprocal is computed once per row
  EXPECT_EQ(s.reductions, 2);
}

// ---- the reference ----------------------------------------------------------------------------------------

TEST(FormulaReference, Values) {
  EXPECT_NEAR(value("gelu(acc)", 1), 0.841344746068543, 1e-14);
  EXPECT_NEAR(value("gelu(acc)", -5), -1.43325785e-6, 1e-13);
  EXPECT_NEAR(value("gelu_tanh(acc)", 1), 0.841191990608, 1e-11);
  EXPECT_NEAR(value("silu(acc)", -2), -0.238405844044, 1e-11);
  EXPECT_NEAR(value("sigmoid(acc)", 1), 0.731058578630, 1e-11);
  EXPECT_EQ(value("relu(acc) + abs(acc) + max(acc, 1) + min(acc, 1, -4.0)", -3), 0 + 3 + 1 - 4);
  EXPECT_EQ(value("clamp(acc, -1, 2)", 7), 2);
  EXPECT_EQ(value("acc ** 3", -2), -8);
  EXPECT_EQ(value("acc * (m // 4) + n % 5 - n // -2", 2, 11, 7), 2 * 2 + 2 + 4);
  EXPECT_EQ(value("1.0 if 3 <= n < 5 and not (m == 0 or acc > 0) else 0.0", -1, 1, 4), 1);
  EXPECT_EQ(value("acc * (n < 3)", 5, 0, 3), 0);
  EXPECT_EQ(value("bias[n] + row_bias[m] * residual[m,n]", 0, 2, 3), 4 + 21 * 24);
  EXPECT_NEAR(value("alpha * scale", 0), 0.7 * -1.3, 1e-15);
}

TEST(FormulaReference, Casts) {
  EXPECT_EQ(value("cast(acc, \"bf16\")", 1.00390625), 1);  // a tie goes to even
  EXPECT_EQ(value("cast(acc, \"bf16\")", 1.01171875), 1.015625);
  EXPECT_EQ(value("cast(acc, \"fp16\")", 65520), kInfinity);
  EXPECT_EQ(value("cast(acc, \"fp8\")", 1000), 448);
  EXPECT_EQ(value("cast(acc, \"fp8\")", 0.0029296875), 0.00390625);  // 1.5 of the smallest, 2^-9
  EXPECT_EQ(value("cast(acc, \"int8\")", -200), -128);
  EXPECT_EQ(value("cast(acc, \"int8\")", 2.5), 2);
}

TEST(FormulaReference, NaNAndInfinityPropagate) {
  for (const char* f :
       {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "abs", "erf"})
    EXPECT_TRUE(std::isnan(value(std::string(f) + "(acc)", kNaN))) << f;
  EXPECT_TRUE(std::isnan(value("max(acc, 0)", kNaN)));
  EXPECT_TRUE(std::isnan(value("clamp(1, acc, 2)", kNaN)));
  EXPECT_EQ(value("2 if acc > 0 else 1", kNaN), 1);
  EXPECT_EQ(value("gelu(acc)", kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(value("gelu(acc)", -kInfinity)));  // -inf * 0, by the definition
  EXPECT_EQ(value("1 / acc", 0), kInfinity);
  EXPECT_EQ(value("exp(acc)", 89), kInfinity);  // beyond fp32
  const auto row = evaluate(parsed({{"t", "exp(x - max(x))"}, {"y", "t / sum(t)"}}, {{"y", "y"}}), {1, kNaN, 2});
  for (const Estimate& e : row[0]) EXPECT_TRUE(std::isnan(e.value));
}

TEST(FormulaReference, Rows) {
  std::vector<double> x;
  for (int i = 0; i < 3000; ++i) x.push_back(std::sin(i * 0.37) * 2 + 0.25);
  double mean = 0, variance = 0, largest = -kInfinity, total = 0;
  for (double v : x) mean += v / 3000, largest = std::max(largest, v);
  for (double v : x) variance += (v - mean) * (v - mean) / 3000, total += std::exp(v - largest);
  const auto norm = evaluate(
      parsed({{"c", "x - mean(x)"}, {"y", "c * rsqrt(mean(c * c) + eps) * weight[n] + bias[n]"}}, {{"y", "y"}}), x);
  const auto softmax = evaluate(parsed({{"t", "exp(x - max(x))"}, {"y", "t / sum(t)"}, {"z", "max(x)"}},
                                       {{"y", "y"}, {"z", "z", DType::kFp32, true}}),
                                x);
  ASSERT_EQ(softmax[1].size(), 1u);
  EXPECT_EQ(softmax[1][0].value, largest);
  for (size_t i = 0; i < x.size(); i += 97) {
    const double w = static_cast<double>(i) + 1;
    EXPECT_NEAR(norm[0][i].value, (x[i] - mean) / std::sqrt(variance + 0x1p-20) * w + w, 1e-11 * w);
    EXPECT_NEAR(softmax[0][i].value, std::exp(x[i] - largest) / total, 1e-15);
    EXPECT_LT(softmax[0][i].sigma, 2e-6 * softmax[0][i].value);
    EXPECT_GT(softmax[0][i].sigma, 1e-8 * softmax[0][i].value);
  }
}

TEST(FormulaReference, ErrorsOfTheSource) {
  const auto sigma = [](const std::string& text, double at, double source_sigma) {
    return evaluate(epilogue(text, DType::kFp32), {at}, 0, 0, source_sigma)[0][0].sigma;
  };
  EXPECT_NEAR(sigma("acc * 3", 2, 0.01), 0.03, 1e-4);
  EXPECT_NEAR(sigma("acc * acc * acc", 2, 0.001), 0.012, 1e-5);  // correlated factors: 3 x^2
  EXPECT_NEAR(sigma("acc - acc", 2, 0.01), 0, 1e-6);
  EXPECT_NEAR(sigma("relu(acc)", -1, 0.01), 0, 1e-6);
  EXPECT_NEAR(sigma("relu(acc)", -0.01, 0.01), 0.01, 1e-5);  // the value may be above zero
  EXPECT_NEAR(sigma("5 if acc > 0 else 2", 1, 0.01), 0, 1e-5);
  // The error may reach the other branch or the next number, but not further: the tolerance is six deviations.
  EXPECT_NEAR(6 * sigma("5 if acc > 0 else 2", 0.01, 0.01), 3, 1e-5);
  EXPECT_NEAR(6 * sigma("cast(acc, \"int8\")", 2.5, 0.01), 1, 1e-9);
  EXPECT_EQ(sigma("cast(acc, \"int8\")", 2.1, 0.01), 0);
}

TEST(FormulaReference, WithoutReductionsAPartOfTheRowIsThePart) {
  const Formula f = epilogue("acc + bias[n] * n");
  const auto all = evaluate(f, std::vector<double>(20, 1.0)), part = evaluate(f, std::vector<double>(5, 1.0), 0, 7);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(all[0][i + 7].value, part[0][i].value);
}

TEST(FormulaReference, FunctionsOnTheirOwn) {
  EXPECT_NEAR(apply("silu", {1, 0}, true).value, 0.731058578630, 1e-11);
  EXPECT_GT(apply("silu", {1, 0}, true).sigma, 10 * apply("silu", {1, 0}, false).sigma);
  EXPECT_NEAR(apply("relu", {1, 0.5}, true).sigma, 0.5, 1e-6);
  EXPECT_NEAR(apply("relu", {-1, 0.5}, true).sigma, 0.5, 1e-6) << "two deviations below the kink";
  EXPECT_NEAR(apply("relu", {-9, 0.5}, true).sigma, 0, 1e-6) << "out of its reach";
  EXPECT_TRUE(std::isnan(apply("sil", {1, 0}, true).value));
}

}  // namespace
}  // namespace roofgen::pointwise::formula_test

// Operators of data files: their flags, and references by formulas.
#include "generator/ops/formula_op.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "generator/ops/elements.h"
#include "generator/ops/op_file.h"

namespace roofgen::formula_op_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const DataFiles kExamples({ROOFGEN_SOURCE_DIR "/examples/dots"});

const Op& dots() {
  const auto op = find_op(kExamples, "dots");
  EXPECT_TRUE(op) << to_string(op.error());
  return **op;
}

Problem dots_problem(int64_t rows, int64_t cols) {
  return *dots().complete({.op = "dots", .dims = {{"rows", rows}, {"cols", cols}}, .flags = {}, .reals = {}});
}

std::vector<double> contents(const Op& op, const Problem& p, const std::string& name, InputPattern pattern) {
  for (const Buffer& b : op.buffers(p)) {
    if (b.name != name) continue;
    std::vector<std::byte> raw(b.bytes);
    op.fill(p, pattern, name, 0, raw);
    std::vector<double> out(b.bytes / static_cast<uint64_t>(size_of(b.dtype)));
    for (size_t i = 0; i < out.size(); ++i) out[i] = load_element(raw.data(), i, b.dtype);
    return out;
  }
  ADD_FAILURE() << name;
  return {};
}

using Outputs = std::map<std::string, std::vector<double>>;

/// Compares outputs as a kernel may have written them; `judged` gets each tolerance.
Comparison compare(const Op& op, const Problem& p, InputPattern pattern, const Outputs& outputs, const Region& region,
                   std::vector<double>* judged = nullptr) {
  const ElementReader reader(
      [&](const std::string& buffer, uint64_t first, std::span<double> out, std::vector<bool>*) {
        const auto& all = outputs.at(buffer);
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
        return Result<void>();
      },
      nullptr,
      [&](const std::string&, double, double, double tolerance) {
        if (judged) judged->push_back(tolerance);
      });
  const auto found = op.compare(p, pattern, "fused", "dots", region, reader);
  EXPECT_TRUE(found) << to_string(found.error());
  return *found;
}

/// As a kernel computes them, in fp32.
Outputs dots_in_fp32(const Problem& p, InputPattern pattern) {
  const auto x = contents(dots(), p, "x", pattern), y = contents(dots(), p, "y", pattern);
  const auto rows = static_cast<size_t>(p.dims.at("rows")), cols = static_cast<size_t>(p.dims.at("cols"));
  std::vector<float> row(rows), column(cols);
  for (size_t m = 0; m < rows; ++m)
    for (size_t n = 0; n < cols; ++n) {
      const float product = static_cast<float>(x[m * cols + n]) * static_cast<float>(y[m * cols + n]);
      row[m] += product, column[n] += product;
    }
  return {{"row_dots", {row.begin(), row.end()}}, {"column_dots", {column.begin(), column.end()}}};
}

Region all_of(const Problem& p, const std::string& output) {
  return {0, 0, 0, dots().extent_of(p, output).rows, 0, -1, output};
}

TEST(FormulaOp, OutputsHaveRowsOfTheirOwn) {
  const Problem p = dots_problem(37, 65);
  EXPECT_EQ(dots().rows_of("row_dots"), "m");
  EXPECT_EQ(dots().rows_of("column_dots"), "n");
  EXPECT_EQ(dots().rows_of("x"), "");
  EXPECT_EQ(dots().extent_of(p, "row_dots").rows, 37);
  EXPECT_EQ(dots().extent_of(p, "column_dots").rows, 65);
  EXPECT_EQ(dots().extent(p).rows, 37);
  EXPECT_EQ(dots().weight(p, all_of(p, "row_dots")), dots().weight(p, all_of(p, "column_dots")));
  std::vector<std::string> names;
  for (const Buffer& b : dots().buffers(p)) names.push_back(b.name);
  EXPECT_THAT(names, ElementsAre("x", "y", "row_dots", "column_dots"));
  EXPECT_EQ(dots().required(p)->dram_bytes, 2.0 * 2 * 37 * 65 + 4 * (37 + 65));
}

TEST(FormulaOp, AcceptsTheSumsOfAKernel) {
  const Problem p = dots_problem(37, 1500);
  for (const InputPattern pattern : {InputPattern::kNormal, InputPattern::kSpecial, InputPattern::kIntegers}) {
    const Outputs right = dots_in_fp32(p, pattern);
    for (const char* output : {"row_dots", "column_dots"}) {
      const Comparison c = compare(dots(), p, pattern, right, all_of(p, output));
      EXPECT_EQ(c.failure, "") << to_string(pattern);
      EXPECT_LE(c.worst, 1);
      EXPECT_EQ(c.rows, right.at(output).size());
    }
  }
}

TEST(FormulaOp, RejectsWhatAKernelMayDoWrong) {
  const Problem p = dots_problem(37, 1500);
  const auto x = contents(dots(), p, "x", InputPattern::kNormal), y = contents(dots(), p, "y", InputPattern::kNormal);
  const Outputs right = dots_in_fp32(p, InputPattern::kNormal);
  const auto wrong = [&](const char* what, const char* output, size_t element, double value, const char* place) {
    Outputs outputs = right;
    outputs[output][element] = value;
    const Comparison c = compare(dots(), p, InputPattern::kNormal, outputs, all_of(p, output));
    EXPECT_GT(c.worst, 1) << what;
    EXPECT_THAT(c.failure, HasSubstr(place)) << what;
  };
  wrong("the last term is left out", "row_dots", 3, right.at("row_dots")[3] - x[4 * 1500 - 1] * y[4 * 1500 - 1],
        "row_dots[m 3]");
  wrong("a row is left out", "column_dots", 7, right.at("column_dots")[7] - x[7] * y[7], "column_dots[n 7]");
  wrong("the sum of the row before", "row_dots", 36, right.at("row_dots")[35], "row_dots[m 36]");
  wrong("no number", "column_dots", 1499, std::nan(""), "column_dots[n 1499]");
}

// A sum of n terms has at least the rounding of its output as tolerance, and grows with the terms, not with a number of
// the test.
TEST(FormulaOp, TolerancesFollowFromTheTerms) {
  std::vector<double> few, many;
  for (const auto& [rows, judged] : {std::pair{int64_t{8}, &few}, {int64_t{2048}, &many}}) {
    const Problem p = dots_problem(rows, 64);
    compare(dots(), p, InputPattern::kNormal, dots_in_fp32(p, InputPattern::kNormal), all_of(p, "column_dots"), judged);
  }
  ASSERT_EQ(few.size(), 64u);
  ASSERT_EQ(many.size(), 64u);
  for (size_t i = 0; i < few.size(); ++i) {
    EXPECT_GT(few[i], 0x1p-24);
    EXPECT_GT(many[i], 4 * few[i]);
    EXPECT_LT(many[i], 1e-2);
  }
}

/// The op of a text with `tensors` and other members.
Result<const Op*> op_of(const std::string& tensors, const std::string& more = "") {
  std::string objects;
  for (const char* dim : {"a", "b", "c", "d"})
    objects += fmt::format(R"j({}{{"name": "{}", "help": "a size"}})j", objects.empty() ? "" : ", ", dim);
  auto file = OpFile::parse(fmt::format(R"j({{"schema": "roofgen.op.1", "op": "t", "dims": [{}],
 "axes": {{"h": "a", "i": "b", "j": "c", "k": "d"}}, {}
 "tensors": {{
  {}
 }}}})j",
                                        objects, more, tensors),
                            "t.json");
  if (!file) return file.error();
  static std::vector<std::unique_ptr<const Op>> kept;
  ROOFGEN_TRY(kept.emplace_back(), formula_op(*file));
  return kept.back().get();
}

TEST(FormulaOp, ProductsElementsAndRowsOfThreeAxes) {
  const auto op =
      op_of(R"j("A": {"dtype": "'fp32'", "axes": ["h", "i", "k"]}, "B": {"dtype": "'fp32'", "axes": ["k", "j"]},
  "C": {"dtype": "'fp32'", "axes": ["h", "i", "j"], "is": "sum(A[h,i,k] * B[k,j]) * 2"},
  "E": {"dtype": "'fp32'", "axes": ["i", "h", "k"], "is": "A[h,i,k] + i"},
  "S": {"dtype": "'fp32'", "axes": ["h", "i", "k"], "is": "A[h,i,k] / max(abs(A[h,i,k]))"})j");
  ASSERT_TRUE(op) << to_string(op.error());
  const int64_t a = 2, b = 3, c = 5, d = 7;
  const Problem p =
      *(*op)->complete({.op = "t", .dims = {{"a", a}, {"b", b}, {"c", c}, {"d", d}}, .flags = {}, .reals = {}});
  EXPECT_EQ((*op)->extent_of(p, "C").heads, a);
  EXPECT_EQ((*op)->extent_of(p, "C").rows, b);
  EXPECT_EQ((*op)->extent_of(p, "C").cols, c);
  EXPECT_EQ((*op)->extent_of(p, "S").cols, 0) << "a row is normalised as a whole";
  const auto A = contents(**op, p, "A", InputPattern::kNormal), B = contents(**op, p, "B", InputPattern::kNormal);
  Outputs outputs{{"C", std::vector<double>(static_cast<size_t>(a * b * c))},
                  {"E", std::vector<double>(static_cast<size_t>(a * b * d))},
                  {"S", std::vector<double>(static_cast<size_t>(a * b * d))}};
  const auto at = [&](int64_t h, int64_t i, int64_t k) { return A[static_cast<size_t>((h * b + i) * d + k)]; };
  for (int64_t h = 0; h < a; ++h)
    for (int64_t i = 0; i < b; ++i) {
      double top = 0;
      for (int64_t k = 0; k < d; ++k) top = std::max(top, std::fabs(at(h, i, k)));
      for (int64_t k = 0; k < d; ++k) {
        outputs["E"][static_cast<size_t>((i * a + h) * d + k)] = at(h, i, k) + static_cast<double>(i);
        outputs["S"][static_cast<size_t>((h * b + i) * d + k)] = at(h, i, k) / top;
        for (int64_t j = 0; j < c; ++j)
          outputs["C"][static_cast<size_t>((h * b + i) * c + j)] += 2 * at(h, i, k) * B[static_cast<size_t>(k * c + j)];
      }
    }
  for (const char* output : {"C", "E", "S"}) {
    const Extent extent = (*op)->extent_of(p, output);
    uint64_t rows = 0;
    for (int64_t h = 0; h < extent.heads; ++h) {
      const Comparison found = compare(**op, p, InputPattern::kNormal, outputs, {0, h, 0, extent.rows, 0, -1, output});
      EXPECT_EQ(found.failure, "") << output;
      rows += found.rows;
    }
    EXPECT_EQ(rows, static_cast<uint64_t>(extent.heads * extent.rows));
    std::swap(outputs[output].front(), outputs[output].back());
    EXPECT_GT(compare(**op, p, InputPattern::kNormal, outputs, {0, 0, 0, extent.rows, 0, -1, output}).worst, 1)
        << output;
  }
}

TEST(FormulaOp, ErrorsOfAFileHaveTheirPlace) {
  const auto sums = [](const std::string& axes, const std::string& is) {
    return fmt::format(R"j("x": {{"dtype": "dtype", "axes": ["i", "j"]}}, "y": {{"dtype": "dtype", "axes": [{}]{}}})j",
                       axes, is);
  };
  const std::string right = R"j(, "is": "sum(x[i,j])")j", part = R"j(, "is": "sum(p)")j";
  for (const auto& [tensors, more, expected] :
       {std::tuple{sums(R"j("i")j", R"j(, "is": "sun(x[i,j])")j"), "", "t.json:4:94: error: unknown function"},
        {sums(R"j("i")j", R"j(, "is": "sun(x[i,j])")j"), "", "did you mean \"sum\"?"},
        {sums(R"j("i")j", R"j(, "is": "sum(x[j,i])")j"), "", "x is indexed [i,j], not [j,i]"},
        {sums(R"j("m")j", right), "", "unknown axis \"m\""},
        {sums(R"j("h")j", right), "", "reduces over i and j; one axis"},
        {sums(R"j("i")j", R"j(, "was": "x")j"), "", "unknown key \"was\"; did you mean"},
        {sums(R"j("i")j", part), R"j("let": [["p", "x[i,j] * q"]],)j", "undefined name \"q\""},
        {sums(R"j("i")j", right), R"j("args": true,)j", "know no \"args\""},
        {sums(R"j("i")j", ""), R"j("let": [["p", "1"]],)j", "\"let\" belongs to formulas"}}) {
    const auto op = op_of(tensors, more);
    ASSERT_FALSE(op) << tensors;
    EXPECT_THAT(to_string(op.error()), HasSubstr(expected));
    EXPECT_THAT(to_string(op.error()), HasSubstr("^")) << "a caret";
    EXPECT_EQ(op.error().where.file, "t.json");
    EXPECT_GT(op.error().where.line, 0) << to_string(op.error());
  }
}

TEST(FormulaOp, ProblemsAreChecked) {
  const auto failure = [](Problem p) {
    const auto complete = dots().complete(std::move(p));
    return complete ? "" : complete.error().message;
  };
  EXPECT_THAT(failure({.op = "dots", .dims = {{"rows", 4}}, .flags = {}, .reals = {}}), HasSubstr("dots needs cols"));
  EXPECT_THAT(failure({.op = "dots", .dims = {{"rows", 0}, {"cols", 1}}, .flags = {}, .reals = {}}),
              HasSubstr("rows is 0; 1 to 2147483647 was expected"));
  EXPECT_THAT(
      failure({.op = "dots", .dims = {{"rows", 4}, {"cols", 4}}, .dtype = DType::kFp8, .flags = {}, .reals = {}}),
      HasSubstr("dots has no dtype fp8"));
  EXPECT_THAT(failure({.op = "dots", .dims = {{"rows", 1 << 30}, {"cols", 1 << 30}}, .flags = {}, .reals = {}}),
              HasSubstr("at most 2^38 were expected"));
}

TEST(FormulaOp, SmallerProblemsMeetTheConditionsOfTheFile) {
  const auto made = [](const char* conditions, std::map<std::string, int64_t> dims) {
    const auto op = op_of(R"j("x": {"dtype": "'fp32'", "axes": ["i", "h"]},
  "y": {"dtype": "'fp32'", "axes": ["i"], "is": "sum(x[i,h])"})j",
                          fmt::format(R"j("requires": [{}],)j", conditions));
    EXPECT_TRUE(op) << to_string(op.error());
    return std::pair(*op, *(*op)->complete({.op = "t", .dims = std::move(dims), .flags = {}, .reals = {}}));
  };
  const std::map<std::string, int64_t> large{{"a", 4096 + 64}, {"b", 4096}, {"c", 1}, {"d", 1}};
  const auto [any, free] = made("", large);
  EXPECT_EQ(any->reduced(free).dims.at("b"), 256);
  EXPECT_EQ(any->reduced(free).dims.at("a"), 256 + 64);
  EXPECT_EQ(any->thinner(free).size(), 64u);
  const auto [held, bound] = made(R"j("b >= 1024", "a % 128 == 64")j", large);
  EXPECT_EQ(held->reduced(bound).dims, bound.dims);
  const auto thin = held->thinner(bound);
  EXPECT_EQ(thin.size(), 32u);
  for (const Op::Thin& t : thin) EXPECT_TRUE(held->complete(t.problem)) << t.label;
}

/// A stored verification depends on the definition.
TEST(FormulaOp, IsDefinedByItsFile) {
  const auto with = [](const char* formula) {
    return (*op_of(fmt::format(R"j("x": {{"dtype": "'fp32'", "axes": ["i", "j"]}},
  "y": {{"dtype": "'fp32'", "axes": ["i"], "is": "{}"}})j",
                               formula)))
        ->definition();
  };
  EXPECT_EQ(with("sum(x[i,j])"), with("sum(x[i,j])"));
  EXPECT_NE(with("sum(x[i,j])"), with("max(x[i,j])"));
  for (const Op* op : ops()) EXPECT_EQ(op->definition(), "");
}

TEST(OpFile, OfTheProgramAreWhole) {
  const auto all = OpFile::load_all(DataFiles());
  ASSERT_TRUE(all) << to_string(all.error());
  for (const Op* op : ops()) {
    const auto file = std::ranges::find(*all, op->name(), &OpFile::op);
    ASSERT_NE(file, all->end()) << op->name();
    EXPECT_FALSE(file->formulas);
    EXPECT_FALSE(file->of(OpFlagKind::kSize).empty());
    EXPECT_FALSE(file->sizes.empty());
  }
  EXPECT_THAT(*op_names(kExamples), testing::Contains("dots"));
  EXPECT_THAT(find_op(kExamples, "dotts").error().message, HasSubstr("did you mean \"dots\"?"));
  EXPECT_FALSE(find_op("dots"));
}

TEST(OpFile, ErrorsHaveTheirPlace) {
  for (const auto& [text, expected] :
       {std::pair{R"j({"schema": "roofgen.op.2", "op": "t"})j", "t.json:1:3: error: schema must be \"roofgen.op.1\""},
        {R"j({"schema": "roofgen.op.1", "op": "u"})j", "\"u\" is not the name of the file"},
        {R"j({"schema": "roofgen.op.1", "op": "t", "dim": []})j", "unknown key \"dim\"; did you mean \"dims\"?"},
        {R"j({"schema": "roofgen.op.1", "op": "t", "dims": ["a-b"]})j", "\"a-b\" is no name"},
        {R"j({"schema": "roofgen.op.1", "op": "t", "dims": ["a", "a"]})j", "\"a\" is in \"dims\" twice"},
        {R"j({"schema": "roofgen.op.1", "op": "t", "dims": [{"name": "a"}]})j", "\"help\" is missing"},
        {R"j({"schema": "roofgen.op.1", "op": "t", "dims": 3})j", "\"dims\": a list was expected"},
        {R"j({"schema": "roofgen.op.1", "op": "t", "args": 1})j", "\"args\": true or false was expected"}}) {
    const auto file = OpFile::parse(text, "t.json");
    ASSERT_FALSE(file) << text;
    EXPECT_THAT(to_string(file.error()), HasSubstr(expected));
    EXPECT_THAT(to_string(file.error()), HasSubstr("^")) << "a caret";
  }
}

}  // namespace
}  // namespace roofgen::formula_op_test

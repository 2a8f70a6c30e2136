#include "generator/ops/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "generator/ops/declared.h"
#include "generator/ops/elements.h"
#include "generator/ops/formula_reference.h"
#include "generator/ops/gemm_groups.h"
#include "generator/ops/gemm_inputs.h"
#include "generator/ops/gemm_reference.h"
#include "generator/ops/gemm_shape.h"
#include "generator/ops/limits.h"
#include "generator/pointwise/functions.h"
#include "generator/space/space.h"

namespace roofgen {
namespace gemm {

/// The largest step along k: 128 elements of 8 bits. Also in k_per_split of stages/gemm.json, from which launch code is
/// generated.
constexpr int64_t kDeepestTile = 128;

int64_t k_per_split(int64_t k, int64_t splits) {
  return (k + splits * kDeepestTile - 1) / (splits * kDeepestTile) * kDeepestTile;
}

}  // namespace gemm

namespace {

using gemm::Shape;
using pointwise::Estimate;
using pointwise::Formula;

constexpr int64_t kMaxDim = int64_t{1} << 30;  // 32-bit indices of rows and columns, including those of partial tiles
constexpr int64_t kMaxInt8Depth = 131071;      // 2^31 / 2^14: the largest sum of int8 products that always fits int32
constexpr int64_t kSliceRows = 256;
constexpr std::array<int64_t, 3> kSplits = {2, 4, 8};
constexpr std::array<const char*, 5> kGates = {"silu", "gelu", "gelu_tanh", "relu", "sigmoid"};
const std::string kSplitVariant = "split_k", kWeights = "weights";

/// Extreme weights would make every sum an extreme.
InputPattern pattern_of_weights(InputPattern pattern) {
  const bool extreme = pattern == InputPattern::kExtremes || pattern == InputPattern::kExtremeRows;
  return extreme ? InputPattern::kNormal : pattern;
}

/// "split_k4", "warpgroup_split_k4" -> 4; 1 for the other variants.
int64_t splits_of(const std::string& variant) {
  const size_t at = variant.find(kSplitVariant);
  return at == std::string::npos ? 1 : std::stoll(variant.substr(at + kSplitVariant.size()));
}

/// The format of accumulators. Those of int8 are integers of the epilogue.
DType accumulator_dtype(const Problem& p) { return p.dtype == DType::kInt8 ? DType::kInt32 : DType::kFp32; }

/// The format of bias and residual unless declared: C's if that has at least 16 bits; fp32 beside sums in fp32.
DType tensor_dtype(const Problem& p) {
  const DType out = p.dtypes.at("out");
  if (size_of(out) == 1) return DType::kBf16;
  return out == DType::kInt32 ? accumulator_dtype(p) : out;
}

/// The format in memory of what the next kernel reads. Sums: C's, unless they may exceed its range; integers stay as
/// they are. Terms of scattered rows: likewise, as floats.
DType stored_dtype(const Problem& p) {
  const DType out = p.dtypes.at("out");
  if (p.dtype == DType::kInt8 && !gemm::is_scattered(p)) return DType::kInt32;
  const bool narrow = size_of(out) == 1 || (p.dtype == DType::kInt8 && out == DType::kFp16);
  return narrow ? DType::kBf16 : out;
}

pointwise::Vocabulary vocabulary(const Problem& problem) {
  pointwise::Vocabulary out;
  const DType dtype = tensor_dtype(problem);
  out.source_dtype = accumulator_dtype(problem);
  out.tensors = {{"bias", dtype, {"n"}}, {"row_bias", dtype, {"m"}}, {"residual", dtype, {"m", "n"}}};
  for (const TensorArg& arg : problem.args) {
    std::erase_if(out.tensors, [&](const TensorArg& t) { return t.name == arg.name; });
    out.tensors.push_back(arg);
  }
  for (const char* name : {"alpha", "beta", "scale"}) out.scalars[name] = problem.reals.at(name);
  if (!problem.texts.at("gated").empty()) out.no_reductions = "a gated product has twice the columns of its output";
  return out;
}

/// The epilogue of the problem. `source`: of stored values. A gate multiplies floats.
Result<Formula> epilogue(const Problem& problem, std::optional<DType> source = {}) {
  pointwise::Vocabulary words = vocabulary(problem);
  if (source) words.source_dtype = *source;
  const bool gated = !problem.texts.at("gated").empty(), scattered = gemm::is_scattered(problem);
  return Formula::parse({{"y", problem.texts.at("epilogue"), "--epilogue"}},
                        {scattered ? pointwise::Output{"y", "T", stored_dtype(problem), false, gated}
                                   : pointwise::Output{"y", "C", problem.dtypes.at("out"), false, gated}},
                        std::move(words));
}

/// The unmodified accumulator.
Result<Formula> identity(const Problem& problem, const std::string& buffer, DType dtype) {
  return Formula::parse({}, {{"acc", buffer, dtype, false}}, vocabulary(problem));
}

/// The gate of one element of C: its function, and the product with the value.
pointwise::Work gate_work(const Shape& s) {
  if (s.gated.empty()) return {};
  const pointwise::Function& f = pointwise::functions()[static_cast<size_t>(pointwise::find_function(s.gated))];
  pointwise::Work out = pointwise::is_exact(s.out) ? f.exact : f.fast;
  out.fp32 += 1;
  return out;
}

/// The template's formula with a gate: `gate` is its device function. Work and bytes are per column of the product; two
/// of them make one column of C.
expr::Map with_gate(expr::Map formula, const Shape& s) {
  if (s.gated.empty()) return formula;
  formula["gate"] = s.gated + (pointwise::is_exact(s.out) ? "_exact" : "_fast");
  const pointwise::Work work = gate_work(s);
  expr::Map cost = *formula.at("cost").map(), bytes = *formula.at("bytes").map();
  for (const auto& [name, more] : {std::pair{"fp32", work.fp32}, std::pair{"alu", work.alu},
                                   std::pair{"mufu", work.mufu}, std::pair{"exps", work.exps}})
    cost[name] = *cost.at(name).as<double>() + more / 2;
  bytes["written"] = size_of(s.out) / 2.0;
  formula["cost"] = std::move(cost);
  formula["bytes"] = std::move(bytes);
  return formula;
}

/// The tensors of `all`, but of those with the index n alone the elements of one expert.
pointwise::TensorReader of_expert(pointwise::TensorReader all, int64_t first_column) {
  if (first_column == 0) return all;
  return [all = std::move(all), first_column](const TensorArg& tensor, std::span<const int64_t> row, int64_t first,
                                              std::span<double> out) {
    const bool by_column = tensor.indices == std::vector<std::string>{"n"};
    all(tensor, row, by_column ? first_column + first : first, out);
  };
}

/// The accumulators of rows of one expert, whose columns of the product begin at `first_column` of
/// Shape::side_by_side(), with their errors. `at`: columns of the expert. `stored`: rounded to it between kernels.
SourceRow sums_of(const Problem& problem, InputPattern pattern, gemm::Rectangle at, int64_t first_column,
                  DType stored) {
  const Shape s(problem);
  gemm::Rectangle all = at;
  all.col_begin += first_column, all.col_end += first_column;
  return [=, products = gemm::products_of(s.side_by_side(), pattern, all)](int64_t row, int64_t first, int64_t count) {
    std::vector<Estimate> out(static_cast<size_t>(count));
    const int64_t line =
        at.rows.empty() ? row - at.row_begin : std::lower_bound(at.rows.begin(), at.rows.end(), row) - at.rows.begin();
    const auto start = static_cast<size_t>(line * products->cols + first - at.col_begin);
    for (size_t i = 0; i < out.size(); ++i) {
      const double sum = products->sum[start + i],
                   sigma = gemm::accumulation_sigma(s.dtype, s.scaled, pattern, at.k_end - at.k_begin, sum,
                                                    products->square[start + i]);
      out[i] = {sum, is_integer(stored) ? 0 : sigma};
      if (stored == DType::kFp32 || is_integer(stored)) continue;
      out[i].sigma = std::hypot(sigma, rounding_sigma(sum, stored));
      if (std::isinf(round_to_dtype(sum, stored))) out[i].value = round_to_dtype(sum, stored);
    }
    return out;
  };
}

/// The elements of C, before they are stored: the epilogue of the accumulators, and the gate.
SourceRow elements_of(const Shape& s, const Formula& formula, const SourceRow& sums,
                      const pointwise::TensorReader& tensors) {
  return [&s, &formula, sums, tensors, fast = !pointwise::is_exact(s.out)](int64_t row, int64_t first, int64_t count) {
    if (s.gated.empty()) return formula.evaluate(sums(row, first, count), std::span(&row, 1), first, tensors)[0];
    const std::vector<Estimate> both =
        formula.evaluate(sums(row, 2 * first, 2 * count), std::span(&row, 1), 2 * first, tensors)[0];
    std::vector<Estimate> out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i) {
      const Estimate gate = pointwise::apply(s.gated, both[2 * i], fast), up = both[2 * i + 1];
      const double value = gate.value * up.value;
      const double of_factors =
          std::hypot(gate.sigma * up.value, gate.value * up.sigma,
                     gate.sigma * up.sigma);  // independent errors; either factor may be near zero
      out[i] = {value, std::hypot(of_factors, rounding_sigma(value, DType::kFp32))};
    }
    return out;
  };
}

/// The routed rows of the tokens that a range of rows of a scattered output stands for, ascending.
std::vector<int64_t> rows_of_tokens(const Problem& problem, Op::RowRange rows) {
  const int64_t topk = problem.dims.at("topk");
  const gemm::Routing routing(problem.dims.at("tokens"));
  std::vector<int64_t> out;
  for (int64_t token = rows.first / topk; token * topk < rows.second; ++token)
    for (int64_t i = 0; i < topk; ++i) out.push_back(routing.row_of(token, i));
  std::sort(out.begin(), out.end());
  return out;
}

/// Rows of A in the order of their experts, element by element.
Result<Comparison> compare_gathered(const Shape& s, InputPattern pattern, const Region& region,
                                    const ElementReader& read) {
  const gemm::Routing routing(s.tokens);
  const gemm::OperandContents contents(s, pattern, gemm::Operand::kA);
  Judge judge("G", read);
  std::vector<double> expected(static_cast<size_t>(s.k)), got(expected.size());
  for (int64_t row = region.row_begin; row < region.row_end; ++row) {
    contents.values(static_cast<uint64_t>(routing.token_of(row) * s.a_stride()), expected);
    std::vector<bool> valid(got.size(), true);
    ROOFGEN_CHECK(read("G", static_cast<uint64_t>(row * s.a_stride()), got, &valid));
    for (size_t k = 0; k < got.size(); ++k)
      if (valid[k])
        judge.element(row, static_cast<int64_t>(k), got[k], expected[k], 0);
      else
        judge.unwritten(row, static_cast<int64_t>(k));
  }
  Comparison out;
  out.rows = static_cast<uint64_t>(region.row_end - region.row_begin);
  judge.add_to(out);
  return out;
}

class Gemm final : public Op {
 public:
  explicit Gemm(bool grouped) : grouped_(grouped) {}
  std::string name() const override { return grouped_ ? "grouped_gemm" : "gemm"; }

  Result<Problem> complete(Problem p) const override {
    if (grouped_) ROOFGEN_CHECK(gemm::complete_groups(p));
    for (const char* dim : {"M", "N", "K"}) {
      if (!p.dims.count(dim)) return usage(fmt::format("{} needs {}", name(), dim));
      if (const int64_t value = p.dims[dim]; value < 1 || value > kMaxDim)
        return usage(fmt::format("{} is {}; 1 to {} was expected", dim, value, kMaxDim));
    }
    if (p.dtype == DType::kFp32 || p.dtype == DType::kInt32)
      return usage(fmt::format("{} has no dtype {}; bf16, fp16, tf32 (fp32 in memory), fp8 or int8 was expected",
                               name(), to_string(p.dtype)));
    p.texts.emplace("epilogue", "acc");
    for (const auto& [text, preset] : {std::pair{"a_layout", "row"}, std::pair{"b_layout", "col"}})
      if (const std::string layout = p.texts.emplace(text, preset).first->second; layout != "row" && layout != "col")
        return usage(fmt::format("{} is '{}'; row or col was expected", text, layout));
    p.texts.emplace("gated", "");
    const std::string gated = p.texts["gated"];
    if (!gated.empty()) {
      if (std::find(kGates.begin(), kGates.end(), gated) == kGates.end())
        return usage(fmt::format("gated is '{}'; {} was expected", gated, fmt::join(kGates, ", ")));
      if (p.dims["N"] % 2 != 0)
        return usage(fmt::format("N is {}; gate and value alternate, so an even number was expected", p.dims["N"]));
    }
    if (const auto scales = p.texts.find("scales"); scales != p.texts.end()) {
      if (scales->second != "block") return usage(fmt::format("scales is '{}'; block was expected", scales->second));
      if (p.dtype != DType::kFp8)
        return usage(fmt::format("--scales block needs --dtype fp8; the dtype is {}", to_string(p.dtype)));
    }
    for (const char* scalar : {"alpha", "beta", "scale"})
      if (const double value = p.reals.emplace(scalar, 1.0).first->second; !std::isfinite(value))
        return usage(fmt::format("{} is {}; a finite number was expected", scalar, value));
    ROOFGEN_CHECK(settle_out(p));
    const Shape s(p);
    const std::pair<const char*, double> sizes[] = {
        {"A", 1.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * size_of(s.dtype)},
        {"B", 1.0 * static_cast<double>(s.k) * static_cast<double>(s.side_by_side().n) * size_of(s.dtype)},
        {"C", 1.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * 4}};
    for (const auto& [tensor, bytes] : sizes)
      if (bytes > kMaxTensorBytes)
        return usage(fmt::format("{} would hold {:.3g} bytes; at most 2^40 were expected", tensor, bytes));
    if (gemm::is_scattered(p) && is_integer(s.out))
      return usage(
          fmt::format("with --scatter an element is a weighted sum; --out-dtype is {}, and a floating-point "
                      "format was expected",
                      to_string(s.out)));
    if (s.side_by_side().n > kMaxDim)
      return usage(fmt::format("{} experts of {} columns have {} in all; at most {} were expected", s.experts, s.n,
                               s.side_by_side().n, kMaxDim));
    if (s.dtype == DType::kInt8 && s.k > kMaxInt8Depth)
      return usage(fmt::format("K is {}; at most {} products of int8 always fit int32", s.k, kMaxInt8Depth));
    std::vector<std::string> own{"A", "B", "C", "T", "partial", "y", "a_scale", "b_scale"};
    if (grouped_) own.insert(own.end(), {"offsets", "row_tokens", "token_rows", kWeights, "G", "Y"});
    ROOFGEN_CHECK(check_declared(p.args, name(), own));
    ROOFGEN_CHECK(epilogue(p));
    return p;
  }

  std::string warning(const Problem& problem) const override {
    const auto formula = epilogue(problem);
    if (!formula || !formula->rounds_integers()) return {};
    return fmt::format(
        "the epilogue \"{}\" has floats, so it is computed in fp32, whose whole numbers are exact up to 2^24; the "
        "output "
        "is int32",
        problem.texts.at("epilogue"));
  }

  std::vector<Buffer> buffers(const Problem& problem) const override {
    const Shape s(problem);
    const auto bytes = [](int64_t rows, int64_t cols, DType dtype) {
      return static_cast<uint64_t>(rows) * static_cast<uint64_t>(cols) * static_cast<uint64_t>(size_of(dtype));
    };
    std::vector<Buffer> out{{"A", s.dtype, bytes(s.a_elements(), 1, s.dtype), Buffer::Role::kInput},
                            {"B", s.dtype, bytes(s.b_elements(), 1, s.dtype), Buffer::Role::kInput},
                            {"C", s.out, bytes(s.m, s.cols(), s.out), Buffer::Role::kOutput}};
    if (gemm::is_scattered(problem)) {
      const int64_t tokens = problem.dims.at("tokens");
      out.back() = {"Y", s.out, bytes(tokens, s.cols(), s.out), Buffer::Role::kOutput};
      out.push_back({"token_rows", DType::kInt32, bytes(s.m, 1, DType::kInt32), Buffer::Role::kInput});
      out.push_back({kWeights, DType::kFp32, bytes(s.m, 1, DType::kFp32), Buffer::Role::kInput});
    }
    if (s.scaled) {
      out.push_back({"a_scale", DType::kFp32, bytes(s.m, s.k_blocks(), DType::kFp32), Buffer::Role::kInput});
      out.push_back({"b_scale", DType::kFp32, bytes(s.n_blocks(), s.k_blocks(), DType::kFp32), Buffer::Role::kInput});
    }
    if (grouped_)
      out.push_back({"offsets", DType::kInt32, static_cast<uint64_t>(s.experts + 1) * 4, Buffer::Role::kInput});
    if (s.tokens > 0)
      out.push_back({"row_tokens", DType::kInt32, static_cast<uint64_t>(s.m) * 4, Buffer::Role::kInput});
    if (const auto formula = epilogue(problem))
      for (const TensorArg& t : formula->tensors()) {
        int64_t count = t.indices == std::vector<std::string>{"n"} ? s.experts : 1;
        for (const std::string& index : t.indices) count *= index == "m" ? s.m : s.n;
        out.push_back({t.name, t.dtype, bytes(count, 1, t.dtype), Buffer::Role::kInput});
      }
    return out;
  }

  expr::Map scope(const Problem& problem) const override {
    expr::Map out;
    for (const auto& [name, value] : problem.dims) out[name] = value;
    for (const auto& [name, value] : problem.texts) out[name] = value;
    const Shape s(problem);
    const int64_t esize = size_of(s.dtype);
    out["grouped"] = grouped_;
    out["gather"] = out["routed"] = s.tokens > 0;
    if (grouped_) {
      const gemm::Groups groups(problem);
      expr::Map row_tiles;
      for (const int64_t height : {64, 128, 192, 256, 384, 512, 768, 1024})
        row_tiles[std::to_string(height)] = groups.row_tiles(height);
      out["row_tiles_of"] = std::move(row_tiles);  // by the height
      out["experts_used"] = groups.used();
    }
    out["rows"] = s.m;
    out["cols"] = s.n;  // of the product, which the row kernel reads
    out["dtype"] = to_string(s.dtype);
    out["esize"] = esize;
    out["scaled"] = s.scaled;
    out["out_dtype"] = to_string(s.out);
    out["out_size"] = size_of(s.out);
    out["stored_dtype"] = to_string(stored_dtype(problem));
    out["stored_size"] = size_of(stored_dtype(problem));
    out["a_stride"] = s.a_stride();
    out["b_stride"] = s.b_stride();
    // ldmatrix transposes 16-bit elements only; others are transposed on the way to shared memory.
    out["a_turned"] = !s.a_rows && esize == 2;
    out["b_turned"] = s.b_rows && esize == 2;
    out["a_gather"] = !s.a_rows && esize != 2;
    out["b_gather"] = s.b_rows && esize != 2;
    out["a_align"] = alignment(s.a_stride() * esize);
    out["row_align"] = std::min(alignment(s.a_stride() * esize), alignment(s.k * esize));
    out["b_align"] = alignment(s.b_stride() * esize);
    expr::Map scalars;
    for (const char* name : {"alpha", "beta", "scale"}) scalars[name] = problem.reals.at(name);
    out["scalars"] = std::move(scalars);
    expr::Map formulas;
    if (const auto formula = epilogue(problem)) formulas["epilogue"] = with_gate(formula->scope(), s);
    if (const auto formula = epilogue(problem, stored_dtype(problem)))
      formulas["epilogue_of_stored"] = with_gate(formula->scope(), s);
    if (const auto formula = identity(problem, "T", stored_dtype(problem))) formulas["identity"] = formula->scope();
    for (const int64_t splits : kSplits)
      if (const auto formula = identity(problem, "partial", accumulator_dtype(problem))) {
        expr::Map partial = formula->scope();
        partial["splits"] = splits;
        formulas[fmt::format("partial{}", splits)] = std::move(partial);
      }
    out["formulas"] = std::move(formulas);
    return out;
  }

  // A few tiles in each direction: all positions in a tile, a group of tiles, and the tail. K stays whole.
  Problem reduced(const Problem& problem) const override {
    constexpr int64_t kWhole = 512, kTile = 256;
    Problem out = problem;
    for (const char* dim : grouped_ ? std::vector{"N"} : std::vector{"M", "N"})
      if (int64_t& size = out.dims[dim]; size > kWhole) size = kTile + size % kTile;
    // A CTA that adds the rows of a token takes all of their columns.
    const Result<Formula> formula = epilogue(problem);
    if ((formula && formula->reductions() > 0) || gemm::is_scattered(problem)) out.dims["N"] = problem.dims.at("N");
    return grouped_ ? gemm::with_few_rows(std::move(out)) : out;
  }

  Extent extent(const Problem& problem) const override {
    const Shape s(problem);
    Extent out{1, 1, s.m, s.cols()};
    if (grouped_) out.groups = gemm::Groups(problem).offsets();
    return out;
  }
  Slice slice(const Problem& problem) const override {
    const auto formula = epilogue(problem);
    // A multiple of the heights of tiles, of grouped rows of all of them, and of the rows of the tokens that a CTA
    // combines.
    const int64_t together = gemm::is_scattered(problem) ? problem.dims.at("topk") : 1;
    return {kSliceRows, formula && formula->reductions() > 0 ? 0 : kSliceRows, grouped_ ? 768 * together : kSliceRows,
            true};
  }
  /// Of a scattered output, rows of the op are those of tokens, one after another: topk for each.
  std::vector<RowRange> rows_fed(const Problem& problem, const std::string& stage, RowRange slice) const override {
    constexpr int64_t kTallestTile = 256;
    const Shape s(problem);
    const bool scattered = gemm::is_scattered(problem);
    if (stage == "gather" && scattered) return {{0, s.m}};
    // A tile of grouped rows begins anywhere, and reads rows of A beyond those that it writes.
    if (stage == "gather")
      return {{std::max<int64_t>(0, slice.first - kTallestTile), std::min(s.m, slice.second + kTallestTile)}};
    if (stage != name() || !scattered) return {slice};
    std::vector<RowRange> out;
    for (const int64_t row : rows_of_tokens(problem, slice)) out.push_back({row, row + 1});
    return out;
  }
  uint64_t default_evals() const override { return 40; }

  Problem with_other_scalars(Problem problem) const override { return other_scalars(std::move(problem)); }

  std::vector<InputPattern> patterns(const Problem& problem) const override {
    // A NaN in a tensor would hide the other elements of a row that the epilogue reduces.
    const Result<Formula> formula = epilogue(problem);
    const bool reduces = formula && formula->reductions() > 0;
    return {InputPattern::kIntegers, reduces ? InputPattern::kExtremeRows : InputPattern::kExtremes};
  }
  std::vector<Thin> thinner(const Problem& problem) const override { return shortened(problem, "K", 32); }
  InputPattern pattern_of_grid(const Problem&) const override { return InputPattern::kIntegers; }
  /// Lines of A and B with gaps between them: longer than a tile along k, and a multiple of the 16 bytes of one copy.
  Problem with_pattern(Problem reduced, InputPattern) const override {
    reduced.dims[gemm::kPad] = (gemm::kDeepestTile + 16) / size_of(reduced.dtype);
    return reduced;
  }

  Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const override;

  std::optional<RequiredWork> required(const Problem& problem) const override {
    const Shape s(problem);
    RequiredWork out;
    out.mma_flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    for (const Buffer& b : buffers(problem)) out.dram_bytes += distinct_bytes(problem, b);
    if (const auto formula = epilogue(problem))
      out.exps = formula->cost().exps * static_cast<double>(s.m) * static_cast<double>(s.n);
    out.exps += gate_work(s).exps * static_cast<double>(s.m) * static_cast<double>(s.cols());
    return out;
  }

  double distinct_bytes(const Problem& problem, const Buffer& buffer) const override {
    const double all = static_cast<double>(buffer.bytes);
    if (!grouped_ || buffer.name != "B") return all;
    const gemm::Groups groups(problem);
    return all * static_cast<double>(groups.used()) / static_cast<double>(groups.count());
  }

  void fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
            std::span<std::byte> out) const override {
    if (grouped_ && gemm::fill_index(problem, buffer, offset, out)) return;
    if (grouped_ && buffer == kWeights)
      return TensorContents{pattern_of_weights(pattern), buffer, DType::kFp32}.fill(offset, out);
    if (buffer == "A" || buffer == "B") return filler(problem, pattern, buffer)(offset, out);
    if (buffer == "a_scale" || buffer == "b_scale")
      return gemm::fill_scales(pattern, buffer == "a_scale" ? gemm::Operand::kA : gemm::Operand::kB, offset, out);
    DType dtype = tensor_dtype(problem);
    for (const TensorArg& arg : problem.args)
      if (arg.name == buffer) dtype = arg.dtype;
    TensorContents{pattern, buffer, dtype}.fill(offset, out);
  }

  std::function<void(uint64_t, std::span<std::byte>)> filler(const Problem& problem, InputPattern pattern,
                                                             const std::string& buffer) const override {
    if (buffer != "A" && buffer != "B") return Op::filler(problem, pattern, buffer);
    const gemm::Operand operand = buffer == "A" ? gemm::Operand::kA : gemm::Operand::kB;
    return [contents = gemm::OperandContents(Shape(problem).side_by_side(), pattern, operand)](
               uint64_t offset, std::span<std::byte> out) { contents.fill(offset, out); };
  }

  Recipe recipe(const Problem& problem, const std::string& buffer) const override {
    if (buffer == "a_scale" || buffer == "b_scale")
      return {.kind = Recipe::Kind::kScales, .key = buffer == "a_scale" ? 1u : 0u};
    if (grouped_ && gemm::is_index(buffer)) return {.kind = Recipe::Kind::kValues};
    return Op::recipe(problem, buffer);
  }

  Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                             const std::string& stage, const Region& region, const ElementReader& read) const override;

  double weight(const Problem& problem, const Region& region) const override {
    const int64_t end = region.col_end < 0 ? Shape(problem).cols() : region.col_end;
    return static_cast<double>(region.row_end - region.row_begin) * static_cast<double>(end - region.col_begin);
  }

 private:
  /// compare() of the sums of tokens.
  Result<Comparison> compare_combined(const Problem& problem, InputPattern pattern, const Region& region,
                                      const ElementReader& read) const;
  /// compare() of rows of one expert, whose columns of the product begin at `first_column` of Shape::side_by_side().
  Result<Comparison> compare_rows(const Problem& problem, InputPattern pattern, const std::string& variant,
                                  const std::string& stage, const Region& region, int64_t first_column,
                                  const ElementReader& read) const;

  static int64_t alignment(int64_t bytes) {
    int64_t out = 16;
    while (bytes % out != 0) out /= 2;
    return out;
  }

  /// Whether each element of C is an int, which bf16 would round.
  static bool has_whole_outputs(Problem p) {
    if (!p.texts["gated"].empty() || gemm::is_scattered(p)) return false;
    p.dtypes["out"] = DType::kInt32;
    const auto formula = epilogue(p);
    return formula && !formula->rounds_integers();
  }

  /// The format of C: that of A and B, or a wider one if theirs is too narrow for sums.
  static Result<void> settle_out(Problem& p) {
    DType preset = p.dtype;
    if (p.dtype == DType::kTf32) preset = DType::kFp32;
    if (p.dtype == DType::kFp8) preset = DType::kBf16;
    if (p.dtype == DType::kInt8) preset = has_whole_outputs(p) ? DType::kInt32 : DType::kBf16;
    if (p.dtypes.emplace("out", preset).first->second == DType::kTf32)
      return usage("an output cannot be tf32; fp32 was expected");
    return {};
  }

  bool grouped_;
};

/// One variant for each number of slabs with enough work per slab.
Result<std::vector<Variant>> Gemm::variants(const DataFiles& files, const Problem& problem) const {
  ROOFGEN_TRY(const std::vector<Variant> loaded, load_variants(files, name()));
  std::vector<Variant> out;
  for (const Variant& v : loaded) {
    if (!grouped_ && !v.fused && problem.texts.at("epilogue") == "acc" && problem.texts.at("gated").empty())
      continue;  // no unfused form
    if (v.name.ends_with(kSplitVariant)) {
      for (const int64_t splits : kSplits) {
        if (problem.dims.at("K") < splits * 2 * gemm::kDeepestTile) continue;
        Variant split = v;
        split.name += std::to_string(splits);
        split.stages[0].formula += std::to_string(splits);
        ROOFGEN_TRY(expr::Expr slabs, expr::Expr::parse(std::to_string(splits)));
        split.stages[1].problem.insert(split.stages[1].problem.begin(), {"source_slabs", std::move(slabs)});
        ROOFGEN_TRY(split.temporaries[0].bytes, expr::Expr::parse(fmt::format("4 * {} * M * N", splits)));
        for (const char* rule :
             {"out_dtype != 'int32' or dtype == 'int8'", "ceil_div(M, 128) * ceil_div(N, 128) < 2 * device.sms"}) {
          ROOFGEN_TRY(const expr::Expr unless, expr::Expr::parse(rule));
          for (Stage& s : split.stages) s.constraints.insert(s.constraints.begin(), unless);
        }
        out.push_back(std::move(split));
      }
    } else {
      out.push_back(v);
    }
  }
  // The stages of a slice share its rows.
  ROOFGEN_TRY(const expr::Expr whole_tiles, expr::Expr::parse(fmt::format("{} % BM == 0", kSliceRows)));
  for (Variant& v : out)
    if (!grouped_ && v.stages.size() > 1) v.stages[0].constraints.push_back(whole_tiles);
  if (gemm::is_scattered(problem)) {
    // Sums by atomics in the product's kernel would depend on the order of CTAs.
    ROOFGEN_TRY(const Stage combine, load_stage(files, "stages/combine_rows.json"));
    ROOFGEN_TRY(const expr::Expr dtype, expr::Expr::parse("stored_dtype"));
    ROOFGEN_TRY(const expr::Expr bytes, expr::Expr::parse("M * (N // 2 if gated != '' else N) * stored_size"));
    for (Variant& v : out) {
      v.stages.back().output = "T";
      v.stages.push_back(combine);
      v.temporaries.push_back({"T", dtype, bytes});
    }
  }
  return out;
}

Result<Comparison> Gemm::compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                                 const std::string& stage, const Region& region, const ElementReader& read) const {
  if (!grouped_) return compare_rows(problem, pattern, variant, stage, region, 0, read);
  if (stage == "gather") return compare_gathered(Shape(problem), pattern, region, read);
  if (stage == "combine") return compare_combined(problem, pattern, region, read);
  const gemm::Groups groups(problem);
  Comparison out;
  for (int64_t e = 0; e < groups.count(); ++e) {
    Region rows = region;
    rows.row_begin = std::max(rows.row_begin, groups.begin(e));
    rows.row_end = std::min(rows.row_end, groups.end(e));
    if (rows.row_begin >= rows.row_end) continue;
    ROOFGEN_TRY(const Comparison c,
                compare_rows(problem, pattern, variant, stage, rows, e * problem.dims.at("N"), read));
    out.rows += c.rows;
    out.worst = std::max(out.worst, c.worst);
    if (out.failure.empty() && !c.failure.empty()) out.failure = fmt::format("expert {}: {}", e, c.failure);
  }
  return out;
}

Result<Comparison> Gemm::compare_rows(const Problem& problem, InputPattern pattern, const std::string& variant,
                                      const std::string& stage, const Region& region, int64_t first_column,
                                      const ElementReader& read) const {
  const Shape s(problem);
  const Extent extent = this->extent(problem), product{1, 1, s.m, s.n};
  ROOFGEN_TRY(const Formula formula, epilogue(problem));
  Region part = region;
  const int64_t halves = s.gated.empty() ? 1 : 2;
  if (region.col_end < 0 || formula.reductions() > 0) part.col_begin = 0, part.col_end = extent.cols;
  Region wide = part;  // the columns of the product after them
  wide.col_begin *= halves, wide.col_end *= halves;
  // The accumulators of a row, rounded to `stored` if they are stored between kernels.
  const auto sums_over = [&](int64_t k_begin, int64_t k_end, DType stored) {
    return sums_of(problem, pattern, {part.row_begin, part.row_end, wide.col_begin, wide.col_end, k_begin, k_end},
                   first_column, stored);
  };

  const int64_t splits = splits_of(variant);
  if (splits > 1 && stage == "partial") {
    const DType sums = accumulator_dtype(problem);
    ROOFGEN_TRY(const Formula partial, identity(problem, "partial", sums));
    const int64_t depth = gemm::k_per_split(s.k, splits);
    Comparison out;
    for (int64_t z = 0; z < splits; ++z) {
      const int64_t k_begin = std::min(s.k, z * depth), k_end = std::min(s.k, k_begin + depth);
      const ElementReader slab = [&](const std::string& buffer, uint64_t first, std::span<double> values,
                                     std::vector<bool>* valid) {
        return read(buffer, static_cast<uint64_t>(z * s.m * s.n) + first, values, valid);
      };
      ROOFGEN_TRY(const Comparison c,
                  compare_formula(partial, wide, product, pattern, sums_over(k_begin, k_end, sums), slab));
      out.rows += c.rows;
      out.worst = std::max(out.worst, c.worst);
      if (out.failure.empty() && !c.failure.empty()) out.failure = fmt::format("slab {}: {}", z, c.failure);
    }
    return out;
  }
  const bool stored_sums = variant.starts_with("unfused") && !grouped_;
  if (stored_sums && stage == "gemm") {
    ROOFGEN_TRY(const Formula stored, identity(problem, "T", stored_dtype(problem)));
    return compare_formula(stored, wide, product, pattern, sums_over(0, s.k, accumulator_dtype(problem)), read);
  }
  const SourceRow sums = sums_over(0, s.k, stored_sums ? stored_dtype(problem) : accumulator_dtype(problem));
  const pointwise::TensorReader tensors =
      of_expert(contents_reader(formula.vocabulary().indices, product, pattern), first_column);
  if (s.gated.empty()) return compare_formula(formula, part, extent, tensors, sums, read);

  // A gated output is compared as the identity of a source: the product of both halves.
  const pointwise::Output& stored = formula.outputs()[0];
  ROOFGEN_TRY(const Formula written, identity(problem, stored.buffer, stored.dtype));
  return compare_formula(written, part, extent, pattern, elements_of(s, formula, sums, tensors), read);
}

Result<Comparison> Gemm::compare_combined(const Problem& problem, InputPattern pattern, const Region& region,
                                          const ElementReader& read) const {
  const Shape s(problem);
  const int64_t topk = problem.dims.at("topk"), tokens = problem.dims.at("tokens"), halves = s.gated.empty() ? 1 : 2;
  const Extent extent{1, 1, tokens, s.cols()}, product{1, 1, s.m, s.n};
  ROOFGEN_TRY(const Formula formula, epilogue(problem));
  ROOFGEN_TRY(const Formula written, identity(problem, "Y", s.out));
  Region part = region;  // of tokens
  part.row_begin /= topk, part.row_end = std::min(tokens, (part.row_end + topk - 1) / topk);
  if (region.col_end < 0 || formula.reductions() > 0) part.col_begin = 0, part.col_end = s.cols();
  const int64_t count = part.col_end - part.col_begin;
  const DType stored = formula.outputs()[0].dtype;

  std::map<int64_t, std::vector<Estimate>> terms;  // by routed row
  const std::vector<int64_t> all = rows_of_tokens(problem, {region.row_begin, region.row_end});
  const gemm::Groups groups(problem);
  for (int64_t e = 0; e < groups.count(); ++e) {
    const std::vector<int64_t> rows(std::lower_bound(all.begin(), all.end(), groups.begin(e)),
                                    std::lower_bound(all.begin(), all.end(), groups.end(e)));
    if (rows.empty()) continue;
    const SourceRow sums =
        sums_of(problem, pattern,
                {0, static_cast<int64_t>(rows.size()), part.col_begin * halves, part.col_end * halves, 0, s.k, rows},
                e * s.n, accumulator_dtype(problem));
    const SourceRow elements = elements_of(
        s, formula, sums, of_expert(contents_reader(formula.vocabulary().indices, product, pattern), e * s.n));
    for (const int64_t row : rows) {
      std::vector<Estimate>& to = terms[row] = elements(row, part.col_begin, count);
      for (Estimate& x : to) {
        x.sigma = std::hypot(x.sigma, rounding_sigma(x.value, stored));
        if (std::isinf(round_to_dtype(x.value, stored))) x.value = round_to_dtype(x.value, stored);
      }
    }
  }

  const gemm::Routing routing(tokens);
  return compare_formula(
      written, part, extent, pattern,
      [&](int64_t token, int64_t first, int64_t columns) {
        std::vector<double> weights(static_cast<size_t>(topk));
        TensorContents{pattern_of_weights(pattern), kWeights, DType::kFp32}.values(static_cast<uint64_t>(token * topk),
                                                                                   weights);
        std::vector<Estimate> out(static_cast<size_t>(columns));
        for (int64_t i = 0; i < topk; ++i) {
          const double weight = weights[static_cast<size_t>(i)];
          const std::vector<Estimate>& term = terms.at(routing.row_of(token, i));
          for (size_t c = 0; c < out.size(); ++c) {
            const Estimate& x = term[c + static_cast<size_t>(first - part.col_begin)];
            const double value = out[c].value + weight * x.value;
            out[c] = {value, std::hypot(out[c].sigma, weight * x.sigma, rounding_sigma(value, DType::kFp32))};
          }
        }
        return out;
      },
      read);
}

}  // namespace

const Op& gemm_op() {
  static const Gemm op(false);
  return op;
}

const Op& grouped_gemm_op() {
  static const Gemm op(true);
  return op;
}

}  // namespace roofgen

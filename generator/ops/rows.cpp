#include "generator/ops/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/ops/declared.h"
#include "generator/ops/limits.h"
#include "generator/ops/rows_compare.h"
#include "generator/ops/rows_formulas.h"
#include "generator/space/space.h"

namespace roofgen {
namespace {

using rows::Formulas;
using rows::Spec;

constexpr int64_t kMaxRows = 2147483647;
constexpr int64_t kMaxCols =
    2147483647 - 65536;  // 32-bit column indices, including steps past the end; rows * cols is 64-bit
constexpr double kMinEps = 1e-30, kMaxEps = 1;  // normal numbers of fp32

/// The most rows per CTA: few if rows are long, so that a slice is simulated quickly. A power of two; constraints in
/// search_spaces/stages/rows.json enforce it.
int64_t tile_rows(int64_t cols) {
  int64_t rows = 64;
  while (rows > 4 && rows * cols > 65536) rows /= 2;
  return rows;
}

class RowOp final : public Op {
 public:
  explicit RowOp(const Spec& spec) : spec_(spec) {}
  std::string name() const override { return spec_.name; }

  Result<Problem> complete(Problem p) const override {
    for (const char* required : {"rows", "cols"})
      if (!p.dims.count(required)) return usage(fmt::format("{} needs {}", name(), required));
    ROOFGEN_CHECK(in_range("rows", p.dims["rows"], 1, kMaxRows));
    ROOFGEN_CHECK(in_range("cols", p.dims["cols"], 1, kMaxCols));
    const double bytes = 4.0 * static_cast<double>(p.dims["rows"]) * static_cast<double>(p.dims["cols"]);
    if (bytes > kMaxTensorBytes)
      return usage(fmt::format("rows x cols is {:.3g} elements; at most 2^38 were expected", bytes / 4));
    if (p.dtype != DType::kBf16 && p.dtype != DType::kFp16 && p.dtype != DType::kFp32)
      return usage(fmt::format("{} has no dtype {}; bf16, fp16 or fp32 was expected", name(), to_string(p.dtype)));
    ROOFGEN_CHECK(complete_choices(p));
    ROOFGEN_CHECK(complete_quant(p));
    if (!p.args.empty() && &spec_ != &rows::kMap)
      return usage(fmt::format("{} takes no expression, so it reads no tensor {}", name(), to_string(p.args.front())));
    ROOFGEN_CHECK(check_declared(p.args, name(), {"x", "y"}));
    ROOFGEN_CHECK(rows::formulas(spec_, p));  // the user's expression may be invalid
    return p;
  }

  std::vector<Buffer> buffers(const Problem& problem) const override {
    const auto elements = [&](const std::vector<std::string>& indices) {
      uint64_t n = 1;
      for (const std::string& index : indices)
        n *= static_cast<uint64_t>(problem.dims.at(index == "m" ? "rows" : "cols"));
      return n;
    };
    std::vector<Buffer> out;
    const auto add = [&](const std::string& name, DType dtype, const std::vector<std::string>& indices,
                         Buffer::Role role) {
      out.push_back({name, dtype, elements(indices) * static_cast<uint64_t>(size_of(dtype)), role});
    };
    add("x", problem.dtype, {"m", "n"}, Buffer::Role::kInput);
    if (const auto formulas = rows::formulas(spec_, problem)) {
      const pointwise::Formula& fused = formulas->at("fused");
      for (const TensorArg& t : fused.tensors()) add(t.name, t.dtype, t.indices, Buffer::Role::kInput);
      for (const pointwise::Output& o : fused.outputs())
        add(o.buffer, o.dtype, o.per_row ? std::vector<std::string>{"m"} : std::vector<std::string>{"m", "n"},
            Buffer::Role::kOutput);
    }
    return out;
  }

  expr::Map scope(const Problem& problem) const override {
    expr::Map out, by_name, scalars;
    for (const auto& [name, value] : problem.dims) out[name] = value;
    for (const auto& [name, value] : problem.flags) out[name] = value;
    for (const auto& [name, value] : problem.texts) out[name] = value;
    for (const auto& [name, value] : problem.reals) scalars[name] = value;
    out["dtype"] = to_string(problem.dtype);
    out["esize"] = size_of(problem.dtype);
    out["segment_cols"] = rows::kSegmentCols;
    if (const auto formulas = rows::formulas(spec_, problem))
      for (const auto& [name, formula] : *formulas) by_name[name] = expr::Value(formula.scope());
    out["formulas"] = expr::Value(std::move(by_name));
    out["scalars"] = expr::Value(std::move(scalars));
    return out;
  }

  // Every column; the most rows of a CTA, and the rows of a partial tile.
  Problem reduced(const Problem& problem) const override {
    Problem out = problem;
    int64_t& count = out.dims["rows"];
    const int64_t tile = tile_rows(out.dims.at("cols"));
    count = std::min(count, tile + count % tile);
    return out;
  }

  Extent extent(const Problem& problem) const override { return {1, 1, problem.dims.at("rows"), 0}; }
  Slice slice(const Problem& problem) const override {
    const int64_t rows = tile_rows(problem.dims.at("cols"));
    return {rows, 0, 64};
  }
  // More than a tile: of a pattern, rows differ.
  int64_t least_rows(const Problem& problem, InputPattern pattern) const override {
    const int64_t tiles = 2 * tile_rows(problem.dims.at("cols"));
    return pattern == InputPattern::kExtremeRows ? std::min(rows::kRowClasses, tiles) : 1;
  }
  uint64_t default_evals() const override { return 40; }

  Problem with_other_scalars(Problem problem) const override { return other_scalars(std::move(problem)); }
  std::vector<InputPattern> patterns(const Problem& problem) const override {
    if (&spec_ != &rows::kMap) return {InputPattern::kExtremeRows};
    const auto formulas = rows::formulas(spec_, problem);
    const bool reduces = formulas && formulas->at("fused").reductions() > 0;
    return {InputPattern::kSpecial, reduces ? InputPattern::kExtremeRows : InputPattern::kExtremes};
  }
  std::vector<Thin> thinner(const Problem& problem) const override { return shortened(problem, "cols", 64); }
  Problem with_pattern(Problem reduced, InputPattern pattern) const override {
    if (pattern == InputPattern::kExtremeRows) reduced.dims["rows"] = rows::kRowClasses;
    return reduced;
  }

  /// The unfused form has only the stages that the problem needs.
  Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const override {
    ROOFGEN_TRY(std::vector<Variant> all, load_variants(files, name()));
    const std::vector<std::string> wanted = rows::unfused_stages(spec_, problem);
    std::vector<Variant> out;
    for (Variant& v : all) {
      if (v.stages.size() > 1) {
        if (wanted.size() < 2) continue;
        keep_stages(v, wanted);
      }
      out.push_back(std::move(v));
    }
    return out;
  }

  std::optional<RequiredWork> required(const Problem& problem) const override {
    RequiredWork out;
    for (const Buffer& b : buffers(problem)) out.dram_bytes += static_cast<double>(b.bytes);
    if (const auto formulas = rows::formulas(spec_, problem))
      out.exps = formulas->at("fused").cost().exps * static_cast<double>(problem.dims.at("rows")) *
                 static_cast<double>(problem.dims.at("cols"));
    return out;
  }

  void fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
            std::span<std::byte> out) const override {
    if (buffer == "x") return rows::source_contents(spec_, problem, pattern).fill(offset, out);
    // The same dtype as in the formulas; parsing them here would be slow, because fill is called for every few KB.
    DType dtype = problem.dtype;
    for (const TensorArg& arg : problem.args)
      if (arg.name == buffer) dtype = arg.dtype;
    TensorContents{pattern, buffer, dtype}.fill(offset, out);
  }

  Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                             const std::string& stage, const Region& region, const ElementReader& read) const override {
    return rows::compare(spec_, problem, pattern, variant, stage, region, read);
  }

  double weight(const Problem& problem, const Region& region) const override {
    const int64_t end = region.col_end < 0 ? problem.dims.at("cols") : region.col_end;
    return static_cast<double>(region.row_end - region.row_begin) * static_cast<double>(end - region.col_begin);
  }

 private:
  Result<void> complete_choices(Problem& p) const {
    const auto choice = [&](const char* flag, bool has) -> Result<void> {
      if (!has && p.flags.count(flag) && p.flags[flag]) return usage(fmt::format("{} has no {}", name(), flag));
      if (has) p.flags.emplace(flag, false);
      return {};
    };
    ROOFGEN_CHECK(choice("residual", spec_.residual));
    ROOFGEN_CHECK(choice("bias", spec_.bias));
    if (spec_.eps > 0) {
      p.reals.emplace("eps", spec_.eps);
      const double eps = p.reals["eps"];
      if (!(eps >= kMinEps && eps <= kMaxEps))
        return usage(fmt::format("eps is {}; {} to {} was expected", eps, kMinEps, kMaxEps));
    }
    if (&spec_ == &rows::kMap) {
      if (!p.texts.count("expr") || p.texts["expr"].empty())
        return usage("map needs expr, an expression of x such as 'gelu(x + bias[n])'");
      for (const char* scalar : {"alpha", "beta", "scale"}) p.reals.emplace(scalar, 1.0);
    }
    return {};
  }

  Result<void> complete_quant(Problem& p) const {
    const std::string quant = p.texts.count("quant") ? p.texts["quant"] : "";
    const auto out = p.dtypes.find("out");
    if (quant.empty()) {
      if (p.texts.count("quant_scale"))
        return usage("a scale of the quantised output goes with quant; fp8 or int8 was expected");
      if (out == p.dtypes.end()) return {};
      const DType d = out->second;
      if (d == DType::kBf16 || d == DType::kFp16 || d == DType::kFp32) return {};
      if (&spec_ == &rows::kMap && (d == DType::kFp8 || d == DType::kInt8)) return {};
      return usage(fmt::format("{} writes no {}; {} was expected", name(), to_string(d),
                               spec_.quant ? "bf16, fp16 or fp32, or quant" : "bf16, fp16 or fp32"));
    }
    if (!spec_.quant) return usage(fmt::format("{} has no quant", name()));
    if (quant != "fp8" && quant != "int8") return usage(fmt::format("quant is '{}'; fp8 or int8 was expected", quant));
    if (out != p.dtypes.end() && to_string(out->second) != quant)
      return usage(fmt::format("quant {} writes {}, not {}", quant, quant, to_string(out->second)));
    p.texts.emplace("quant_scale", "row");
    const std::string by = p.texts["quant_scale"];
    if (by != "row" && by != "tensor") return usage(fmt::format("quant_scale is '{}'; row or tensor was expected", by));
    if (by == "row") {
      if (p.reals.count("scale")) return usage("scale applies to a whole tensor; quant_scale tensor was expected");
      return {};
    }
    p.reals.emplace("scale", 1.0);
    if (const double scale = p.reals["scale"]; !(scale >= kMinEps && scale <= 1 / kMinEps))
      return usage(fmt::format("scale is {}; {} to {} was expected", scale, kMinEps, 1 / kMinEps));
    return {};
  }

  /// Keeps the wanted stages, each with the output of the previous one as its input.
  static void keep_stages(Variant& v, const std::vector<std::string>& wanted) {
    const auto unwanted = [&](const Stage& s) {
      return std::find(wanted.begin(), wanted.end(), s.name) == wanted.end();
    };
    std::erase_if(v.stages, unwanted);
    if (v.name != "unfused") return;
    std::string source = "x";
    for (Stage& s : v.stages) {
      s.buffers["X"] = source;
      s.output = s.name == "add" ? "sum" : s.name == "norm" && s.name != wanted.back() ? "normed" : "y";
      source = s.output;
    }
    if (wanted.back() == "norm") v.temporaries.clear();
  }

  const Spec& spec_;
};

}  // namespace

const Op& rmsnorm_op() {
  static const RowOp op(rows::kRmsnorm);
  return op;
}
const Op& layernorm_op() {
  static const RowOp op(rows::kLayernorm);
  return op;
}
const Op& softmax_op() {
  static const RowOp op(rows::kSoftmax);
  return op;
}
const Op& map_op() {
  static const RowOp op(rows::kMap);
  return op;
}

}  // namespace roofgen

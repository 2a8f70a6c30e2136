#include "generator/ops/formula_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "base/json_text.h"
#include "base/sha256.h"
#include "base/suggest.h"
#include "generator/expr/c_code.h"
#include "generator/ops/expected.h"
#include "generator/ops/formula_reference.h"
#include "generator/ops/limits.h"
#include "generator/ops/op_file.h"
#include "generator/space/json_reader.h"

namespace roofgen {
namespace {

using pointwise::Definition;
using pointwise::Estimate;
using pointwise::Formula;

constexpr int64_t kMostSize = 2147483647;
constexpr size_t kMostAxes = 4;
/// Multiples of every row or column tile: rows of a slice, and a reduced size without its remainder.
constexpr int64_t kLargestTile = 256;
/// A problem whose largest tensor has so many elements runs whole: about a second of simulation.
constexpr int64_t kWholeElements = int64_t{1} << 21;
constexpr const char* kNoSource = "the source";  // formulas read tensors alone: no text can have this name

/// A tensor of the op; an output has definitions, of which the last is its value.
struct FormulaTensor {
  std::string name;
  expr::Expr dtype;
  std::vector<std::string> axes;
  std::vector<Definition> definitions = {};
  std::string summed = {};  ///< the axis that the formula reads and the output lacks; empty: none
  bool is_output() const { return !definitions.empty(); }
};

struct FormulaSpec {
  std::string name;
  std::vector<std::string> dims, flags, reals, formats;
  std::map<std::string, expr::Expr> presets;  ///< of dims and reals
  std::map<std::string, expr::Expr> axes;     ///< their sizes
  std::vector<expr::Expr> conditions;
  std::optional<expr::Expr> mma_flops;  ///< absent: none
  std::vector<FormulaTensor> tensors;
};

/// `dtype_of`: the formats of the tensors.
template <class DTypeOf>
Result<Formula> formula_of(const FormulaSpec& spec, const FormulaTensor& output,
                           const std::map<std::string, double>& scalars, const DTypeOf& dtype_of) {
  pointwise::Vocabulary names;
  names.source = kNoSource;
  names.indices = output.axes;
  if (!output.summed.empty()) names.indices.push_back(output.summed);
  for (const FormulaTensor& t : spec.tensors) {
    const bool inside =
        std::ranges::all_of(t.axes, [&](const auto& axis) { return std::ranges::count(names.indices, axis) > 0; });
    if (!t.is_output() && inside) names.tensors.push_back({t.name, dtype_of(t), t.axes});
  }
  names.scalars = scalars;
  return Formula::parse(output.definitions, {{output.name, output.name, dtype_of(output), !output.summed.empty()}},
                        std::move(names));
}

class FormulaReader : private JsonReader {
 public:
  explicit FormulaReader(const OpFile& file) : JsonReader(*file.json), op_(file), root_(file.json->root()) {}

  Result<FormulaSpec> read() {
    FormulaSpec out;
    out.name = op_.op;
    for (const OpFlag& f : op_.of(OpFlagKind::kSize)) out.dims.push_back(f.name);
    for (const OpFlag& f : op_.of(OpFlagKind::kSwitch)) out.flags.push_back(f.name);
    for (const OpFlag& f : op_.of(OpFlagKind::kNumber)) out.reals.push_back(f.name);
    for (const char* member : {"texts", "dtypes", "args"})
      if (root_.contains(member))
        return bad_at(root_, fmt::format("formulas of a file know no \"{}\"", member), member);
    for (const char* member : {"dims", "reals"}) {
      const Json none = Json::array();
      for (const Json& j : root_.contains(member) ? root_[member] : none)
        if (j.is_object() && j.contains("default")) {
          ROOFGEN_TRY(out.presets[j["name"].get<std::string>()], expression(j, "default"));
        }
    }
    ROOFGEN_TRY(out.formats, strings(root_, "formats"));
    if (out.formats.empty()) out.formats = {"bf16", "fp16", "fp32"};
    ROOFGEN_TRY(const Json* axes, member(root_, "axes", &Json::is_object, "an object of axes and their sizes"));
    for (const auto& [axis, size] : axes->items()) {
      ROOFGEN_TRY(expr::Expr e, expression(size));
      for (const std::string& name : e.names())
        if (std::ranges::count(out.dims, name) == 0)
          return bad_at(
              *axes, fmt::format("undefined size \"{}\" of axis {}{}", name, axis, did_you_mean(name, out.dims)), axis);
      out.axes.emplace(axis, std::move(e));
    }
    ROOFGEN_TRY(out.conditions, expressions(root_, "requires"));
    if (root_.contains("mma_flops")) {
      ROOFGEN_TRY(out.mma_flops, expression(root_, "mma_flops"));
    }
    ROOFGEN_CHECK(read_tensors(out));
    return out;
  }

 private:
  Result<void> read_tensors(FormulaSpec& out) const {
    const Json& tensors = root_["tensors"];
    for (const auto& [name, j] : tensors.items()) {
      ROOFGEN_CHECK(only(j, {"dtype", "axes", "is"}));
      FormulaTensor t{name, {}, {}};
      ROOFGEN_TRY(t.dtype, expression(j, "dtype"));
      ROOFGEN_TRY(t.axes, strings(j, "axes"));
      std::vector<std::string> known;
      for (const auto& [axis, size] : out.axes) known.push_back(axis);
      for (const std::string& axis : t.axes)
        if (!out.axes.count(axis))
          return bad_at(j, fmt::format("unknown axis \"{}\"{}", axis, did_you_mean(axis, known)), "axes");
      if (t.axes.size() > kMostAxes)
        return bad_at(j, fmt::format("{} axes; at most {} were expected", t.axes.size(), kMostAxes), "axes");
      out.tensors.push_back(std::move(t));
    }
    // Now the formulas: they may read any tensor.
    std::map<std::string, double> scalars;
    for (const std::string& name : out.reals) scalars[name] = 1;
    for (FormulaTensor& t : out.tensors) {
      const Json& j = tensors[t.name];
      if (!j.contains("is")) continue;
      ROOFGEN_TRY(t.definitions, definitions(t.name, j));
      ROOFGEN_TRY(t.summed, summed(out, t, j));
      if (t.axes.empty() && t.summed.empty()) return bad_at(j, "a formula of no axis", "is");
      const auto parsed = formula_of(out, t, scalars, [](const FormulaTensor&) { return DType::kFp32; });
      if (!parsed) return at_text(j["is"], parsed.error());
    }
    return {};
  }

  /// The parts of "let" that the formula needs, then the formula.
  Result<std::vector<Definition>> definitions(const std::string& name, const Json& j) const {
    ROOFGEN_TRY(std::string text, string(j, "is"));
    std::vector<Definition> out{{name, std::move(text), "is"}};
    ROOFGEN_TRY(const Json let, list(root_, "let"));
    for (size_t i = let.size(); i-- > 0;) {
      if (!let[i].is_array() || let[i].size() != 2 || !let[i][0].is_string() || !let[i][1].is_string())
        return bad_at(root_, R"("let" holds pairs ["name", "formula"])", "let");
      const auto value = let[i][0].get<std::string>();
      const bool read = std::ranges::any_of(out, [&](const auto& d) { return expr::has_word(d.text, value); });
      if (read) out.insert(out.begin(), {value, let[i][1].get<std::string>(), value});
    }
    return out;
  }

  Result<std::string> summed(const FormulaSpec& spec, const FormulaTensor& output, const Json& j) const {
    std::set<std::string> more;
    for (const FormulaTensor& t : spec.tensors)
      for (const Definition& d : output.definitions)
        if (!root_["tensors"][t.name].contains("is") && expr::has_word(d.text, t.name))
          for (const std::string& axis : t.axes)
            if (std::ranges::count(output.axes, axis) == 0) more.insert(axis);
    if (more.size() > 1)
      return bad_at(
          j, fmt::format("the formula reduces over {}; one axis at most was expected", fmt::join(more, " and ")), "is");
    return more.empty() ? "" : *more.begin();
  }

  /// The error of a formula at its place in the file.
  Error at_text(const Json& is, Error error) const {
    const bool own = error.where.file == "is" && error.where.line == 1;
    Where at = own ? file_.place(is) : file_.find(error.where.file);
    at.col += own ? error.where.col : error.where.line == 1 ? error.where.col - 1 : 0;
    return {Exit::kFailed, std::move(error.message), std::move(at)};
  }

  const OpFile& op_;
  const Json& root_;
};

class FormulaOp final : public Op {
 public:
  FormulaOp(FormulaSpec spec, std::string definition) : spec_(std::move(spec)), definition_(std::move(definition)) {}
  std::string name() const override { return spec_.name; }
  std::string definition() const override { return definition_; }

  Result<Problem> complete(Problem p) const override {
    for (const std::string& dim : spec_.dims) {
      if (!p.dims.count(dim)) {
        const auto preset = spec_.presets.find(dim);
        if (preset == spec_.presets.end()) return usage(fmt::format("{} needs {}", name(), dim));
        ROOFGEN_TRY(p.dims[dim], preset->second.eval_int(numbers(p)));
      }
      ROOFGEN_CHECK(in_range(dim.c_str(), p.dims[dim], 1, kMostSize));
    }
    for (const auto& [dim, size] : p.dims)
      if (std::ranges::count(spec_.dims, dim) == 0)
        return usage(fmt::format("{} has no size {}{}", name(), dim, did_you_mean(dim, spec_.dims)));
    for (const std::string& flag : spec_.flags) p.flags.emplace(flag, false);
    for (const std::string& real : spec_.reals) {
      if (p.reals.count(real)) continue;
      const auto preset = spec_.presets.find(real);
      if (preset == spec_.presets.end()) return usage(fmt::format("{} needs {}", name(), real));
      ROOFGEN_TRY(p.reals[real], preset->second.eval_number(numbers(p)));
    }
    if (std::ranges::count(spec_.formats, to_string(p.dtype)) == 0)
      return usage(fmt::format("{} has no dtype {}; {} was expected", name(), to_string(p.dtype),
                               fmt::join(spec_.formats, ", ")));
    const expr::Map scope = numbers(p);
    for (const expr::Expr& condition : spec_.conditions) {
      std::string why;
      ROOFGEN_TRY(const bool holds, condition.check(scope, &why));
      if (!holds) return usage(fmt::format("{} needs {}", name(), why));
    }
    if (spec_.mma_flops) ROOFGEN_CHECK(spec_.mma_flops->eval_number(scope));
    for (const FormulaTensor& t : spec_.tensors) {
      ROOFGEN_TRY(const expr::Value format, t.dtype.eval(scope));
      if (!format.as<std::string>() || !parse_dtype(format.str()))
        return usage(fmt::format("the dtype of {} is {}; a format like 'fp32' was expected", t.name, format.str()));
      double elements = 1;
      for (const std::string& axis : t.axes) {
        ROOFGEN_TRY(const int64_t size, spec_.axes.at(axis).eval_int(scope));
        ROOFGEN_CHECK(in_range(axis.c_str(), size, 1, kMostSize));
        elements *= static_cast<double>(size);
      }
      if (4 * elements > kMaxTensorBytes)
        return usage(fmt::format("{} has {:.3g} elements; at most 2^38 were expected", t.name, elements));
    }
    return p;
  }

  std::vector<Buffer> buffers(const Problem& problem) const override {
    std::vector<Buffer> out;
    for (const FormulaTensor& t : spec_.tensors) {
      const DType dtype = dtype_of(problem, t);
      out.push_back({t.name, dtype, static_cast<uint64_t>(elements(problem, t) * size_of(dtype)),
                     t.is_output() ? Buffer::Role::kOutput : Buffer::Role::kInput});
    }
    return out;
  }

  expr::Map scope(const Problem& problem) const override {
    expr::Map out = numbers(problem), scalars;
    for (const auto& [name, value] : problem.reals) scalars[name] = value;
    out["scalars"] = expr::Value(std::move(scalars));
    return out;
  }

  /// Each size down to a tile and the remainder, where the whole problem would take long.
  Problem reduced(const Problem& problem) const override {
    int64_t most = 0;
    for (const FormulaTensor& t : spec_.tensors) most = std::max(most, elements(problem, t));
    Problem out = problem;
    if (most <= kWholeElements) return out;
    for (const auto& [axis, size] : spec_.axes)
      if (const auto dim = out.dims.find(size.text()); dim != out.dims.end() && dim->second > 2 * kLargestTile)
        dim->second = kLargestTile + dim->second % kLargestTile;
    return complete(out) ? out : problem;
  }

  Extent extent(const Problem& problem) const override { return extent_of(problem, first_output().name); }
  std::string rows_of(const std::string& output) const override {
    const FormulaTensor* t = find(output);
    if (!t) return {};
    return t->axes.empty() ? t->name : t->axes[t->axes.size() == 1 ? 0 : t->axes.size() - 2];
  }
  Extent extent_of(const Problem& problem, const std::string& output) const override {
    const FormulaTensor* found = find(output);
    const FormulaTensor& t = found ? *found : first_output();
    const size_t rank = t.axes.size();
    const auto from_end = [&](size_t i) { return i > rank ? 1 : size(problem, t.axes[rank - i]); };
    if (rank < 2) return {1, 1, from_end(1), 0};
    return {from_end(4), from_end(3), from_end(2), has_columns(problem, t) ? from_end(1) : 0};
  }

  Slice slice(const Problem& problem) const override {
    const bool columns = std::ranges::any_of(
        spec_.tensors, [&](const FormulaTensor& t) { return t.is_output() && has_columns(problem, t); });
    return {kLargestTile, columns ? kLargestTile : 0, kLargestTile, true};
  }
  /// The file does not say which rows of earlier kernels a kernel reads.
  std::vector<RowRange> rows_fed(const Problem&, const std::string&, RowRange) const override {
    return {{0, std::numeric_limits<int64_t>::max()}};
  }
  uint64_t default_evals() const override { return 40; }

  Problem with_other_scalars(Problem problem) const override {
    Problem out = problem;
    for (auto& [name, value] : out.reals) value = value != 0 ? 1.25 * value : 0.5;
    const auto valid = complete(out);
    return valid ? *valid : problem;
  }
  std::vector<InputPattern> patterns(const Problem& problem) const override {
    const bool reduces = std::ranges::any_of(
        spec_.tensors, [&](const FormulaTensor& t) { return t.is_output() && formula(problem, t).reductions() > 0; });
    return {InputPattern::kSpecial, reduces ? InputPattern::kIntegers : InputPattern::kExtremes};
  }
  /// Sizes that are summed over and are of no output.
  std::vector<Thin> thinner(const Problem& problem) const override {
    for (const auto& [axis, size] : spec_.axes) {
      const auto of_output = [&](const FormulaTensor& t) {
        return t.is_output() && std::ranges::count(t.axes, axis) > 0;
      };
      if (problem.dims.count(size.text()) && std::ranges::none_of(spec_.tensors, of_output)) {
        std::vector<Thin> out = shortened(problem, size.text().c_str(), 64);
        std::erase_if(out, [&](const Thin& thin) { return !complete(thin.problem); });
        return out;
      }
    }
    return {};
  }

  /// Each of them writes every output: what no kernel writes is compared with nothing.
  Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const override {
    ROOFGEN_TRY(std::vector<Variant> out, Op::variants(files, problem));
    for (const Variant& v : out)
      for (const FormulaTensor& t : spec_.tensors)
        if (t.is_output() && std::ranges::none_of(v.stages, [&](const Stage& stage) {
              return std::ranges::count(compared_outputs(*this, problem, stage), t.name) > 0;
            }))
          return Error{Exit::kFailed, fmt::format("no kernel of {} writes {}", v.name, t.name), {v.file}};
    return out;
  }

  std::optional<RequiredWork> required(const Problem& problem) const override {
    RequiredWork out;
    if (spec_.mma_flops) out.mma_flops = spec_.mma_flops->eval_number(numbers(problem)).value();
    for (const Buffer& b : buffers(problem)) out.dram_bytes += static_cast<double>(b.bytes);
    for (const FormulaTensor& t : spec_.tensors)
      if (t.is_output())
        out.exps += formula(problem, t).cost().exps * static_cast<double>(elements(problem, t) * terms(problem, t));
    return out;
  }

  std::function<void(uint64_t, std::span<std::byte>)> filler(const Problem& problem, InputPattern pattern,
                                                             const std::string& buffer) const override {
    DType dtype = problem.dtype;
    for (const FormulaTensor& t : spec_.tensors)
      if (t.name == buffer) dtype = dtype_of(problem, t);
    return [contents = TensorContents{pattern, buffer, dtype}](uint64_t offset, std::span<std::byte> out) {
      contents.fill(offset, out);
    };
  }

  /// The output that the region names. A temporary is compared by what is made of it.
  Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string&, const std::string&,
                             const Region& region, const ElementReader& read) const override {
    Comparison out;
    const FormulaTensor* t = find(region.output);
    if (!t) return out;
    const Formula formula = this->formula(problem, *t);
    // The axes before the last are fixed along a run of elements.
    const size_t rank = t->axes.size();
    const bool by_row = rank > 1;
    std::vector<int64_t> outer{region.batch, region.head, region.row_begin};
    outer.erase(outer.begin(), outer.end() - static_cast<ptrdiff_t>(by_row ? rank - 1 : 0));
    const std::vector<int64_t> extents = sizes(problem, t->axes);
    const int64_t last = rank == 0 ? 1 : extents.back();
    const int64_t begin = by_row ? region.col_begin : region.row_begin,
                  end = by_row ? (region.col_end < 0 ? last : region.col_end) : region.row_end;
    std::string within;
    for (size_t i = 0; i + 2 < rank; ++i) within += fmt::format("{} {}, ", t->axes[i], outer[i]);
    const std::string row_name = rank == 0 ? "element" : by_row ? t->axes[rank - 2] : t->axes[0];
    OutputJudge judge(formula.outputs()[0], read, within, row_name.c_str(), by_row ? t->axes.back().c_str() : "");
    const std::vector<std::string>& indices = formula.vocabulary().indices;
    const std::vector<int64_t> of_indices = sizes(problem, indices);
    const pointwise::TensorReader tensors = contents_reader(indices, of_indices, pattern);
    for (int64_t row = region.row_begin; row < (by_row ? region.row_end : region.row_begin + 1); ++row) {
      if (by_row) outer.back() = row;
      int64_t first = begin, pitch = last;
      for (size_t i = outer.size(); i-- > 0; pitch *= extents[i]) first += outer[i] * pitch;
      const std::vector<Estimate> due = expected(*t, formula, of_indices, tensors, outer, begin, end);
      ROOFGEN_CHECK(judge.compare(first, due, [&](int64_t i) {
        return by_row ? std::pair(row, begin + i) : std::pair(begin + i, int64_t{-1});
      }));
    }
    out.rows = static_cast<uint64_t>(region.row_end - region.row_begin);
    judge.add_to(out);
    return out;
  }

  double weight(const Problem& problem, const Region& region) const override {
    const FormulaTensor* found = find(region.output);
    const FormulaTensor& t = found ? *found : first_output();
    const int64_t cols = t.axes.size() < 2     ? 1
                         : region.col_end >= 0 ? region.col_end - region.col_begin
                                               : size(problem, t.axes.back());
    return static_cast<double>((region.row_end - region.row_begin) * cols * terms(problem, t));
  }

 private:
  const FormulaTensor* find(const std::string& output) const {
    const auto t = std::ranges::find(spec_.tensors, output, &FormulaTensor::name);
    return t == spec_.tensors.end() || !t->is_output() ? nullptr : &*t;
  }
  const FormulaTensor& first_output() const { return *std::ranges::find_if(spec_.tensors, &FormulaTensor::is_output); }

  expr::Map numbers(const Problem& problem) const {
    expr::Map out;
    for (const auto& [name, value] : problem.dims) out[name] = value;
    for (const auto& [name, value] : problem.flags) out[name] = value;
    for (const auto& [name, value] : problem.reals) out[name] = value;
    out["dtype"] = to_string(problem.dtype);
    out["esize"] = size_of(problem.dtype);
    return out;
  }
  // Of a completed problem these have values.
  std::vector<int64_t> sizes(const Problem& problem, const std::vector<std::string>& axes) const {
    const expr::Map scope = numbers(problem);
    std::vector<int64_t> out;
    for (const std::string& axis : axes) out.push_back(spec_.axes.at(axis).eval_int(scope).value());
    return out;
  }
  int64_t size(const Problem& problem, const std::string& axis) const { return sizes(problem, {axis})[0]; }
  DType dtype_of(const Problem& problem, const FormulaTensor& t) const {
    return *parse_dtype(t.dtype.eval(numbers(problem)).value().str());
  }
  int64_t elements(const Problem& problem, const FormulaTensor& t) const {
    const std::vector<int64_t> all = sizes(problem, t.axes);
    return std::accumulate(all.begin(), all.end(), int64_t{1}, std::multiplies());
  }
  int64_t terms(const Problem& problem, const FormulaTensor& t) const {
    return t.summed.empty() ? 1 : size(problem, t.summed);
  }
  Formula formula(const Problem& problem, const FormulaTensor& output) const {
    return formula_of(spec_, output, problem.reals, [&](const FormulaTensor& t) { return dtype_of(problem, t); })
        .value();
  }
  /// Whether regions may be parts of rows.
  bool has_columns(const Problem& problem, const FormulaTensor& output) const {
    return output.axes.size() > 1 && (!output.summed.empty() || formula(problem, output).reductions() == 0);
  }

  /// Elements [begin, end) along the last axis of an output. `sizes`: of the formula's indices.
  static std::vector<Estimate> expected(const FormulaTensor& output, const Formula& formula,
                                        const std::vector<int64_t>& sizes, const pointwise::TensorReader& tensors,
                                        const std::vector<int64_t>& outer, int64_t begin, int64_t end) {
    std::vector<Estimate> out;
    if (!output.summed.empty()) {
      const std::vector<Estimate> source(static_cast<size_t>(sizes.back()));
      std::vector<int64_t> row = outer;
      if (!output.axes.empty()) row.push_back(0);
      for (int64_t i = begin; i < end; ++i) {
        if (!output.axes.empty()) row.back() = i;
        out.push_back(formula.evaluate(source, row, 0, tensors)[0][0]);
      }
      return out;
    }
    const bool whole = formula.reductions() > 0;
    const std::vector<Estimate> source(static_cast<size_t>(whole ? sizes.back() : end - begin));
    out = formula.evaluate(source, outer, whole ? 0 : begin, tensors)[0];
    return whole ? std::vector<Estimate>(out.begin() + begin, out.begin() + end) : out;
  }

  const FormulaSpec spec_;
  const std::string definition_;
};

}  // namespace

Result<std::unique_ptr<const Op>> formula_op(const OpFile& file) {
  auto spec = FormulaReader(file).read();
  if (!spec) return with_excerpt(*file.json, std::move(spec).error());
  return std::unique_ptr<const Op>(std::make_unique<FormulaOp>(std::move(*spec), sha256(json_line(file.json->root()))));
}

}  // namespace roofgen

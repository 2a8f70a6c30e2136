// The CUDA text of a formula; docs/use/epilogues.md lists its declarations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "generator/pointwise/body.h"
#include "generator/pointwise/functions.h"

namespace roofgen::pointwise {
namespace {

constexpr size_t kMaxInlineText = 60;  // longer operands become variables of their own

const char* type_name(Type type) { return type == Type::kBool ? "bool" : type == Type::kInt ? "int" : "float"; }

std::string literal(double v, Type type) {
  if (type == Type::kBool) return v != 0 ? "true" : "false";
  if (type == Type::kInt) return fmt::format("{}", static_cast<int64_t>(v));
  // 17 digits, so that the compiler rounds the user's number only once.
  std::string out = fmt::format("{:.17g}", v);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out + "f";
}

/// Integers of data are passed as the bits of floats.
std::string of_bits(const std::string& text, Type type) {
  return type == Type::kInt ? "__float_as_int(" + text + ")" : text;
}

/// The statements of one device function.
class DeviceFunction {
 public:
  DeviceFunction(const Body& body, int x) : body_(body), x_(x) {}
  /// In formula_row: totals and derived values so far are known, and there is no element.
  DeviceFunction(const Body& body, int x, int row_level) : body_(body), x_(x), row_level_(row_level) {}

  void need(const std::vector<int>& roots) {
    const std::set<int> all = body_.below(roots, [&](int i) { return is_leaf(i); });
    for (int i : all)
      if (!is_leaf(i))
        for (int a : body_[i].args)
          if (a >= 0) ++uses_[a];
    for (int r : roots) ++uses_[r];
    for (int i : all) {
      if (text_.count(i)) continue;
      std::string text = is_leaf(i) ? leaf(i) : operation(i);
      const bool simple = is_leaf(i) || (uses_[i] == 1 && text.size() <= kMaxInlineText);
      if (simple) {
        text_[i] = std::move(text);
      } else {
        const std::string name = fmt::format("t{}", variables_++);
        statements_ += fmt::format("  const {} {} = {};\n", type_name(body_[i].type), name, text);
        text_[i] = name;
      }
    }
  }
  void statement(const std::string& text) { statements_ += "  " + text + "\n"; }
  void known(int i, std::string text) { text_[i] = std::move(text); }
  const std::string& operator[](int i) const { return text_.at(i); }
  const std::string& statements() const { return statements_; }

 private:
  bool is_leaf(int i) const {
    const Operation& op = body_[i];
    if (i == x_ && row_level_ < 0) return true;
    if (text_.count(i)) return true;
    if (op.code == Code::kReduce) return true;
    if (op.derived >= 0 && (row_level_ < 0 || op.level < row_level_)) return true;
    return op.args[0] < 0;
  }

  std::string leaf(int i) const {
    const Operation& op = body_[i];
    if (i == x_ && row_level_ < 0) return of_bits("x", op.type);
    if (op.code == Code::kReduce) return fmt::format("r.r{}", op.level);
    if (op.derived >= 0) return fmt::format("r.d{}", op.derived);
    const size_t which = static_cast<size_t>(op.which);
    switch (op.code) {
      case Code::kTensor: return of_bits("e.v_" + body_.vocabulary.tensors[which].name, op.type);
      case Code::kScalar: return "s.s_" + body_.scalar_names[which];
      case Code::kIndex: return body_.vocabulary.indices[which];
      case Code::kInverseCols: return "inv_cols";
      default: return op.number < 0 ? "(" + literal(op.number, op.type) + ")" : literal(op.number, op.type);
    }
  }

  std::string operation(int i) const {
    const Operation& op = body_[i];
    const auto arg = [&](int k) -> const std::string& { return text_.at(op.args[static_cast<size_t>(k)]); };
    const auto infix = [&](const char* symbol) { return fmt::format("({} {} {})", arg(0), symbol, arg(1)); };
    const bool is_float = op.type == Type::kFloat, wraps = op.type == Type::kInt && op.of_data;
    const auto wrapping = [&](const char* what) {
      return op.args[1] < 0 ? fmt::format("wrapping_{}({})", what, arg(0))
                            : fmt::format("wrapping_{}({}, {})", what, arg(0), arg(1));
    };
    switch (op.code) {
      case Code::kConvert:
        if (body_[op.args[0]].type != Type::kBool) return fmt::format("float({})", arg(0));
        return is_float ? fmt::format("({} ? 1.0f : 0.0f)", arg(0)) : fmt::format("int({})", arg(0));
      case Code::kNeg: return wraps ? wrapping("negative") : fmt::format("(-{})", arg(0));
      case Code::kAdd: return wraps ? wrapping("sum") : infix("+");
      case Code::kSub: return wraps ? wrapping("difference") : infix("-");
      case Code::kMul: return wraps ? wrapping("product") : infix("*");
      case Code::kFloorDiv: return fmt::format("floor_div({}, {})", arg(0), arg(1));
      case Code::kMod: return fmt::format("floor_mod({}, {})", arg(0), arg(1));
      case Code::kLess: return infix("<");
      case Code::kLessEqual: return infix("<=");
      case Code::kEqual: return infix("==");
      case Code::kNotEqual: return infix("!=");
      case Code::kNot: return fmt::format("(!{})", arg(0));
      case Code::kAnd: return infix("&&");
      case Code::kOr: return infix("||");
      case Code::kSelect: return fmt::format("({} ? {} : {})", arg(0), arg(1), arg(2));
      case Code::kMin: return fmt::format("{}({}, {})", is_float ? "min_nan" : "min", arg(0), arg(1));
      case Code::kMax: return fmt::format("{}({}, {})", is_float ? "max_nan" : "max", arg(0), arg(1));
      case Code::kCall:
        return fmt::format("{}_{}({})", functions()[static_cast<size_t>(op.which)].name, op.exact ? "exact" : "fast",
                           arg(0));
      case Code::kCast: return fmt::format("cast_{}({})", to_string(static_cast<DType>(op.which)), arg(0));
      default: return "";
    }
  }

  const Body& body_;
  const int x_;
  const int row_level_ = -1;
  std::map<int, int> uses_;
  std::map<int, std::string> text_;
  std::string statements_;
  int variables_ = 0;
};

std::string members(const std::vector<std::string>& names) {
  return names.empty() ? "float none;" : fmt::format("float {};", fmt::join(names, ", "));
}

}  // namespace

std::string cuda_text(const Body& body) {
  std::vector<std::string> fields, scalars, totals, indices, row_indices;
  for (const TensorArg& t : body.tensors) fields.push_back("v_" + t.name);
  for (int i : body.scalars) scalars.push_back("s_" + body.scalar_names[static_cast<size_t>(i)]);
  for (size_t i = 0; i < body.phases.size(); ++i) totals.push_back(fmt::format("r{}", i));
  for (int i = 0; i < body.derived; ++i) totals.push_back(fmt::format("d{}", i));
  for (const std::string& i : body.vocabulary.indices) indices.push_back("int " + i);
  row_indices.assign(indices.begin(), indices.end() - 1);
  const std::string given = "const FormulaElement& e, const FormulaRow& r, const FormulaScalars& s";
  std::string out =
      fmt::format("struct FormulaElement {{ {} }};\nstruct FormulaScalars {{ {} }};\nstruct FormulaRow {{ {} }};\n",
                  members(fields), members(scalars), members(totals));

  for (size_t i = 0; i < body.phases.size(); ++i) {
    const Phase& phase = body.phases[i];
    DeviceFunction f(body, phase.before);
    f.need({body.term(phase), phase.after});
    if (phase.after != phase.before) {
      // First, because the term may use x.
      if (body.term(phase) != phase.after) f.statement(fmt::format("const float term = {};", f[body.term(phase)]));
      f.statement(fmt::format("x = {};", f[phase.after]));
    }
    const std::string term = phase.after == phase.before       ? f[body.term(phase)]
                             : body.term(phase) == phase.after ? "x"
                                                               : "term";
    out += fmt::format("__device__ __forceinline__ float formula_phase{}(float& x, {}, {}) {{\n{}  return {};\n}}\n", i,
                       given, fmt::join(indices, ", "), f.statements(), term);

    DeviceFunction row(body, -1, static_cast<int>(i));
    row.statement(fmt::format("r.r{} = total;", i));
    for (int d : phase.derived) {
      row.need({d});
      row.statement(fmt::format("r.d{} = {};", body[d].derived, row[d]));
      row.known(d, fmt::format("r.d{}", body[d].derived));
    }
    std::vector<std::string> parameters{"float total", "FormulaRow& r", "const FormulaScalars& s"};
    parameters.insert(parameters.end(), row_indices.begin(), row_indices.end());
    parameters.emplace_back("float inv_cols");
    out += fmt::format("__device__ __forceinline__ void formula_row{}({}) {{\n{}}}\n", i, fmt::join(parameters, ", "),
                       row.statements());
  }
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    const PlannedOutput& o = body.planned[i];
    DeviceFunction f(body, o.x);
    f.need({o.value});
    out += fmt::format("__device__ __forceinline__ float formula_{}(float x, {}, {}) {{\n{}  return {};\n}}\n",
                       body.outputs[i].buffer, given, fmt::join(indices, ", "), f.statements(),
                       body[o.value].type == Type::kInt ? "__int_as_float(" + f[o.value] + ")" : f[o.value]);
  }
  return out;
}

}  // namespace roofgen::pointwise

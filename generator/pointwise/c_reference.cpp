// The reference of a formula as C, for the self tests of emitted libraries: the definitions as written, in double
// precision, with the error of a correct kernel, as Formula::evaluate computes them. templates/bundle/number.c.jinja
// has the functions. The text is the body of
//
//   void formula(const number* source, int64_t m, int64_t rows, int64_t cols, number* const* out)
//
// where source[n] has n from 0 to cols - 1; of attention with the indices b, h, q and their sizes batches, heads
// instead of m and rows, and n for k. t_bias: the elements of a tensor; s_scale: a scalar.
#include <fmt/format.h>

#include "generator/pointwise/body.h"
#include "generator/pointwise/functions.h"

namespace roofgen::pointwise {
namespace {

class Text {
 public:
  explicit Text(const Body& body) : body_(body) {}

  std::string whole() {
    for (size_t i = 0; i < body_.phases.size(); ++i) {
      const Phase& phase = body_.phases[i];
      static constexpr const char* kKinds[] = {"sum", "max", "min"};
      const char* kind = kKinds[body_[phase.reduce].which];
      out_ += fmt::format("  total total{} = start_{}();\n  for (int64_t n = 0; n < cols; ++n) {{\n", i, kind);
      const int term = body_.term(phase);
      operations({term}, "    ");
      out_ += fmt::format("    add_{}(&total{}, {}, source[n].sigma);\n  }}\n", kind, i, name(term));
      out_ += fmt::format("  const number {} = end_{}(&total{}, cols);\n", name(phase.reduce), kind, i);
    }
    std::vector<int> rows, elements;
    for (size_t i = 0; i < body_.outputs.size(); ++i)
      (body_.outputs[i].per_row ? rows : elements).push_back(body_.planned[i].value);
    if (!elements.empty()) {
      out_ += "  for (int64_t n = 0; n < cols; ++n) {\n";
      operations(elements, "    ");
      store(false, "    ", "n");
      out_ += "  }\n";
    }
    if (!rows.empty()) {
      out_ += "  {\n    const int64_t n = 0;\n    (void)n;\n";
      operations(rows, "    ");
      store(true, "    ", "0");
      out_ += "  }\n";
    }
    return std::move(out_);
  }

 private:
  static std::string name(int i) { return fmt::format("v{}", i); }

  void store(bool per_row, const char* indent, const char* at) {
    for (size_t i = 0; i < body_.outputs.size(); ++i)
      if (body_.outputs[i].per_row == per_row)
        out_ +=
            fmt::format("{}out[{}][{}] = settled({}, source[n].sigma);\n", indent, i, at, name(body_.planned[i].value));
  }

  void operations(const std::vector<int>& roots, const char* indent) {
    for (const int i : body_.below(roots, [&](int x) { return body_[x].code == Code::kReduce; }))
      if (body_[i].code != Code::kReduce)
        out_ += fmt::format("{}const number {} = {};\n", indent, name(i), operation(i));
  }

  std::string element(const TensorArg& tensor) const {
    std::string at;
    for (const std::string& index : tensor.indices) {
      const char* size = index == "m" ? "rows" : index == "b" ? "batches" : index == "h" ? "heads" : "cols";
      at = at.empty() ? variable(index) : fmt::format("({}) * {} + {}", at, size, variable(index));
    }
    return fmt::format("t_{}[{}]", tensor.name, at.empty() ? "0" : at);
  }

  /// The last index is that of the loop.
  std::string variable(const std::string& index) const {
    return index == body_.vocabulary.indices.back() ? "n" : index;
  }

  std::string operation(int i) const {
    const Operation& op = body_[i];
    const auto which = static_cast<size_t>(op.which);
    const auto arg = [&](int k) { return name(op.args[static_cast<size_t>(k)]); };
    const auto call = [&](const std::string& function) {
      std::string out = function + "(";
      for (int k = 0; k < 3 && op.args[static_cast<size_t>(k)] >= 0; ++k) out += (k ? ", " : "") + arg(k);
      return out + ")";
    };
    const auto with_sigma = [&](const std::string& function) {
      std::string out = call(function);
      out.pop_back();
      return out + ", source[n].sigma)";
    };
    const bool is_float = op.type == Type::kFloat;
    const std::string whole = op.of_data ? "wrapped_" : "whole_";
    switch (op.code) {
      case Code::kSource: return "(number){source[n].value, 1, 0}";
      case Code::kTensor: return "exact(" + element(body_.vocabulary.tensors[which]) + ")";
      case Code::kScalar: return "constant(s_" + body_.scalar_names[which] + ")";
      case Code::kIndex: return fmt::format("exact((double){})", variable(body_.vocabulary.indices[which]));
      case Code::kInverseCols: return "rounded(exact(1.0 / (double)cols), 0)";
      case Code::kConstant: return fmt::format("{}({:.17g})", is_float ? "constant" : "exact", op.number);
      case Code::kConvert: return is_float ? call("in_fp32") : arg(0);
      case Code::kNeg: return call(is_float || !op.of_data ? "negative" : "wrapped_negative");
      case Code::kAdd: return call(is_float ? "sum" : whole + "sum");
      case Code::kSub: return call(is_float ? "difference" : whole + "difference");
      case Code::kMul: return call(!is_float ? whole + "product" : op.args[0] == op.args[1] ? "square_of" : "product");
      case Code::kFloorDiv: return call("floor_quotient");
      case Code::kMod: return call("remainder_of");
      case Code::kLess: return with_sigma("less");
      case Code::kLessEqual: return with_sigma("less_equal");
      case Code::kEqual: return with_sigma("equal");
      case Code::kNotEqual: return with_sigma("not_equal");
      case Code::kNot: return call("not_true");
      case Code::kAnd: return call("both");
      case Code::kOr: return call("either_one");
      case Code::kSelect: return with_sigma("choose");
      case Code::kMin: return with_sigma(is_float ? "smaller" : "whole_smaller");
      case Code::kMax: return with_sigma(is_float ? "larger" : "whole_larger");
      case Code::kCall:
        return fmt::format("call({}, {}, {}, source[n].sigma)", "F_" + std::string(functions()[which].name),
                           op.exact ? 1 : 0, arg(0));
      case Code::kCast:
        return fmt::format("cast({}, {}, source[n].sigma)", arg(0),
                           std::string("E_") + to_string(static_cast<DType>(op.which)));
      case Code::kReduce: break;
    }
    return name(i);
  }

  const Body& body_;
  std::string out_;
};

}  // namespace

std::string c_text(const Body& body) { return Text(body).whole(); }

}  // namespace roofgen::pointwise

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/suggest.h"
#include "generator/expr/parser.h"
#include "roofline/work.h"

namespace roofgen {
namespace {

using expr::Kind;
using expr::Node;

/// The cost per element. Composite functions count their steps: sigmoid is exp, add, divide.
struct Function {
  const char* name;
  size_t arguments;
  double flops, special;
};

constexpr Function kFunctions[] = {
    {"relu", 1, 1, 0},    {"abs", 1, 1, 0},  {"min", 2, 1, 0},  {"max", 2, 1, 0},   {"clamp", 3, 2, 0},
    {"exp", 1, 1, 1},     {"log", 1, 1, 1},  {"sqrt", 1, 1, 1}, {"rsqrt", 1, 1, 1}, {"tanh", 1, 1, 1},
    {"sigmoid", 1, 3, 2}, {"silu", 1, 4, 2}, {"gelu", 1, 8, 1}, {"cast", 1, 0, 0},
};
constexpr const char* kScalars[] = {"alpha", "beta", "scale"};
constexpr size_t kMaxKernels = 1000;

/// An intermediate value of the chain: its indices, and its name if it is stored in memory.
struct Operand {
  bool rows = false, cols = false;
  std::string tensor;  ///< empty: a constant or a scalar
};

class Walker {
 public:
  Walker(const Source& source, const ElementwiseRequest& request, const NumberFormat* format)
      : source_(source), request_(request), format_(format) {}

  OpWork walk(const Node& root) {
    const Operand result = visit(root);
    if (!result.rows || !result.cols)
      fail(root, "the result is not a tensor of rows x cols; name at least one, like x");
    if (request_.unfused && out_.kernels.empty()) fail(root, "no operation");
    if (!request_.unfused) {
      KernelWork kernel;
      kernel.name = "fused";
      for (const auto& [name, o] : leaves_) kernel.operands.push_back(tensor(o, false));
      kernel.vector_flops = flops_;
      kernel.exps = special_;
      kernel.operands.push_back(tensor({true, true, result_name()}, true));
      finish(kernel);
    } else {
      out_.kernels.back().operands.back().name = result_name();
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const Node& node, std::string message) const { fail_at(source_, node.at, std::move(message)); }

  /// "y", or "y'" when an input is called "y".
  std::string result_name() const { return leaves_.count("y") ? "y'" : "y"; }

  double elements(const Operand& o) const {
    return (o.rows ? static_cast<double>(request_.rows) : 1.0) * (o.cols ? static_cast<double>(request_.cols) : 1.0);
  }
  OperandWork tensor(const Operand& o, bool write) const { return {o.tensor, write, elements(o), format_}; }

  void finish(KernelWork& kernel) {
    kernel.l2_bytes = kernel.dram_bytes();
    kernel.ctas = std::ceil(elements({true, true, ""}) / 4096);
    out_.kernels.push_back(std::move(kernel));
  }

  Operand leaf(const Node& node, const std::string& name, bool rows, bool cols) {
    const Operand o{rows, cols, name};
    const auto [it, is_new] = leaves_.emplace(name, o);
    if (!is_new && (it->second.rows != rows || it->second.cols != cols))
      fail(node, fmt::format("{} is used with other indices elsewhere", name));
    return o;
  }

  /// Counts one operation on `arguments`; in the unfused form it becomes a kernel.
  Operand operation(const std::string& name, double flops, double special, const std::vector<Operand>& arguments) {
    Operand result;
    for (const Operand& a : arguments) {
      result.rows |= a.rows;
      result.cols |= a.cols;
    }
    const double n = elements(result);
    flops_ += flops * n;
    special_ += special * n;
    // A cast needs no separate pass; arithmetic on constants happens before the launch.
    if (flops == 0 || (!result.rows && !result.cols)) {
      if (arguments.size() == 1) result.tensor = arguments[0].tensor;
      return result;
    }
    if (!request_.unfused) return result;
    KernelWork kernel;
    kernel.name = name;
    for (const Operand& a : arguments)
      if (!a.tensor.empty() && std::none_of(kernel.operands.begin(), kernel.operands.end(),
                                            [&](const OperandWork& o) { return o.name == a.tensor; }))
        kernel.operands.push_back(tensor(a, false));
    result.tensor = fmt::format("#{}", out_.kernels.size() + 1);  // a name that no expression can contain
    kernel.operands.push_back(tensor(result, true));
    kernel.vector_flops = flops * n;
    kernel.exps = special * n;
    finish(kernel);
    return result;
  }

  Operand visit(const Node& node) {
    if (out_.kernels.size() > kMaxKernels) fail(node, "too many operations");
    switch (node.kind) {
      case Kind::kLiteral:
        if (!node.value.as<int64_t>() && !node.value.as<double>()) fail(node, "a number was expected");
        return {};
      case Kind::kName:
        if (std::find(std::begin(kScalars), std::end(kScalars), node.name) != std::end(kScalars)) return {};
        return leaf(node, node.name, true, true);
      case Kind::kIndex: {
        const Node &base = node.args[0], &index = node.args[1];
        if (base.kind != Kind::kName || index.kind != Kind::kName || (index.name != "m" && index.name != "n"))
          fail(node, "a tensor is written x, bias[n] (one value per column) or w[m] (one per row)");
        return leaf(base, base.name, index.name == "m", index.name == "n");
      }
      case Kind::kUnary:
        if (node.ops[0] != expr::Op::kNeg) fail(node, "only - is an operation on one value");
        return operation("negate", 1, 0, {visit(node.args[0])});
      case Kind::kBinary: {
        const char* name = node.ops[0] == expr::Op::kAdd   ? "add"
                           : node.ops[0] == expr::Op::kSub ? "subtract"
                           : node.ops[0] == expr::Op::kMul ? "multiply"
                           : node.ops[0] == expr::Op::kDiv ? "divide"
                                                           : nullptr;
        if (!name) fail(node, "only + - * / are operations on tensors");
        Operand left = visit(node.args[0]);
        return operation(name, 1, 0, {left, visit(node.args[1])});
      }
      case Kind::kCall: return call(node);
      default: fail(node, "not an elementwise operation; + - * / and functions were expected");
    }
  }

  Operand call(const Node& node) {
    std::vector<std::string> known;
    for (const Function& f : kFunctions) {
      known.emplace_back(f.name);
      if (node.name != f.name) continue;
      if (node.args.size() != f.arguments + 1 || !node.keywords.empty())
        fail(node, fmt::format("{} takes {} value{}", f.name, f.arguments, f.arguments == 1 ? "" : "s"));
      std::vector<Operand> arguments;
      for (size_t i = 1; i < node.args.size(); ++i) arguments.push_back(visit(node.args[i]));
      return operation(f.name, f.flops, f.special, arguments);
    }
    fail(node, fmt::format("unknown function \"{}\"{}", node.name, did_you_mean(node.name, known)));
  }

  const Source& source_;
  const ElementwiseRequest& request_;
  const NumberFormat* format_;
  std::map<std::string, Operand> leaves_;
  double flops_ = 0, special_ = 0;
  OpWork out_;
};

}  // namespace

std::string elementwise_functions() {
  std::string out;
  for (const Function& f : kFunctions)
    out += fmt::format("  {:<8} {:g} FLOP, {:g} special-function\n", f.name, f.flops, f.special);
  return out;
}

Result<OpWork> elementwise_work(const ElementwiseRequest& request) {
  if (request.rows < 1 || request.cols < 1)
    return Error{Exit::kUsage, "elementwise needs --rows and --cols of at least 1"};
  ROOFGEN_TRY(const NumberFormat* format, find_number_format(request.dtype));
  const Source source{request.expression, {"<expression>", 1, 1}};
  OpWork out;
  try {
    const expr::Tokens tokens = expr::tokenize(source, 0, expr::Until::kEndOfText);
    // The template dialect accepts any function name; the walker checks the names.
    expr::Parser parser(source, tokens.list, expr::Dialect::kTemplate);
    const Node root = parser.expression();
    parser.expect_end();
    out = Walker(source, request, format).walk(root);
  } catch (Failure& failure) {
    failure.error.exit = Exit::kUsage;
    return std::move(failure.error);
  }
  out.op = "elementwise";
  out.form = request.unfused ? "unfused" : "fused";
  out.title = "y = " + request.expression;
  out.dims = {{"rows", request.rows}, {"cols", request.cols}};
  out.flags = {{"unfused", request.unfused}};
  out.dtypes = {{"x", format}};
  out.math = out.accumulate = "fp32";
  return out;
}

}  // namespace roofgen

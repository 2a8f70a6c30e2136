#include "generator/pointwise/formula.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "generator/expr/parser.h"
#include "generator/pointwise/body.h"

namespace roofgen::pointwise {
namespace {

expr::List names(const std::vector<TensorArg>& all, const std::set<int>& which, const Vocabulary& v) {
  expr::List out;
  for (const TensorArg& t : all)  // in the order of the kernel's arguments
    for (int i : which)
      if (v.tensors[static_cast<size_t>(i)].name == t.name) out.emplace_back(t.name);
  return out;
}

/// The type of elements in kernels. Integers of formulas are not converted to floats.
std::string element(DType dtype, bool whole) {
  const std::string type = std::string("Element_") + to_string(dtype);
  return whole && has_integers(dtype) ? "Whole<" + type + ">" : type;
}

}  // namespace

Result<Formula> Formula::parse(std::vector<Definition> definitions, std::vector<Output> outputs,
                               Vocabulary vocabulary) {
  auto body = std::make_shared<Body>();
  body->vocabulary = std::move(vocabulary);
  body->outputs = std::move(outputs);
  ROOFGEN_CHECK(check(definitions, *body));
  ROOFGEN_CHECK(plan(*body, definitions.empty() ? "" : definitions.back().argument));
  body->cuda = cuda_text(*body);
  Formula out;
  out.body_ = std::move(body);
  return out;
}

const Vocabulary& Formula::vocabulary() const { return body_->vocabulary; }
const std::vector<Output>& Formula::outputs() const { return body_->outputs; }
const std::vector<TensorArg>& Formula::tensors() const { return body_->tensors; }
int Formula::reductions() const { return static_cast<int>(body_->phases.size()); }
Cost Formula::cost() const { return body_->cost; }

bool Formula::rounds_integers() const {
  const Body& b = *body_;
  for (size_t i = 0; i < b.outputs.size(); ++i)
    if (has_integer_source(b.vocabulary) && b.outputs[i].dtype == DType::kInt32 &&
        b[b.planned[i].value].type != Type::kInt)
      return true;
  return false;
}

std::vector<std::string> Formula::scalars() const {
  std::vector<std::string> out;
  for (int i : body_->scalars) out.push_back(body_->scalar_names[static_cast<size_t>(i)]);
  return out;
}

expr::Map Formula::scope() const {
  const Body& b = *body_;
  const Vocabulary& v = b.vocabulary;
  expr::List matrices, vectors, tensors, scalar_list, phases, outputs;
  bool integers = has_integer_source(v);  // somewhere in the kernel
  int64_t per_element = 0, per_column = 0, written = 0;
  for (const TensorArg& t : b.tensors) {
    expr::List indices(t.indices.begin(), t.indices.end());
    const bool along_row = std::find(t.indices.begin(), t.indices.end(), v.indices.back()) != t.indices.end();
    expr::List& alike = t.indices == v.indices ? matrices : vectors;
    alike.emplace_back(expr::Map{{"name", t.name},
                                 {"dtype", to_string(t.dtype)},
                                 {"element", element(t.dtype, true)},
                                 {"size", size_of(t.dtype)},
                                 {"indices", indices},
                                 {"param", "t_" + t.name},
                                 {"along_row", along_row},
                                 {"along_rows", t.indices.size() > (along_row ? 1u : 0u)},
                                 {"field", "v_" + t.name},
                                 {"place", static_cast<int64_t>(alike.size())}});
    tensors.push_back(alike.back());
    if (along_row) (t.indices.size() > 1 ? per_element : per_column) += size_of(t.dtype);
    integers |= has_integers(t.dtype);
  }
  for (const std::string& s : scalars()) scalar_list.emplace_back(s);
  static constexpr const char* kReduces[] = {"sum", "max", "min"};
  for (const Phase& p : b.phases)
    phases.emplace_back(expr::Map{{"reduce", kReduces[b[p.reduce].which]},
                                  {"reads", names(b.tensors, p.tensors, v)},
                                  {"online", p.online},
                                  {"exp", b[b.term(p)].exact ? "exp_exact" : "exp_fast"}});
  for (size_t i = 0; i < b.outputs.size(); ++i) {
    const Output& o = b.outputs[i];
    const PlannedOutput& planned = b.planned[i];
    outputs.emplace_back(expr::Map{{"buffer", o.buffer},
                                   {"dtype", to_string(o.dtype)},
                                   {"element", element(o.dtype, b[planned.value].type == Type::kInt)},
                                   {"exact", is_exact(o.dtype)},
                                   {"per_row", o.per_row},
                                   {"call", "formula_" + o.buffer},
                                   {"param", "o_" + o.buffer},
                                   {"reads", names(b.tensors, planned.tensors, v)},
                                   {"after_phase", planned.after_phase}});
    if (!o.per_row) written += size_of(o.dtype);
    integers |= b[planned.value].type == Type::kInt;
  }
  return {{"cuda", b.cuda},
          {"has_integers", integers},
          {"source", expr::Map{{"name", v.source},
                               {"dtype", to_string(v.source_dtype)},
                               {"element", element(v.source_dtype, has_integer_source(v))}}},
          {"tensors", tensors},
          {"matrices", matrices},
          {"vectors", vectors},
          {"scalars", scalar_list},
          {"phases", phases},
          {"outputs", outputs},
          {"cost", expr::Map{{"fp32", b.cost.fp32},
                             {"alu", b.cost.alu},
                             {"mufu", b.cost.mufu},
                             {"exps", b.cost.exps},
                             {"reductions", b.cost.reductions}}},
          {"bytes", expr::Map{{"element", per_element}, {"column", per_column}, {"written", written}}}};
}

Result<TensorArg> parse_tensor_arg(std::string_view text) {
  const Source source{std::string(text), Where{"--arg", 1, 1}};
  try {
    const expr::Tokens tokens = expr::tokenize(source, 0, expr::Until::kEndOfText);
    expr::Parser parser(source, tokens.list, expr::Dialect::kFormula);
    TensorArg out;
    out.name = parser.expect_name("the tensor's name").text;
    parser.expect(":", "and the format, as in slope:fp32[h]");
    const expr::Token format = parser.expect_name("a format");
    const std::optional<DType> dtype = parse_dtype(std::string(format.text));
    if (!dtype) {
      static const std::vector<std::string> kFormats = {"bf16", "fp16", "fp32", "fp8", "int8", "int32"};
      parser.fail(format.span,
                  fmt::format("unknown format \"{}\"{}", format.text, did_you_mean(format.text, kFormats)));
    }
    out.dtype = *dtype;
    if (parser.accept("[")) {
      do {
        const expr::Token index = parser.expect_name("an index");
        if (std::find(out.indices.begin(), out.indices.end(), index.text) != out.indices.end())
          parser.fail(index.span, "this index is there twice");
        out.indices.emplace_back(index.text);
      } while (parser.accept(","));
      parser.expect("]", "after the indices");
    }
    parser.expect_end();
    return out;
  } catch (Failure& failure) {
    failure.error.exit = Exit::kUsage;
    return std::move(failure.error);
  }
}

}  // namespace roofgen::pointwise

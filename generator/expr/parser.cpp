#include "generator/expr/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "generator/expr/builtins.h"

namespace roofgen::expr {
namespace {

// Deeper than any formula written by hand, and safe for small stacks of parser and evaluator.
constexpr int kMaxNesting = 100;
constexpr int kMaxHeight = 200;

constexpr std::array<std::string_view, 5> kLoopMembers = {"index", "index0", "first", "last", "length"};
// In Python these are methods of dict, which Jinja2 prefers over the key of the same name.
constexpr std::array<std::string_view, 11> kDictMethods = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                                           "pop",   "popitem", "setdefault", "update", "values"};

template <class Table>
bool contains(const Table& table, std::string_view word) {
  return std::find(table.begin(), table.end(), word) != table.end();
}

std::string describe(const Token& token) {
  return token.kind == Token::Kind::kEnd ? "the end" : fmt::format("\"{}\"", token.text);
}

}  // namespace

bool is_keyword(std::string_view word) {
  static constexpr std::array<std::string_view, 13> kKeywords = {"and",  "or",    "not",  "in",   "if",    "else", "is",
                                                                 "true", "false", "none", "True", "False", "None"};
  return contains(kKeywords, word);
}

/// Counts the depth of recursion. Every bracket leads to expression(), which counts it.
class Parser::Nesting {
 public:
  explicit Nesting(Parser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxNesting)
      parser_.fail(parser_.peek().span, fmt::format("nested too deeply; the limit is {}", kMaxNesting));
  }
  ~Nesting() { --parser_.nesting_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Parser& parser_;
};

const Token& Parser::peek(size_t ahead) const { return tokens_[std::min(pos_ + ahead, tokens_.size() - 1)]; }

bool Parser::is(std::string_view text) const {
  const Token& t = peek();
  return (t.kind == Token::Kind::kSymbol || t.kind == Token::Kind::kName) && t.text == text;
}

bool Parser::accept(std::string_view text) {
  if (!is(text)) return false;
  ++pos_;
  return true;
}

void Parser::expect(std::string_view text, std::string_view why) {
  if (!accept(text)) fail(peek().span, fmt::format("expected \"{}\" {}, found {}", text, why, describe(peek())));
}

Token Parser::expect_name(std::string_view what) {
  const Token token = peek();
  if (token.kind != Token::Kind::kName || is_keyword(token.text))
    fail(token.span, fmt::format("expected {}, found {}", what, describe(token)));
  // Names with a special meaning in Jinja2 templates.
  static constexpr std::array<std::string_view, 6> kReserved = {"loop", "self", "super", "caller", "varargs", "kwargs"};
  if (contains(kReserved, token.text)) fail(token.span, fmt::format("\"{}\" is reserved", token.text));
  ++pos_;
  return token;
}

void Parser::expect_end() {
  const Token& t = peek();
  if (t.kind == Token::Kind::kEnd) return;
  if (is("=")) fail(t.span, "unexpected \"=\"; comparison is \"==\"");
  if (is("is")) fail(t.span, "\"is\" tests do not exist here; compare with ==, or use |default");
  if (is(",")) fail(t.span, "unexpected \",\"; a list is written [a, b]");
  fail(t.span, fmt::format("unexpected {}", describe(t)));
}

Node Parser::finish(Node node) const {
  node.span.end = last_end();
  int height = 0;
  for (const Node& arg : node.args) height = std::max<int>(height, arg.height);
  if (height >= kMaxHeight) fail(node.at, fmt::format("expression too deep; the limit is {} levels", kMaxHeight));
  node.height = static_cast<uint16_t>(height + 1);
  return node;
}

Node Parser::expression() {
  Nesting nesting(*this);
  Node value = condition();
  if (!is("if")) return value;
  Node node{.kind = Kind::kIf, .span = value.span, .at = peek().span};
  ++pos_;
  node.args.push_back(condition());
  node.args.push_back(std::move(value));
  expect("else", "(a conditional needs both branches)");
  node.args.push_back(expression());
  return finish(std::move(node));
}

Node Parser::condition() {
  Node first = conjunction();
  if (!is("or")) return first;
  Node node{.kind = Kind::kOr, .span = first.span, .at = peek().span};
  node.args.push_back(std::move(first));
  while (accept("or")) node.args.push_back(conjunction());
  return finish(std::move(node));
}

Node Parser::conjunction() {
  Node first = negation();
  if (!is("and")) return first;
  Node node{.kind = Kind::kAnd, .span = first.span, .at = peek().span};
  node.args.push_back(std::move(first));
  while (accept("and")) node.args.push_back(negation());
  return finish(std::move(node));
}

Node Parser::negation() {
  if (!is("not")) return comparison();
  Nesting nesting(*this);
  Node node{.kind = Kind::kUnary, .span = peek().span, .at = peek().span, .ops = {Op::kNot}};
  ++pos_;
  node.args.push_back(negation());
  return finish(std::move(node));
}

Node Parser::comparison() {
  Node first = sum();
  Node node{.kind = Kind::kCompare, .span = first.span, .at = peek().span};
  while (true) {
    static constexpr std::pair<std::string_view, Op> kOps[] = {{"==", Op::kEq}, {"!=", Op::kNe}, {"<", Op::kLt},
                                                               {"<=", Op::kLe}, {">", Op::kGt},  {">=", Op::kGe},
                                                               {"in", Op::kIn}};
    const auto* found = std::find_if(std::begin(kOps), std::end(kOps), [&](auto& o) { return is(o.first); });
    if (found != std::end(kOps)) {
      node.ops.push_back(found->second);
      ++pos_;
    } else if (is("not") && peek(1).kind == Token::Kind::kName && peek(1).text == "in") {
      node.ops.push_back(Op::kNotIn);
      pos_ += 2;
    } else {
      break;
    }
    if (node.args.empty()) node.args.push_back(std::move(first));
    node.args.push_back(sum());
  }
  return node.ops.empty() ? first : finish(std::move(node));
}

Node Parser::binary(Op op, const Token& token, Node left, Node right) {
  Node node{.kind = Kind::kBinary, .span = left.span, .at = token.span, .ops = {op}};
  node.args.reserve(2);
  node.args.push_back(std::move(left));
  node.args.push_back(std::move(right));
  return finish(std::move(node));
}

Node Parser::sum() {
  Node left = product();
  while (is("+") || is("-")) {
    const Token& token = tokens_[pos_++];
    left = binary(token.text == "+" ? Op::kAdd : Op::kSub, token, std::move(left), product());
  }
  return left;
}

Node Parser::product() {
  Node left = power();
  while (is("*") || is("/") || is("//") || is("%")) {
    const Token& token = tokens_[pos_++];
    const Op op = token.text == "*"    ? Op::kMul
                  : token.text == "/"  ? Op::kDiv
                  : token.text == "//" ? Op::kFloorDiv
                                       : Op::kMod;
    left = binary(op, token, std::move(left), power());
  }
  return left;
}

Node Parser::power() {
  const bool sign = is("-") || is("+");
  Node left = unary(true);
  if (!is("**")) return left;
  const Token& token = tokens_[pos_++];
  // Python: -(a ** b) and a ** (b ** c). Jinja2: (-a) ** b and (a ** b) ** c.
  if (sign) fail(token.span, "a sign before \"**\" is ambiguous; write (-a) ** b or -(a ** b)");
  Node right = unary(true);
  if (is("**")) fail(peek().span, "a ** b ** c is ambiguous; write parentheses");
  return binary(Op::kPow, token, std::move(left), std::move(right));
}

Node Parser::unary(bool with_filter) {
  Node node;
  if (is("-") || is("+")) {
    Nesting nesting(*this);
    const Token& token = tokens_[pos_++];
    node = Node{
        .kind = Kind::kUnary, .span = token.span, .at = token.span, .ops = {token.text == "-" ? Op::kNeg : Op::kPos}};
    node.args.push_back(unary(false));
    node = finish(std::move(node));
  } else {
    node = postfix(primary());
  }
  return with_filter ? filters(std::move(node)) : node;
}

Node Parser::primary() {
  const Token& token = peek();
  Node node{.span = token.span, .at = token.span};
  switch (token.kind) {
    case Token::Kind::kLiteral: node.value = token.value; break;
    case Token::Kind::kName:
      if (token.text == "true" || token.text == "True")
        node.value = true;
      else if (token.text == "false" || token.text == "False")
        node.value = false;
      else if (token.text != "none" && token.text != "None") {
        if (is_keyword(token.text)) fail(token.span, fmt::format("expected a value, found \"{}\"", token.text));
        if (dialect_ == Dialect::kTemplate && token.text == "loop") check_loop(token);
        node.kind = Kind::kName;
        node.name = token.text;
      }
      break;
    case Token::Kind::kSymbol:
      if (token.text == "[") return list();
      if (token.text == "(") {
        ++pos_;
        node = expression();
        if (is(",")) fail(peek().span, "tuples do not exist here; a list is written [a, b]");
        // Messages show an operation with the brackets around its operands.
        node.span = {token.span.begin, peek().span.end};
        expect(")", "after the expression");
        return node;
      }
      [[fallthrough]];
    case Token::Kind::kEnd: fail(token.span, fmt::format("expected a value, found {}", describe(token)));
  }
  ++pos_;
  return node;
}

/// Of Jinja2's loop object only the plain numbers are supported.
void Parser::check_loop(const Token& token) const {
  if (peek(1).text != "." || !contains(kLoopMembers, peek(2).text))
    fail(token.span, fmt::format("loop is used as loop.NAME, where NAME is one of {}", fmt::join(kLoopMembers, ", ")));
}

Node Parser::list() {
  Node node{.kind = Kind::kList, .span = peek().span, .at = peek().span};
  ++pos_;
  while (!is("]")) {
    node.args.push_back(expression());
    if (!accept(",")) break;
  }
  expect("]", "after the list");
  return finish(std::move(node));
}

Node Parser::postfix(Node node) {
  while (true) {
    if (is(".")) {
      ++pos_;
      const Token& token = peek();
      if (token.kind != Token::Kind::kName)
        fail(token.span, fmt::format("expected a name after \".\", found {}", describe(token)));
      if (contains(kDictMethods, token.text))
        fail(token.span, fmt::format("maps have no methods; for a key of that name write [\"{}\"]", token.text));
      ++pos_;
      Node attr{.kind = Kind::kAttr, .span = node.span, .at = token.span, .name = std::string(token.text)};
      attr.args.push_back(std::move(node));
      node = finish(std::move(attr));
    } else if (is("[")) {
      Node index{.kind = Kind::kIndex, .span = node.span, .at = peek().span};
      ++pos_;
      index.args.push_back(std::move(node));
      do index.args.push_back(expression());
      while (dialect_ == Dialect::kFormula && accept(","));
      if (is(":")) fail(peek().span, "slices do not exist here");
      expect("]", "after the index");
      node = finish(std::move(index));
    } else if (is("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

Node Parser::call(Node callee) {
  const bool function = callee.kind == Kind::kName;
  if (!function &&
      !(dialect_ == Dialect::kTemplate && callee.kind == Kind::kAttr && callee.args[0].kind == Kind::kName))
    fail(peek().span, "only functions and macros can be called");
  Node node{.kind = Kind::kCall, .span = callee.span, .at = callee.at, .name = callee.name};
  if (function && dialect_ != Dialect::kFormula) node.builtin = find_function(callee.name);
  if (dialect_ == Dialect::kExpression && !node.builtin)
    fail(callee.at, fmt::format("unknown function \"{}\"{}", callee.name, did_you_mean(callee.name, function_names())));
  node.args.push_back(std::move(callee));
  arguments(node, dialect_ == Dialect::kTemplate);
  return finish(std::move(node));
}

Node Parser::filters(Node node) {
  while (accept("|")) {
    const Token& token = peek();
    if (token.kind != Token::Kind::kName)
      fail(token.span, fmt::format("expected a filter after \"|\", found {}", describe(token)));
    ++pos_;
    Node filter{.kind = Kind::kFilter, .span = node.span, .at = token.span, .name = std::string(token.text)};
    if (dialect_ != Dialect::kFormula) filter.builtin = find_filter(filter.name);
    if (!filter.builtin && dialect_ != Dialect::kFormula)
      fail(token.span, fmt::format("unknown filter \"{}\"{}", token.text, did_you_mean(filter.name, filter_names())));
    filter.args.push_back(std::move(node));
    if (is("(")) arguments(filter, false);
    node = finish(std::move(filter));
  }
  return node;
}

void Parser::arguments(Node& node, bool keywords) {
  expect("(", "before the arguments");
  while (!is(")")) {
    const Token& token = peek();
    if (token.kind == Token::Kind::kName && peek(1).kind == Token::Kind::kSymbol && peek(1).text == "=") {
      if (!keywords) fail(token.span, "functions and filters take no keyword arguments");
      if (contains(node.keywords, token.text))
        fail(token.span, fmt::format("argument \"{}\" is given twice", token.text));
      node.keywords.emplace_back(token.text);
      pos_ += 2;
    } else if (!node.keywords.empty()) {
      fail(token.span, "a positional argument cannot follow a keyword argument");
    }
    node.args.push_back(expression());
    if (!accept(",")) break;
  }
  expect(")", "after the arguments");
}

}  // namespace roofgen::expr

// Tokens -> Node. Grammar and precedences are Jinja2's; where Jinja2 and Python disagree (`-a ** b`, `a ** b ** c`),
// parentheses are required.
#pragma once

#include "generator/expr/ast.h"
#include "generator/expr/lexer.h"

namespace roofgen::expr {

/// The user of the tree. In a template, calls may name macros, which are known only at run time, and `loop` is
/// reserved. A formula (generator/pointwise) has its own functions, and x[m, n] has several indices.
enum class Dialect { kExpression, kTemplate, kFormula };

/// A recursive-descent parser over one token list. Throws Failure.
class Parser {
 public:
  Parser(const Source& source, const std::vector<Token>& tokens, Dialect dialect)
      : source_(source), tokens_(tokens), dialect_(dialect) {}

  Node expression();  ///< everything, including `a if c else b`
  Node condition();   ///< everything but `a if c else b`

  const Token& peek(size_t ahead = 0) const;
  bool is(std::string_view text) const;  ///< is the next token this keyword or symbol?
  bool accept(std::string_view text);    ///< consumes it if it is
  void expect(std::string_view text, std::string_view why);
  /// Takes a name that may be assigned to; `what` is for the message ("a macro name").
  Token expect_name(std::string_view what);
  void expect_end();
  [[noreturn]] void fail(Span at, std::string message) const { fail_at(source_, at, std::move(message)); }

 private:
  Node conjunction();
  Node negation();
  Node comparison();
  Node sum();
  Node product();
  Node power();
  Node unary(bool with_filter);
  Node primary();
  Node postfix(Node node);
  Node filters(Node node);
  Node list();
  Node call(Node callee);
  void arguments(Node& node, bool keywords);
  Node binary(Op op, const Token& token, Node left, Node right);
  Node finish(Node node) const;
  void check_loop(const Token& token) const;
  uint32_t last_end() const { return pos_ ? tokens_[pos_ - 1].span.end : 0; }

  class Nesting;
  const Source& source_;
  const std::vector<Token>& tokens_;
  const Dialect dialect_;
  size_t pos_ = 0;
  int nesting_ = 0;
};

/// Keywords: not allowed as names.
bool is_keyword(std::string_view word);

}  // namespace roofgen::expr

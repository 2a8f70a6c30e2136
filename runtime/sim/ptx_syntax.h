// The parser's state and token helpers, shared by the files that parse declarations and statements.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "runtime/sim/ptx_ast.h"
#include "runtime/sim/ptx_lexer.h"
#include "runtime/sim/ptx_parser.h"

namespace roofgen::sim {

/// Thrown inside the parser only; parse_ptx turns it into an Error.
struct SyntaxError {
  int line;
  std::string message;
};

std::optional<PtxType> type_named(std::string_view t);
std::optional<Space> space_named(std::string_view t);

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }
  PtxModule module();

 private:
  [[noreturn]] void fail(std::string message) { throw SyntaxError{token_.line, std::move(message)}; }
  [[noreturn]] void expected(const char* what) {
    fail(token_.kind == TokenKind::kEnd ? fmt::format("expected {}, found the end of the text", what)
                                        : fmt::format("expected {}, found '{}'", what, token_.text.substr(0, 40)));
  }
  void advance() {
    token_ = lexer_.next();
    if (token_.kind == TokenKind::kBad) fail(fmt::format("malformed token '{}'", token_.text.substr(0, 40)));
  }
  bool is(char c) const { return token_.kind == TokenKind::kPunct && token_.text[0] == c; }
  bool is(std::string_view directive) const { return token_.kind == TokenKind::kDirective && token_.text == directive; }
  bool take(char c) {
    if (!is(c)) return false;
    advance();
    return true;
  }
  void need(char c) {
    if (!take(c)) expected(fmt::format("'{}'", c).c_str());
  }
  std::string_view need_name(const char* what) {
    if (token_.kind != TokenKind::kName) expected(what);
    std::string_view name = token_.text;
    advance();
    return name;
  }
  uint64_t need_integer(const char* what, uint64_t limit) {
    if (token_.kind != TokenKind::kInteger) expected(what);
    if (token_.bits > limit) fail(fmt::format("{} {} is over the limit of {}", what, token_.bits, limit));
    uint64_t value = token_.bits;
    advance();
    return value;
  }

  void skip_statement() {
    while (!take(';')) {
      if (token_.kind == TokenKind::kEnd) expected("';'");
      advance();
    }
  }
  void loc(PtxModule& m);
  void file(PtxModule& m);
  void section();
  PtxVar variable(Space space, bool is_extern);
  void initialiser(PtxVar& var);
  void function(PtxModule& m, bool is_entry, bool is_extern);
  std::vector<PtxVar> parameters();
  void body(PtxModule& m, PtxFunction& f);
  void reg_declaration(PtxFunction& f);
  void instruction(PtxFunction& f);
  PtxOperand operand(int depth);
  PtxOperand immediate();
  PtxStmt& add(PtxFunction& f, PtxStmt::Kind kind) {
    if (++statements_ > kMaxStatements) fail(fmt::format("more than {} statements", kMaxStatements));
    PtxStmt& s = f.body.emplace_back();
    s.kind = kind;
    s.line = token_.line;
    s.loc = loc_;
    return s;
  }

  Lexer lexer_;
  Token token_;
  uint32_t loc_ = 0;
  size_t statements_ = 0;
};

}  // namespace roofgen::sim

// Text -> tokens, of an expression or of a template tag.
#pragma once

#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "generator/expr/expr.h"

namespace roofgen::expr {

struct Token {
  enum class Kind : uint8_t { kEnd, kName, kLiteral, kSymbol };
  Kind kind = Kind::kEnd;
  Span span;
  std::string_view text;  ///< into the source
  Value value;            ///< of a literal
};

/// The end of the tokens. In a tag only outside all brackets, as in Jinja2.
enum class Until { kEndOfText, kVariableEnd, kBlockEnd };

struct Tokens {
  std::vector<Token> list;  ///< ends with one kEnd token
  uint32_t end = 0;         ///< first unread byte: the `-}}`, `}}`, `%}` or the end of the text
};

/// Throws Failure.
Tokens tokenize(const Source& source, uint32_t begin, Until until);

}  // namespace roofgen::expr

// Template text -> pieces: plain text, {{ outputs }} and {% tags %}. Handles comments, raw blocks and all white-space
// control (trim_blocks, lstrip_blocks, `-`, `+`).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/expr/lexer.h"

namespace roofgen::jinja {

struct Piece {
  enum class Kind { kText, kOutput, kTag };
  Kind kind = Kind::kText;
  Span span;                        ///< a tag's span is its opening bracket
  int line = 0;                     ///< of span.begin
  std::string_view text;            ///< of kText
  std::vector<expr::Token> tokens;  ///< of the others, closed by kEnd
};

/// `\r\n` and `\r` become `\n`, as in Jinja2.
std::string normalize_newlines(std::string_view text);

/// Throws Failure. The pieces point into `source`.
std::vector<Piece> split(const Source& source);

}  // namespace roofgen::jinja

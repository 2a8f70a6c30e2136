// Splits PTX text into tokens. Tokens are views into the text, which must outlive them.
#pragma once

#include <cstdint>
#include <string_view>

namespace roofgen::sim {

enum class TokenKind : uint8_t {
  kEnd,
  kName,       ///< identifier with its dots: `add.rn.f32`, `%r1`, `%tid.x`, `$L__BB0_1`
  kDirective,  ///< `.reg`, `.b32`, `.shared::cta`
  kInteger,    ///< `12`, `0x7fU`
  kFloat,      ///< `0f3F800000`, `0d...`, `1.5`
  kString,
  kPunct,  ///< one character
  kBad,    ///< a character that starts no token, or an unterminated string or comment
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  int line = 1;
  uint64_t bits = 0;       ///< value of kInteger (two's complement) or IEEE bits of kFloat
  uint8_t float_bits = 0;  ///< 32 or 64 for kFloat
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();

 private:
  bool skip_space();  ///< false: unterminated comment
  Token number();
  Token make(TokenKind kind, size_t from);
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace roofgen::sim

#include "runtime/sim/ptx_lexer.h"

#include <bit>
#include <charconv>
#include <string>

namespace roofgen::sim {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c) || c == '.'; }

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

}  // namespace

bool Lexer::skip_space() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (text_.substr(at_, 2) == "/*") {
      size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) return false;
      for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    } else {
      return true;
    }
  }
  return true;
}

Token Lexer::make(TokenKind kind, size_t from) {
  Token token;
  token.kind = kind;
  token.text = text_.substr(from, at_ - from);
  token.line = line_;
  return token;
}

Token Lexer::number() {
  size_t from = at_;
  auto peek = [&](size_t i) { return at_ + i < text_.size() ? text_[at_ + i] : '\0'; };
  char second = peek(1);
  if (peek(0) == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    int want = second == 'f' || second == 'F' ? 8 : 16;
    uint64_t bits = 0;
    at_ += 2;
    int n = 0;
    for (; n < want && digit_value(peek(0)) < 16; ++n) bits = bits << 4 | uint64_t(digit_value(text_[at_++]));
    Token token = make(n == want && !is_name_char(peek(0)) ? TokenKind::kFloat : TokenKind::kBad, from);
    token.bits = bits;
    token.float_bits = want == 8 ? 32 : 64;
    return token;
  }
  int base = 10;
  if (peek(0) == '0' && (second == 'x' || second == 'X'))
    base = 16, at_ += 2;
  else if (peek(0) == '0' && (second == 'b' || second == 'B'))
    base = 2, at_ += 2;
  else if (peek(0) == '0')
    base = 8;
  uint64_t value = 0;
  bool overflow = false;
  size_t digits_from = at_;
  // An octal literal may turn out to be a decimal float ("0.5"), so digits are read first as decimal.
  int digit_limit = base == 8 ? 10 : base;
  bool octal_ok = true;
  while (digit_value(peek(0)) < digit_limit) {
    int v = digit_value(text_[at_++]);
    octal_ok &= v < 8;
    overflow |= value > (~uint64_t{0} - uint64_t(v)) / uint64_t(base);
    value = value * uint64_t(base) + uint64_t(v);
  }
  if ((base == 10 || base == 8) && (peek(0) == '.' || peek(0) == 'e' || peek(0) == 'E')) {
    while (is_digit(peek(0)) || peek(0) == '.' || peek(0) == 'e' || peek(0) == 'E' ||
           ((peek(0) == '-' || peek(0) == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))
      ++at_;
    Token token = make(TokenKind::kFloat, from);
    double parsed = 0;  // in no locale: the process may have one
    const char* const last = token.text.data() + token.text.size();
    const auto [end, bad] = std::from_chars(token.text.data(), last, parsed);
    if (bad != std::errc() || end != last) token.kind = TokenKind::kBad;
    token.bits = std::bit_cast<uint64_t>(parsed);
    token.float_bits = 64;
    return token;
  }
  bool ok = at_ > digits_from && !overflow && (base != 8 || octal_ok);
  if (peek(0) == 'U') ++at_;
  if (is_name_char(peek(0))) ok = false;
  Token token = make(ok ? TokenKind::kInteger : TokenKind::kBad, from);
  token.bits = value;
  return token;
}

Token Lexer::next() {
  if (!skip_space()) {
    size_t from = at_;
    at_ = text_.size();
    return make(TokenKind::kBad, from);
  }
  size_t from = at_;
  if (at_ == text_.size()) return make(TokenKind::kEnd, from);
  char c = text_[at_];
  if (is_digit(c)) return number();
  bool directive = c == '.' && at_ + 1 < text_.size() && is_name_start(text_[at_ + 1]);
  if (is_name_start(c) || directive) {
    ++at_;
    while (at_ < text_.size()) {
      if (directive && text_[at_] == '.')
        break;  // `.reg.b32 x`, as hand-written assembly has it
      else if (is_name_char(text_[at_]))
        ++at_;
      else if (text_.substr(at_, 2) == "::")
        at_ += 2;
      else if (text_[at_] == ':' && is_digit(text_[at_ - 1]) && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]) &&
               text_.substr(from, at_ - from).find("::") != std::string_view::npos)
        ++at_;  // `.sp::2:4`
      else
        break;
    }
    return make(directive ? TokenKind::kDirective : TokenKind::kName, from);
  }
  if (c == '"') {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    bool closed = end < text_.size() && text_[end] == '"';
    at_ = closed ? end + 1 : text_.size();
    return make(closed ? TokenKind::kString : TokenKind::kBad, from);
  }
  ++at_;
  constexpr std::string_view kPunctuation = "{}()[]<>,;:=+-!|@*";
  return make(kPunctuation.find(c) != std::string_view::npos ? TokenKind::kPunct : TokenKind::kBad, from);
}

}  // namespace roofgen::sim

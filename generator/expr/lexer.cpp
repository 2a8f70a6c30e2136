#include "generator/expr/lexer.h"

#include <fmt/format.h>

#include <charconv>

namespace roofgen::expr {
namespace {

// Limits far above any expression written by hand.
constexpr size_t kMaxTokens = 20000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'; }

class Lexer {
 public:
  Lexer(const Source& source, uint32_t begin, Until until)
      : source_(source), text_(source.text), pos_(begin), until_(until) {}

  Tokens run() {
    const uint32_t begin = pos_;
    while (true) {
      while (pos_ < text_.size() && is_blank(text_[pos_])) ++pos_;
      if (at_end()) break;
      if (tokens_.list.size() >= kMaxTokens) fail(pos_, pos_ + 1, "the expression has too many tokens");
      if (pos_ >= text_.size()) unterminated(begin);
      next();
    }
    tokens_.end = pos_;
    add(Token::Kind::kEnd, pos_);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(size_t begin, size_t end, std::string message) const {
    fail_at(source_, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, std::move(message));
  }

  bool at_end() const {
    if (until_ == Until::kEndOfText) return pos_ >= text_.size();
    if (!brackets_.empty()) return false;
    const std::string_view close = until_ == Until::kVariableEnd ? "}}" : "%}";
    const std::string_view rest = text_.substr(pos_);
    if (rest.starts_with(close)) return true;
    if (rest.empty() || !rest.substr(1).starts_with(close)) return false;
    return rest[0] == '-' || (rest[0] == '+' && until_ == Until::kBlockEnd);
  }

  [[noreturn]] void unterminated(uint32_t begin) const {
    const bool variable = until_ == Until::kVariableEnd;
    const char* close = variable ? "}}" : "%}";
    if (!brackets_.empty())
      fail(brackets_.back(), brackets_.back() + 1, fmt::format("\"{}\" is never closed", text_[brackets_.back()]));
    fail(begin >= 2 ? begin - 2 : 0, begin, fmt::format("this tag is never closed by \"{}\"", close));
  }

  void add(Token::Kind kind, size_t end, Value value = {}) {
    tokens_.list.push_back(
        {kind, {pos_, static_cast<uint32_t>(end)}, text_.substr(pos_, end - pos_), std::move(value)});
    pos_ = static_cast<uint32_t>(end);
  }

  void next() {
    const char c = text_[pos_];
    if (is_name_start(c)) {
      size_t end = pos_ + 1;
      while (end < text_.size() && is_name(text_[end])) ++end;
      add(Token::Kind::kName, end);
    } else if (is_digit(c)) {
      number();
    } else if (c == '"' || c == '\'') {
      string(c);
    } else {
      symbol();
    }
  }

  size_t digits(size_t at) const {
    while (at < text_.size() && is_digit(text_[at])) ++at;
    return at;
  }

  void number() {
    const char* first = text_.data() + pos_;
    if (text_.substr(pos_).starts_with("0x") || text_.substr(pos_).starts_with("0X")) {
      size_t end = pos_ + 2;
      while (end < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[end]))) ++end;
      return integer(first + 2, end, 16);
    }
    size_t end = digits(pos_);
    const size_t whole = end;
    if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) end = digits(end + 1);
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) end = digits(exponent);
    }
    if (end == whole) return integer(first, end, 10);
    double value = 0;
    if (std::from_chars(first, text_.data() + end, value).ec != std::errc())
      fail(pos_, end, "this number does not fit a double");
    finish_number(end, value);
  }

  void integer(const char* first, size_t end, int base) {
    int64_t value = 0;
    const char* last = text_.data() + end;
    if (first == last) fail(pos_, end, "digits are missing after 0x");
    if (base == 10 && last - first > 1 && *first == '0') fail(pos_, end, "an integer has no leading zeros");
    if (std::from_chars(first, last, value, base).ec != std::errc())
      fail(pos_, end, "this integer does not fit 64 bits");
    finish_number(end, value);
  }

  void finish_number(size_t end, Value value) {
    if (end < text_.size() && (is_name(text_[end]) || text_[end] == '.')) {
      const std::string_view hint = text_[end] == '.' ? " (write 1.0, not 1.)" : "";
      fail(pos_, end + 1, fmt::format("malformed number \"{}\"{}", text_.substr(pos_, end + 1 - pos_), hint));
    }
    add(Token::Kind::kLiteral, end, std::move(value));
  }

  void string(char quote) {
    std::string value;
    size_t at = pos_ + 1;
    for (;; ++at) {
      if (at >= text_.size() || text_[at] == '\n') fail(pos_, at, "this string is never closed on its line");
      if (text_[at] == quote) break;
      if (text_[at] != '\\') {
        value += text_[at];
        continue;
      }
      ++at;
      const char c = at < text_.size() ? text_[at] : '\0';
      if (c == 'n')
        value += '\n';
      else if (c == 't')
        value += '\t';
      else if (c == '\\' || c == '\'' || c == '"')
        value += c;
      else
        fail(at - 1, at + 1, "unknown escape; \\n \\t \\\\ \\' \\\" exist");
    }
    add(Token::Kind::kLiteral, at + 1, std::move(value));
  }

  void symbol() {
    const std::string_view rest = text_.substr(pos_);
    for (const std::string_view s : {"**", "//", "==", "!=", "<=", ">="})
      if (rest.starts_with(s)) return add(Token::Kind::kSymbol, pos_ + 2);
    const char c = rest[0];
    if (std::string_view("+-*/%<>()[]{},.|=:").find(c) == std::string_view::npos) {
      if (c == '&' || c == '!')
        fail(pos_, pos_ + 1, fmt::format("unexpected \"{}\"; write {}", c, c == '&' ? "and" : "not"));
      size_t end = pos_ + 1;  // the whole character, so that the message stays valid UTF-8
      while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
      if (static_cast<unsigned char>(c) < 0x20)
        fail(pos_, end, fmt::format("unexpected byte 0x{:02x}", static_cast<unsigned char>(c)));
      fail(pos_, end, fmt::format("unexpected \"{}\"", text_.substr(pos_, end - pos_)));
    }
    if (c == '(' || c == '[' || c == '{') {
      brackets_.push_back(pos_);
    } else if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (brackets_.empty()) fail(pos_, pos_ + 1, fmt::format("unexpected \"{}\"", c));
      if (text_[brackets_.back()] != open)
        fail(pos_, pos_ + 1, fmt::format("unexpected \"{}\"; \"{}\" is still open", c, text_[brackets_.back()]));
      brackets_.pop_back();
    }
    add(Token::Kind::kSymbol, pos_ + 1);
  }

  const Source& source_;
  const std::string_view text_;
  uint32_t pos_;
  const Until until_;
  std::vector<uint32_t> brackets_;
  Tokens tokens_;
};

}  // namespace

Tokens tokenize(const Source& source, uint32_t begin, Until until) { return Lexer(source, begin, until).run(); }

}  // namespace roofgen::expr

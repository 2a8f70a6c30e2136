#include "generator/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>

namespace roofgen::jinja {
namespace {

constexpr std::string_view kBlank = " \t\n\r\f\v\x1c\x1d\x1e\x1f";  // the ASCII part of Python's \s

bool is_blank(std::string_view s) { return s.find_first_not_of(kBlank) == s.npos; }

class Splitter {
 public:
  explicit Splitter(const Source& source) : source_(source), text_(source.text) {}

  std::vector<Piece> run() {
    while (pos_ < text_.size()) {
      const size_t open = find_open();
      if (open == text_.npos) {
        add_text(pos_, text_.size());
        break;
      }
      const char kind = text_[open + 1];
      size_t inside = open + 2;
      const char sign =
          inside < text_.size() && (text_[inside] == '-' || text_[inside] == '+') ? text_[inside++] : '\0';
      add_text(pos_, text_end(pos_, open, sign, kind == '{'));
      if (kind == '#') {
        comment(open, inside);
      } else if (size_t body = kind == '%' ? raw_body(inside) : text_.npos; body != text_.npos) {
        raw(open, body);
      } else {
        tag(open, inside, kind == '{');
      }
      line_starting_ = text_[pos_ - 1] == '\n';
    }
    return std::move(pieces_);
  }

 private:
  [[noreturn]] void fail(size_t begin, size_t end, std::string message) const {
    fail_at(source_, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, std::move(message));
  }

  size_t find_open() const {
    for (size_t at = pos_; (at = text_.find('{', at)) != text_.npos; ++at)
      if (at + 1 < text_.size() && (text_[at + 1] == '{' || text_[at + 1] == '%' || text_[at + 1] == '#')) return at;
    return text_.npos;
  }

  size_t skip_blank(size_t at) const { return std::min(text_.find_first_not_of(kBlank, at), text_.size()); }

  /// The end of the text before a tag: `-` strips all blanks; a tag at the start of its line (but not an output) strips
  /// the indentation.
  size_t text_end(size_t begin, size_t open, char sign, bool output) const {
    const std::string_view before = text_.substr(begin, open - begin);
    if (sign == '-') {
      const size_t last = before.find_last_not_of(kBlank);
      return last == before.npos ? begin : begin + last + 1;
    }
    if (sign == '+' || output) return open;
    const size_t newline = before.rfind('\n');
    if (newline == before.npos && !line_starting_) return open;
    const size_t line = newline == before.npos ? 0 : newline + 1;
    return is_blank(before.substr(line)) ? begin + line : open;
  }

  /// Behind a closing bracket: `-` strips all blanks, otherwise a tag strips one newline.
  size_t after_close(size_t at, char sign, bool trim_newline) const {
    if (sign == '-') return skip_blank(at);
    return trim_newline && sign != '+' && at < text_.size() && text_[at] == '\n' ? at + 1 : at;
  }

  int line_of(size_t at) {
    line_ += static_cast<int>(
        std::count(text_.begin() + static_cast<ptrdiff_t>(counted_), text_.begin() + static_cast<ptrdiff_t>(at), '\n'));
    counted_ = at;
    return line_;
  }

  void add_text(size_t begin, size_t end) {
    if (begin < end) add(Piece::Kind::kText, begin, end).text = text_.substr(begin, end - begin);
  }

  Piece& add(Piece::Kind kind, size_t begin, size_t end) {
    pieces_.push_back({kind, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}, line_of(begin), {}, {}});
    return pieces_.back();
  }

  void comment(size_t open, size_t inside) {
    const size_t close = text_.find("#}", inside);
    if (close == text_.npos) fail(open, open + 2, "this comment is never closed by \"#}\"");
    const char sign = close > inside && (text_[close - 1] == '-' || text_[close - 1] == '+') ? text_[close - 1] : '\0';
    pos_ = after_close(close + 2, sign, true);
  }

  /// Consumes `word` and blanks around it; npos if the text differs.
  size_t word(size_t at, std::string_view word) const {
    at = skip_blank(at);
    return text_.substr(at).starts_with(word) ? skip_blank(at + word.size()) : text_.npos;
  }

  /// First byte after `{% raw %}`, npos for another tag. Its newline is kept, as in Jinja2.
  size_t raw_body(size_t inside) const {
    const size_t end = word(inside, "raw");
    if (end == text_.npos) return text_.npos;
    if (text_.substr(end).starts_with("%}")) return end + 2;
    return text_.substr(end).starts_with("-%}") ? skip_blank(end + 3) : text_.npos;
  }

  void raw(size_t open, size_t body) {
    line_starting_ = text_[body - 1] == '\n';
    for (size_t at = body; (at = text_.find("{%", at)) != text_.npos; ++at) {
      size_t inside = at + 2;
      const char sign =
          inside < text_.size() && (text_[inside] == '-' || text_[inside] == '+') ? text_[inside++] : '\0';
      size_t end = word(inside, "endraw");
      if (end == text_.npos) continue;
      const char close_sign = end < text_.size() && (text_[end] == '-' || text_[end] == '+') ? text_[end++] : '\0';
      if (!text_.substr(end).starts_with("%}")) continue;
      add_text(body, text_end(body, at, sign, false));
      pos_ = after_close(end + 2, close_sign, true);
      return;
    }
    fail(open, open + 2, "this raw block is never closed by {% endraw %}");
  }

  void tag(size_t open, size_t inside, bool output) {
    try {
      expr::Tokens tokens = expr::tokenize(source_, static_cast<uint32_t>(inside),
                                           output ? expr::Until::kVariableEnd : expr::Until::kBlockEnd);
      add(output ? Piece::Kind::kOutput : Piece::Kind::kTag, open, inside).tokens = std::move(tokens.list);
      const char sign = text_[tokens.end] == '-' || text_[tokens.end] == '+' ? text_[tokens.end] : '\0';
      pos_ = after_close(tokens.end + (sign ? 3 : 2), sign, !output);
    } catch (Failure& failure) {
      if (output) add_note(failure.error, "note: \"{{\" opens an output; nested braces of C++ are written \"{ {\"");
      throw;
    }
  }

  const Source& source_;
  const std::string_view text_;
  size_t pos_ = 0;
  bool line_starting_ = true;
  int line_ = 1;
  size_t counted_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

std::string normalize_newlines(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r')
      out += text[i];
    else if (i + 1 == text.size() || text[i + 1] != '\n')
      out += '\n';
  }
  return out;
}

std::vector<Piece> split(const Source& source) { return Splitter(source).run(); }

}  // namespace roofgen::jinja

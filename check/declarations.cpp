#include "check/declarations.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace roofgen::check {
namespace {

struct Token {
  size_t begin, end;
  enum Kind { kWord, kText, kSign } kind;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool is_annotation(std::string_view word) {
  return one_of(word, {"__global__", "__device__", "__constant__", "__shared__", "__managed__"});
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Declarations run() {
    tokenise();
    for (size_t t = 0; t < tokens_.size(); ++t) t = scope(t, false, 0);
    return std::move(out_);
  }

 private:
  static constexpr int kMaxDepth = 200;  // of nested scopes

  // ---- Tokens ----

  void tokenise() {
    bool line_start = true;
    for (size_t at = 0; at < text_.size();) {
      const char c = text_[at];
      if (c == '\n') {
        line_start = true;
        ++at;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at;
      } else if (text_.substr(at, 2) == "//" || text_.substr(at, 2) == "/*") {
        at = past_comment(at);
      } else if (c == '#' && line_start) {
        at = directive(at);
      } else {
        line_start = false;
        const size_t begin = at;
        const bool raw = text_.substr(at, 2) == "R\"";
        if (raw)
          at = past_raw_text(at + 1);
        else if (c == '"' || (c == '\'' && !(at > 0 && is_word(text_[at - 1]))))
          at = past_text(at);
        else if (is_word(c))
          while (at < text_.size() && is_word(text_[at])) ++at;
        else
          ++at;
        add({begin, at, raw || c == '"' || c == '\'' ? Token::kText : is_word(c) ? Token::kWord : Token::kSign});
      }
    }
  }

  size_t past_comment(size_t at) const {
    const size_t end = text_[at + 1] == '/' ? text_.find('\n', at) : text_.find("*/", at + 2);
    if (end == std::string_view::npos) return text_.size();
    return text_[at + 1] == '/' ? end : end + 2;
  }
  size_t past_text(size_t at) const {
    const char quote = text_[at++];
    while (at < text_.size() && text_[at] != quote && text_[at] != '\n') at += text_[at] == '\\' ? 2 : 1;
    return std::min(at + 1, text_.size());
  }
  size_t past_raw_text(size_t at) const {
    const size_t open = text_.find('(', at);
    if (open == std::string_view::npos) return text_.size();
    const std::string close = ")" + std::string(text_.substr(at + 1, open - at - 1)) + "\"";
    const size_t end = text_.find(close, open);
    return end == std::string_view::npos ? text_.size() : end + close.size();
  }

  /// All branches of a conditional are scanned in sequence if their braces are balanced; if the first one leaves a
  /// brace open, the others are skipped.
  struct Conditional {
    int braces = 0;
    bool first = true, skipping = false;
  };

  size_t directive(size_t begin) {
    size_t end = begin;
    for (;; ++end) {
      end = std::min(text_.find('\n', end), text_.size());
      const size_t last = end > begin && text_[end - 1] == '\r' ? end - 1 : end;
      if (end == text_.size() || text_[last - 1] != '\\') break;
    }
    const std::string_view text = text_.substr(begin, end - begin);
    out_.directives.push_back({begin, end, std::string(text)});
    size_t at = text.find_first_not_of(" \t", 1);
    if (at == std::string_view::npos) return end;
    size_t stop = at;
    while (stop < text.size() && is_word(text[stop])) ++stop;
    const std::string_view word = text.substr(at, stop - at);
    if (word.starts_with("if")) {
      conditionals_.push_back({});
    } else if (word.starts_with("el") && !conditionals_.empty()) {
      Conditional& c = conditionals_.back();
      c.first = false;
      skipping_ += (c.braces != 0) - c.skipping;
      c.skipping = c.braces != 0;
    } else if (word == "endif" && !conditionals_.empty()) {
      const int braces = conditionals_.back().braces;
      skipping_ -= conditionals_.back().skipping;
      conditionals_.pop_back();
      count_braces(braces);
    } else if (word == "define") {
      size_t name = text.find_first_not_of(" \t", stop), name_end = name;
      while (name_end < text.size() && is_word(text[name_end])) ++name_end;
      const std::string_view body = text.substr(std::min(name_end, text.size()));
      if (name < name_end && (body.find("__device__") != body.npos || body.find("__global__") != body.npos))
        annotations_.insert(text.substr(name, name_end - name));
    }
    return end;
  }

  void count_braces(int n) {
    if (!conditionals_.empty() && conditionals_.back().first) conditionals_.back().braces += n;
  }
  void add(Token t) {
    if (skipping_ > 0) return;
    if (t.kind == Token::kSign && text_[t.begin] == '{') count_braces(1);
    if (t.kind == Token::kSign && text_[t.begin] == '}') count_braces(-1);
    tokens_.push_back(t);
  }

  // ---- Declarations ----

  std::string_view word(size_t t) const {
    return t < tokens_.size() ? text_.substr(tokens_[t].begin, tokens_[t].end - tokens_[t].begin) : "";
  }
  bool annotates(size_t t) const {
    return tokens_[t].kind == Token::kWord && (is_annotation(word(t)) || annotations_.count(word(t)));
  }

  /// The token after the bracket that closes the one at t.
  size_t past(size_t t, std::string_view open, std::string_view close) const {
    int depth = 0;
    for (; t < tokens_.size(); ++t) {
      if (tokens_[t].kind != Token::kSign) continue;
      if (word(t) == open) ++depth;
      if (word(t) == close && --depth == 0) return t + 1;
      if (open == "<" && (word(t) == ";" || word(t) == "{")) return t;  // a comparison, not a bracket
    }
    return t;
  }

  /// From t to the brace that ends the scope, or the end of the text.
  size_t scope(size_t t, bool in_class, int depth) {
    while (t < tokens_.size() && word(t) != "}") {
      if (word(t) == ";")
        ++t;
      else if (in_class && one_of(word(t), {"public", "private", "protected"}) && word(t + 1) == ":")
        t += 2;
      else
        t = declaration(t, in_class, depth);
    }
    return t;
  }

  size_t declaration(const size_t first, bool in_class, int depth) {
    const size_t index = out_.all.size();
    out_.all.emplace_back();
    Declaration d;
    d.member = in_class;
    bool is_class = false, is_enum = false, is_namespace = false, assigned = false, initialisers = false,
         head_over = false;
    std::string_view class_name;
    size_t t = first;
    for (bool done = false; !done && t < tokens_.size();) {
      const std::string_view w = word(t);
      const bool is_text = tokens_[t].kind == Token::kText, function = d.kind == Declaration::Kind::kFunction;
      if (!head_over && annotates(t)) {
        d.device = true;
        d.is_kernel |= w != "__device__" && w != "__constant__" && w != "__shared__" && w != "__managed__";
      }
      if (is_text) {
        ++t;
      } else if (w == "template") {
        // Instantiations (no brackets) and full specialisations (empty brackets) are not templates.
        d.is_template |= word(t + 1) == "<" && word(t + 2) != ">";
        ++t;
        if (word(t) == "<") t = past(t, "<", ">");
      } else if (w == "namespace" || w == "enum" || w == "class" || w == "struct" || w == "union") {
        is_namespace |= w == "namespace";
        is_enum |= w == "enum";
        if (w.size() > 4 && w != "namespace") is_class = true;
        ++t;
      } else if (w == "(") {
        const std::string_view before = t > first ? word(t - 1) : "";
        const bool attribute =
            one_of(before, {"__launch_bounds__", "__align__", "alignas", "__attribute__", "decltype", "__declspec__",
                            "__cluster_dims__", "__maxnreg__", "noexcept", "explicit", "__builtin_align__"});
        if (!attribute && !assigned && !initialisers) {
          d.kind = Declaration::Kind::kFunction;
          d.name = function_name(first, t);
        }
        t = past(t, "(", ")");
      } else if (w == "[") {
        t = past(t, "[", "]");
      } else if (w == "=") {
        assigned |= !(t > first && one_of(word(t - 1), {"operator", "=", "!", "<", ">", "+", "-", "*", "/"}));
        ++t;
      } else if (w == ":" && function) {
        initialisers = word(t - 1) != ":" && word(t + 1) != ":";
        ++t;
      } else if (w == ";") {
        ++t;
        done = true;
      } else if (w == "}") {
        done = true;
      } else if (w == "{") {
        const bool scope_of_names =
            !function &&
            (is_namespace || (word(first) == "extern" && t == first + 2 && tokens_[first + 1].kind == Token::kText));
        const bool body_of_class = !function && !assigned && is_class && !is_enum;
        if ((scope_of_names || body_of_class) && depth < kMaxDepth) {
          d.kind = scope_of_names ? Declaration::Kind::kScope : Declaration::Kind::kClass;
          if (body_of_class) d.name = class_name;
          head_over = true;
          t = scope(t + 1, body_of_class, depth + 1);
          if (t < tokens_.size()) ++t;
          done = scope_of_names;
        } else {
          const size_t behind = past(t, "{", "}");
          const bool member_initialiser = initialisers && (tokens_[t - 1].kind == Token::kWord || word(t - 1) == ">") &&
                                          (word(behind) == "," || word(behind) == "{");
          done = function && !assigned && !member_initialiser;
          t = behind;
        }
      } else {
        if (is_class && class_name.empty() && tokens_[t].kind == Token::kWord &&
            !one_of(w, {"__align__", "alignas", "__attribute__", "__builtin_align__"}))
          class_name = w;
        // The last word is the declared name.
        if (d.kind == Declaration::Kind::kOther && !assigned && tokens_[t].kind == Token::kWord) d.name = w;
        ++t;
      }
    }
    d.begin = tokens_[first].begin;
    d.end = tokens_[std::max(t, first + 1) - 1].end;
    if (d.kind == Declaration::Kind::kClass || d.kind == Declaration::Kind::kOther)
      for (size_t i = first; i < t && !d.device; ++i) d.device = annotates(i);
    d.is_kernel &= d.kind == Declaration::Kind::kFunction;
    out_.all[index] = std::move(d);
    return std::max(t, first + 1);
  }

  /// The name before the parenthesis at t.
  std::string function_name(size_t first, size_t t) const {
    if (t == first) return "";
    if (tokens_[t - 1].kind == Token::kWord) return std::string(word(t - 1));
    if (word(t - 1) == ">") {  // a template instance
      size_t open = t;
      for (int depth = 0; open > first && (open == t || depth > 0);) {
        --open;
        depth += word(open) == ">" ? 1 : word(open) == "<" ? -1 : 0;
      }
      if (open > first && tokens_[open - 1].kind == Token::kWord && word(open - 1) != "operator" &&
          word(open - 1) != "template")
        return std::string(word(open - 1));
    }
    for (size_t back = 2; back <= 3 && t >= first + back; ++back)
      if (word(t - back) == "operator")
        return std::string(text_.substr(tokens_[t - back].begin, tokens_[t - 1].end - tokens_[t - back].begin));
    return "";
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::vector<Conditional> conditionals_;
  int skipping_ = 0;                        ///< number of them in a skipped branch
  std::set<std::string_view> annotations_;  ///< macros for __device__ and the like
  Declarations out_;
};

}  // namespace

Directive::Words Directive::words() const {
  const auto next = [this](size_t& at) {
    const size_t first = std::min(text.find_first_not_of(" \t", at), text.size());
    for (at = first; at < text.size() && is_word(text[at]);) ++at;
    return std::string_view(text).substr(first, at - first);
  };
  Words out;
  size_t at = 1;
  out.first = next(at);
  out.second = next(at);
  out.end = at;
  return out;
}

std::string_view Directive::included() const {
  size_t at = text.find_first_not_of(" \t", 1);
  if (at == std::string::npos || text.compare(at, 7, "include") != 0) return "";
  at = text.find_first_not_of(" \t", at + 7);
  if (at == std::string_view::npos || (text[at] != '<' && text[at] != '"')) return "";
  const size_t close = text.find(text[at] == '<' ? '>' : '"', at + 1);
  return close == std::string::npos ? "" : std::string_view(text).substr(at, close - at + 1);
}

Declarations find_declarations(std::string_view text) { return Scanner(text).run(); }

}  // namespace roofgen::check

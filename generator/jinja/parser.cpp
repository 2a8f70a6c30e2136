#include "generator/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "generator/expr/builtins.h"
#include "generator/expr/parser.h"
#include "generator/jinja/lexer.h"
#include "generator/jinja/names.h"

namespace roofgen::jinja {
namespace {

using expr::Node;
using expr::Token;

constexpr int kMaxBlockNesting = 50;

constexpr std::array<std::string_view, 14> kTags = {"assert",   "elif",   "else", "endfor", "endif",
                                                    "endmacro", "endraw", "for",  "if",     "import",
                                                    "include",  "macro",  "raw",  "set"};
constexpr std::array<std::string_view, 15> kJinjaOnly = {"autoescape", "block", "break",   "call",   "continue",
                                                         "debug",      "do",    "extends", "filter", "from",
                                                         "pluralize",  "print", "trans",   "with",   "endset"};

class TemplateParser {
 public:
  explicit TemplateParser(Template& out) : source_(out.source), pieces_(split(out.source)) {}

  Block run() {
    Block body = block({});
    if (next_ < pieces_.size()) unexpected(pieces_[next_]);
    return body;
  }

 private:
  [[noreturn]] void fail(Span at, std::string message) const { fail_at(source_, at, std::move(message)); }

  static std::string_view word(const Piece& piece) {
    return piece.kind == Piece::Kind::kTag && piece.tokens[0].kind == Token::Kind::kName ? piece.tokens[0].text : "";
  }

  template <class T>
  static void add(Block& out, Span at, int line, T what) {
    Statement& s = out.emplace_back();
    s.at = at;
    s.line = line;
    s.as.emplace<T>(std::move(what));
  }

  /// Statements up to a tag whose first word is one of `ends`, or to the end of the template.
  Block block(std::initializer_list<std::string_view> ends) {
    Block out;
    for (; next_ < pieces_.size(); ++next_) {
      const Piece& piece = pieces_[next_];
      if (piece.kind == Piece::Kind::kText) {
        add(out, piece.span, piece.line, Text{piece.text});
      } else if (piece.kind == Piece::Kind::kOutput) {
        add(out, piece.span, piece.line, output(piece));
      } else if (std::find(ends.begin(), ends.end(), word(piece)) != ends.end()) {
        return out;
      } else {
        statement(piece, out);
      }
    }
    return out;
  }

  Output output(const Piece& piece) {
    expr::Parser parser(source_, piece.tokens, expr::Dialect::kTemplate);
    try {
      Node value = parser.expression();
      parser.expect_end();
      names_.read(value);
      return Output{std::move(value)};
    } catch (Failure& failure) {
      // {{1, 2}} or {{{1}, {2}}}. The advice is given only there.
      if (piece.tokens[0].text == "{" || piece.tokens[std::min<size_t>(1, piece.tokens.size() - 1)].text == ",")
        add_note(failure.error, "note: \"{{\" opens an output; nested braces of C++ are written \"{ {\"");
      throw;
    }
  }

  [[noreturn]] void unexpected(const Piece& piece) const {
    const Span at = piece.tokens[0].span;
    const std::string tag(word(piece));
    if (tag.empty()) fail(at, "expected the name of a tag");
    if (tag == "elif" || tag == "else" || tag.starts_with("end")) {
      const std::string hint = open_.empty()
                                   ? "no tag is open"
                                   : fmt::format("\"{}\" of line {} is open", open_.back().first, open_.back().second);
      fail(at, fmt::format("unexpected \"{}\"; {}", tag, hint));
    }
    if (std::find(kJinjaOnly.begin(), kJinjaOnly.end(), tag) != kJinjaOnly.end())
      fail(at, fmt::format("the tag \"{}\" of Jinja2 is not part of this subset", tag));
    fail(at, fmt::format("unknown tag \"{}\"{}", tag, did_you_mean(tag, {kTags.begin(), kTags.end()})));
  }

  void statement(const Piece& piece, Block& out) {
    const std::string_view tag = word(piece);
    const Span at = piece.tokens[0].span;
    expr::Parser parser(source_, piece.tokens, expr::Dialect::kTemplate);
    if (!tag.empty()) parser.accept(tag);
    if (tag == "if")
      add(out, at, piece.line, if_tag(parser, piece));
    else if (tag == "for")
      add(out, at, piece.line, for_tag(parser, piece));
    else if (tag == "set")
      add(out, at, piece.line, set_tag(parser));
    else if (tag == "macro")
      add(out, at, piece.line, macro_tag(parser, piece));
    else if (tag == "include")
      add(out, at, piece.line, include_tag(parser));
    else if (tag == "import")
      add(out, at, piece.line, import_tag(parser, at));
    else if (tag == "assert")
      add(out, at, piece.line, assert_tag(parser));
    else
      unexpected(piece);
  }

  /// The statements between the tag at next_ and one of `ends`; next_ then is that tag. `piece`: the opening tag, for
  /// messages.
  Block body_of(const Piece& piece, std::initializer_list<std::string_view> ends) {
    open_.emplace_back(word(piece), piece.line);
    if (open_.size() > kMaxBlockNesting)
      fail(piece.tokens[0].span, fmt::format("tags nest too deeply; the limit is {}", kMaxBlockNesting));
    ++next_;
    Block body = block(ends);
    if (next_ >= pieces_.size())
      fail(piece.tokens[0].span, fmt::format("this \"{}\" is never closed", open_.back().first));
    open_.pop_back();
    return body;
  }

  void expect_bare(const Piece& piece) const {
    if (piece.tokens.size() > 2)
      fail(piece.tokens[1].span, fmt::format("unexpected \"{}\" after \"{}\"", piece.tokens[1].text, word(piece)));
  }

  Node condition(expr::Parser& parser) {
    Node node = parser.condition();
    if (parser.is("if")) parser.fail(parser.peek().span, "put a conditional expression in parentheses here");
    names_.read(node);
    return node;
  }

  If if_tag(expr::Parser& first, const Piece& opening) {
    If out;
    Names::Branches branches(names_);
    out.branches.push_back({condition(first), {}});
    first.expect_end();
    while (true) {
      const bool is_else = !out.branches.back().test;
      out.branches.back().body = is_else ? body_of(opening, {"endif"}) : body_of(opening, {"elif", "else", "endif"});
      const Piece& piece = pieces_[next_];
      if (word(piece) != "elif") expect_bare(piece);
      if (word(piece) == "endif") return out;
      branches.next();
      out.branches.emplace_back();
      if (word(piece) == "elif") {
        expr::Parser parser(source_, piece.tokens, expr::Dialect::kTemplate);
        parser.accept("elif");
        out.branches.back().test = condition(parser);
        parser.expect_end();
      }
    }
  }

  For for_tag(expr::Parser& parser, const Piece& piece) {
    For out;
    std::vector<std::string> targets;
    do {
      const Token name = parser.expect_name("a loop variable");
      check_free(name, "loop variable");
      if (std::find(targets.begin(), targets.end(), name.text) != targets.end())
        fail(name.span, "this name is used twice");
      targets.emplace_back(name.text);
    } while (parser.accept(","));
    parser.expect("in", "after the loop variable");
    out.items = parser.condition();
    names_.read(out.items);
    if (parser.is("if")) parser.fail(parser.peek().span, "loops have no filter; use an {% if %} inside");
    parser.expect_end();
    const Names::Scope scope(names_, targets);
    out.targets = std::move(targets);
    out.body = body_of(piece, {"endfor"});
    expect_bare(pieces_[next_]);
    out.uses_loop = names_.was_read("loop");
    return out;
  }

  Set set_tag(expr::Parser& parser) {
    const Token name = parser.expect_name("the name to set");
    check_free(name, "variable");
    if (!parser.is("=")) parser.fail(parser.peek().span, "expected \"=\"; only {% set name = value %} exists");
    parser.expect("=", "");
    Node value = parser.expression();
    parser.expect_end();
    if (const char* problem = names_.set(std::string(name.text), value))
      fail(name.span, fmt::format("\"{}\" {}", name.text, problem));
    return Set{std::string(name.text), std::move(value)};
  }

  /// A name may not hide a function: in Jinja2 the template would have another meaning.
  void check_free(const Token& name, const char* what) const {
    if (expr::find_function(name.text))
      fail(name.span, fmt::format("\"{}\" is a function; give the {} another name", name.text, what));
  }

  void expect_top_level(Span at, const char* what) const {
    if (!open_.empty())
      fail(at, fmt::format("{} stands at the top level of a template; \"{}\" of line {} is open", what,
                           open_.back().first, open_.back().second));
  }

  Macro macro_tag(expr::Parser& parser, const Piece& piece) {
    expect_top_level(piece.tokens[0].span, "a macro");
    Macro out;
    const Token name = parser.expect_name("the macro's name");
    check_free(name, "macro");
    out.name = name.text;
    parser.expect("(", "after the macro's name");
    std::vector<std::string> params;
    const Names::Scope scope(names_, {});
    while (!parser.is(")")) {
      const Token param = parser.expect_name("a parameter");
      check_free(param, "parameter");
      if (std::find(params.begin(), params.end(), param.text) != params.end())
        fail(param.span, "this name is used twice");
      params.emplace_back(param.text);
      std::optional<Node> preset;
      if (parser.accept("=")) {
        preset = parser.expression();
        names_.read(*preset);
      } else if (!out.params.empty() && out.params.back().preset) {
        fail(param.span, "a parameter without a default cannot follow one with a default");
      }
      if (names_.was_read(params.back())) fail(param.span, "a default can only use the parameters before it");
      names_.bind(params.back());
      out.params.push_back({params.back(), std::move(preset)});
      if (!parser.accept(",")) break;
    }
    parser.expect(")", "after the parameters");
    parser.expect_end();
    out.body = body_of(piece, {"endmacro"});
    expect_bare(pieces_[next_]);
    return out;
  }

  Include include_tag(expr::Parser& parser) {
    Node name = parser.expression();
    names_.read(name);
    if (parser.peek().kind == Token::Kind::kName)
      parser.fail(parser.peek().span,
                  fmt::format("\"{}\" is not part of this subset: an include always sees the context and must exist",
                              parser.peek().text));
    parser.expect_end();
    return Include{std::move(name)};
  }

  Import import_tag(expr::Parser& parser, Span at) {
    expect_top_level(at, "an import");
    Node name = parser.expression();
    names_.read(name);
    parser.expect("as", "and a name");
    const Token as = parser.expect_name("a name for the imported template");
    check_free(as, "import");
    if (parser.is("with") || parser.is("without"))
      parser.fail(parser.peek().span,
                  "an import never sees the context here; give its macros what they need as arguments");
    parser.expect_end();
    return Import{std::move(name), std::string(as.text)};
  }

  Assert assert_tag(expr::Parser& parser) {
    Node test = parser.expression();
    parser.expect(",", "and a message: {% assert condition, \"message\" %}");
    Node message = parser.expression();
    parser.expect_end();
    names_.read(test);
    names_.read(message);
    return Assert{std::move(test), std::move(message)};
  }

  const Source& source_;
  std::vector<Piece> pieces_;
  size_t next_ = 0;
  std::vector<std::pair<std::string_view, int>> open_;  ///< open tags: word, line
  Names names_;
};

}  // namespace

std::unique_ptr<Template> parse(std::string name, std::string_view text) {
  auto out = std::make_unique<Template>();
  out->source = {normalize_newlines(text), Where{std::move(name), 1, 1}};
  out->body = TemplateParser(*out).run();
  return out;
}

}  // namespace roofgen::jinja

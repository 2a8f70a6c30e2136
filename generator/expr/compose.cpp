// Expressions made of others. Their texts are joined, one part a line, and parsed again: errors point at the part.
#include <algorithm>

#include "base/diagnostics.h"
#include "generator/expr/ast.h"

namespace roofgen::expr {
namespace {

/// A text whose lines come from several places.
class Lines {
 public:
  /// Adds lines with a part of another text, between `before` and `after`.
  void add(std::string_view before, const Source& source, Span part, std::string_view after) {
    while (part.begin < part.end && source.text[part.begin] == ' ') ++part.begin;
    while (part.begin < part.end && source.text[part.end - 1] == ' ') --part.end;
    if (part.begin == part.end) return;
    for (uint32_t at = part.begin;; before = {}) {
      const auto end = static_cast<uint32_t>(std::min<size_t>(source.text.find('\n', at), part.end));
      Where where = locate(source, at);
      where.col -= static_cast<int>(before.size());
      if (out_.lines.empty()) out_.origin = where;
      out_.text += out_.lines.empty() ? "" : "\n";
      out_.text.append(before).append(source.text, at, end - at);
      out_.lines.push_back(std::move(where));
      if (end == part.end) break;
      at = end + 1;
    }
    out_.text += after;
  }
  Source take() { return std::move(out_); }

 private:
  Source out_;
};

Span whole(const Source& source) { return {0, static_cast<uint32_t>(source.text.size())}; }

/// The variables among `meanings`.
void collect(const Node& node, const std::map<std::string, Expr>& meanings, std::vector<const Node*>& out) {
  if (node.kind == Kind::kName && meanings.contains(node.name)) out.push_back(&node);
  for (size_t i = node.kind == Kind::kCall ? 1 : 0; i < node.args.size(); ++i) collect(node.args[i], meanings, out);
}

}  // namespace

Result<Expr> Expr::cases(const std::vector<std::pair<Expr, Expr>>& cases, const Expr& otherwise) {
  Lines lines;
  const auto add = [&](const std::string& before, const Expr& e) {
    const Source& source = e.tree_->source;
    const bool nested = e.tree_->root.kind == Kind::kIf;
    lines.add(before + (nested ? "(" : ""), source, whole(source), nested ? ")" : "");
  };
  const char* before = "";
  for (const auto& [condition, value] : cases) {
    add(before, value);
    add("if ", condition);
    before = "else ";
  }
  add(before, otherwise);
  return parse(lines.take());
}

Result<Expr> Expr::with(const std::map<std::string, Expr>& meanings) const {
  std::vector<const Node*> names;
  if (tree_) collect(tree_->root, meanings, names);
  if (names.empty()) return *this;
  std::ranges::sort(names, {}, [](const Node* node) { return node->span.begin; });
  Lines lines;
  Span rest = whole(tree_->source);
  for (const Node* name : names) {
    lines.add("", tree_->source, {rest.begin, name->span.begin}, "");
    const Source& meaning = meanings.at(name->name).tree_->source;
    lines.add("(", meaning, whole(meaning), ")");
    rest.begin = name->span.end;
  }
  lines.add("", tree_->source, rest, "");
  return parse(lines.take());
}

}  // namespace roofgen::expr

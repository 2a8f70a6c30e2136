#include "tests/kernels/programs.h"

#include <fmt/format.h>

#include <algorithm>

namespace roofgen::test {
namespace {

/// Code without blanks and comments.
struct Bare {
  std::string code;
  std::vector<size_t> at;  ///< of each character in the text
};

Bare bare(std::string_view text) {
  Bare out;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!quoted && text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (std::isspace(static_cast<unsigned char>(text[i]))) continue;
    out.code += text[i];
    out.at.push_back(i);
  }
  return out;
}

}  // namespace

Result<Legal> legal_schedule(const Variant& variant, const Stage& stage, const expr::Map& scope, const Pins& pins) {
  ROOFGEN_TRY(Schedule schedule, default_schedule(variant, stage, scope, pins));
  auto checked = check_schedule(variant, stage, schedule, scope, false);
  if (auto* rejected = std::get_if<Rejected>(&checked))
    return Error{Exit::kFailed, to_string(rejected->schedule) + ": " + rejected->reason};
  if (auto* error = std::get_if<Error>(&checked)) return *error;
  return std::get<Legal>(std::move(checked));
}

Result<bool> apply(const Edit& edit, Program& program) {
  std::string& text = program.source;
  std::vector<Where>& lines = program.line_map.lines;
  const Bare code = bare(text);
  const std::string from = bare(edit.from).code;
  if (from.empty()) return Error{Exit::kFailed, "an edit without code to replace"};
  const auto line_of = [&](size_t at) { return std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'); };
  std::vector<size_t> found;
  for (size_t at = 0; (at = code.code.find(from, at)) != std::string::npos; at += from.size()) {
    const Where& where = lines.at(static_cast<size_t>(line_of(code.at[at])));
    if (!where.file.ends_with(edit.file)) continue;
    const Where& first = found.empty() ? where : lines.at(static_cast<size_t>(line_of(code.at[found[0]])));
    if (where.line != first.line)
      return Error{Exit::kFailed, fmt::format("{}: lines {} and {} both give the code to replace: {}", edit.file,
                                              first.line, where.line, edit.from)};
    found.push_back(at);
  }
  for (auto at = found.rbegin(); at != found.rend(); ++at) {
    const size_t begin = code.at[*at], end = code.at[*at + from.size() - 1] + 1;
    const auto first = lines.begin() + line_of(begin);
    const Where where = *first;
    lines.erase(first, lines.begin() + line_of(end - 1));
    lines.insert(lines.begin() + line_of(begin), static_cast<size_t>(std::ranges::count(edit.to, '\n')), where);
    text.replace(begin, end - begin, edit.to);
  }
  return !found.empty();
}

}  // namespace roofgen::test

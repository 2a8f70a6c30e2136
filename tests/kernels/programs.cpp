#include "tests/kernels/programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/support/code.h"

namespace roofgen::test {

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
  const auto line_of = [&](size_t at) { return std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'); };
  std::vector<std::pair<size_t, size_t>> found = find_code(text, edit.from);
  std::erase_if(found,
                [&](const auto& at) { return lines.at(static_cast<size_t>(line_of(at.first))).file != edit.file; });
  for (const auto& at : found) {
    const Where& first = lines.at(static_cast<size_t>(line_of(found[0].first)));
    const Where& where = lines.at(static_cast<size_t>(line_of(at.first)));
    if (where.line != first.line)
      return Error{Exit::kFailed, fmt::format("{}: lines {} and {} both give the code to replace: {}", edit.file,
                                              first.line, where.line, edit.from)};
  }
  for (auto at = found.rbegin(); at != found.rend(); ++at) {
    const auto [begin, end] = *at;
    const auto first = lines.begin() + line_of(begin), last = lines.begin() + line_of(end - 1);
    const Where where = *first;
    const auto rest = lines.erase(first, last);
    lines.insert(rest, static_cast<size_t>(std::ranges::count(edit.to, '\n')), where);
    text.replace(begin, end - begin, edit.to);
  }
  return !found.empty();
}

}  // namespace roofgen::test

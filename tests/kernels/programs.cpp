#include "tests/kernels/programs.h"

#include <fmt/format.h>

#include "generator/jinja/jinja.h"

namespace roofgen::test {

Result<Legal> legal_schedule(const Variant& variant, const Stage& stage, const expr::Map& scope, const Pins& pins) {
  ROOFGEN_TRY(Schedule schedule, default_schedule(variant, stage, scope, pins));
  auto checked = check_schedule(variant, stage, schedule, scope, false);
  if (auto* rejected = std::get_if<Rejected>(&checked))
    return Error{Exit::kFailed, to_string(rejected->schedule) + ": " + rejected->reason};
  if (auto* error = std::get_if<Error>(&checked)) return *error;
  return std::get<Legal>(std::move(checked));
}

Result<Program> render(const DataFiles& files, const Stage& stage, const Legal& legal, const std::vector<Edit>& edits) {
  std::string failure;
  const jinja::Loader loader = [&](std::string_view name) {
    auto text = files.read("templates/" + std::string(name));
    for (const Edit& edit : edits) {
      if (!text || edit.file != name) continue;
      const std::string_view from = edit.from;
      const size_t at = text->find(from);
      if (at == std::string::npos || text->find(from, at + 1) != std::string::npos)
        failure = fmt::format("{}: the text to replace is not there exactly once: {}", name, edit.from);
      else
        text->replace(at, from.size(), edit.to);
    }
    return text;
  };
  ROOFGEN_TRY(jinja::Rendered rendered, jinja::render(loader, stage.template_name, legal.scope));
  if (!failure.empty()) return Error{Exit::kFailed, failure};
  return Program{legal.schedule, std::move(rendered.text), stage.entry, std::move(rendered.line_map), stage.target};
}

}  // namespace roofgen::test

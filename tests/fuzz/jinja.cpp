// Arbitrary bytes as templates: an Error, or a text with a line map of the same length, never a crash. A line "==="
// starts the next template; their names are main, one and two.
#include "generator/jinja/jinja.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/scope.h"
#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_jinja {
FUZZ_TARGET(jinja) {
  using namespace expr;
  const std::string_view all(reinterpret_cast<const char*>(data), size), border = "\n===\n";
  std::map<std::string, std::string, std::less<>> templates;
  size_t at = 0;
  for (const char* name : {"main", "one", "two"}) {
    if (at > all.size()) break;
    const size_t end = std::min(all.find(border, at), all.size());
    templates[name] = all.substr(at, end - at);
    at = end + border.size();
  }
  const auto loader = [&](std::string_view name) -> std::optional<std::string> {
    auto it = templates.find(name);
    return it == templates.end() ? std::nullopt : std::optional(it->second);
  };
  // Small limits, so that a fuzzer spends its time on new inputs and not on long loops.
  const auto r = jinja::render(loader, "main", fuzz_scope(),
                               {.steps = 20000, .output_bytes = 1 << 16, .template_bytes = 1 << 16, .calls = 20});
  if (!r) {
    if (r.error().message.empty() || to_string(r.error()).empty()) std::abort();
    return 0;
  }
  const std::string& text = r->text;
  const auto newlines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const size_t lines = newlines + (!text.empty() && text.back() != '\n');
  if (r->line_map.lines.size() != lines) std::abort();
  for (const Where& w : r->line_map.lines)
    if (w.line < 1 || !templates.count(w.file)) std::abort();
  return 0;
}

}  // namespace roofgen::fuzz_jinja

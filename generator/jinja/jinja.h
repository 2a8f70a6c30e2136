// The template engine: a strict subset of Jinja2 for CUDA sources (docs/internals/templates.md). Python's jinja2
// (trim_blocks, lstrip_blocks, StrictUndefined) renders every accepted template identically; a differential test checks
// this.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "generator/expr/expr.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::jinja {

/// Loads template text by name ("attention/fused.cu.jinja"); nullopt if there is none.
using Loader = std::function<std::optional<std::string>(std::string_view name)>;

struct Rendered {
  std::string text;
  LineMap line_map;  ///< for each output line the template line that produced it
};

/// Limits of one render; templates may be untrusted.
struct Limits {
  uint64_t steps = 10'000'000;  ///< evaluated nodes, loop iterations, and bytes / 16; about a second
  size_t output_bytes = 16 << 20;
  size_t template_bytes = 1 << 20;  ///< of each template
  int calls = 50;                   ///< nested macros and includes
};

/// Renders `name`. Errors carry file:line:col of the template, a caret excerpt and the include stack.
Result<Rendered> render(const Loader& loader, std::string_view name, const expr::Map& context,
                        const Limits& limits = {});

}  // namespace roofgen::jinja

#pragma once

#include <memory>

#include "generator/jinja/ast.h"

namespace roofgen::jinja {

/// Text -> Template; `name` is for errors and the line map. Throws Failure.
std::unique_ptr<Template> parse(std::string name, std::string_view text);

}  // namespace roofgen::jinja

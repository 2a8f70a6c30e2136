// python3-jinja2 as the reference for the template engine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace roofgen::test {

struct ReferenceCase {
  std::map<std::string, std::string> templates;
  std::string main;
  nlohmann::json context;
};

struct ReferenceResult {
  bool ok = false;
  std::string text;  ///< the output, or the error
};

/// Whether a python3 with jinja2 is installed.
bool reference_available();

/// Renders all cases in one Python process; throws std::runtime_error when the process fails.
std::vector<ReferenceResult> reference_render(const std::vector<ReferenceCase>& cases);

}  // namespace roofgen::test

// Test cases that keep everything in one text file:
//
//     === template main.jinja
//     {{ a }}
//     === context
//     {"a": 1}
//     === output
//     1
//
// A section lasts to the next line that starts with "=== ".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/jinja/jinja.h"

namespace roofgen::test {

struct Case {
  std::string path, name;                        ///< name: the file's, without folder and suffix
  std::map<std::string, std::string> templates;  ///< the first one in the file is rendered
  std::string main;
  std::map<std::string, std::string> sections;  ///< the others: "context", "output", "error", "expression"
};

/// Every *.txt of a folder below tests/generator, sorted by name.
std::vector<Case> read_cases(const std::string& folder);

/// Renders the case's first template.
Result<jinja::Rendered> render_case(const Case& c);

/// Replaces the text of `section` in the case's file when ROOFGEN_UPDATE_GOLDEN is set; true if it did.
bool update_section(const Case& c, const std::string& section, const std::string& text);

}  // namespace roofgen::test

#include "tests/support/code.h"

#include <algorithm>
#include <cctype>

namespace roofgen::test {
namespace {

struct Bare {
  std::string code;
  std::vector<size_t> at;  ///< of each character in the text
};

Bare bare(std::string_view text) {
  Bare out;
  bool quoted = false, tag = false;  // in a tag of a template, // divides
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "{%" || text.substr(i, 3) == "{{ ") tag = true;
    if (text.substr(i, 2) == "%}" || text.substr(i, 3) == " }}") tag = false;
    if (!quoted && !tag && text.substr(i, 2) == "//") {
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

std::vector<std::pair<size_t, size_t>> find_code(std::string_view text, std::string_view code) {
  const Bare whole = bare(text);
  const std::string wanted = bare(code).code;
  std::vector<std::pair<size_t, size_t>> out;
  if (wanted.empty()) return out;
  for (size_t at = 0; (at = whole.code.find(wanted, at)) != std::string::npos; at += wanted.size())
    out.emplace_back(whole.at[at], whole.at[at + wanted.size() - 1] + 1);
  return out;
}

}  // namespace roofgen::test

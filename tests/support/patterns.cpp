#include "tests/support/patterns.h"

#include <map>
#include <regex>

namespace roofgen::test {
namespace {

/// A test asks for few patterns, but of each line of a file.
const std::regex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> known;
  const auto it = known.find(pattern);
  return it != known.end() ? it->second : known.emplace(pattern, pattern).first->second;
}

}  // namespace

std::vector<Match> matches(const std::string& text, const std::string& pattern) {
  std::vector<Match> out;
  for (std::sregex_iterator it(text.begin(), text.end(), compiled(pattern)), end; it != end; ++it)
    out.emplace_back(it->begin(), it->end());
  return out;
}

bool contains(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, compiled(pattern));
}

Match whole_match(const std::string& text, const std::string& pattern) {
  std::smatch m;
  return std::regex_match(text, m, compiled(pattern)) ? Match(m.begin(), m.end()) : Match();
}

std::string substituted(const std::string& text, const std::string& pattern, const std::string& by) {
  return std::regex_replace(text, compiled(pattern), by);
}

}  // namespace roofgen::test

// Lists of words in a test, many to a line.
#pragma once

#include <set>
#include <sstream>
#include <string>

namespace roofgen::test {

/// The parts of a text between blanks and line breaks.
inline std::set<std::string> words(const std::string& text) {
  std::set<std::string> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.insert(word);
  return out;
}

}  // namespace roofgen::test

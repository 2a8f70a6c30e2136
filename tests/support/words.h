// Lists of words and numbers in a test, many to a line.
#pragma once

#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace roofgen::test {

/// The parts of a text between blanks and line breaks.
inline std::set<std::string> words(const std::string& text) {
  std::set<std::string> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.insert(word);
  return out;
}

/// Numbers between blanks, decimal or with 0x.
template <class T = uint64_t>
std::vector<T> numbers(const std::string& text) {
  std::vector<T> out;
  std::istringstream in(text);
  for (std::string word; in >> word;) out.push_back(std::stoull(word, nullptr, 0));
  return out;
}

}  // namespace roofgen::test

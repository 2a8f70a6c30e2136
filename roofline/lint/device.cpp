#include "roofline/lint/device.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace roofgen {
namespace {

std::set<std::string> word_set(const std::string& name) {
  static const std::set<std::string> empty_words = {"nvidia", "geforce", "tensor", "core", "gpu", "hgx", "dgx"};
  std::set<std::string> out;
  std::string word;
  for (const char c : name + " ") {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (word.size() == 4 && word.starts_with("sxm")) word.pop_back();
    const bool size = word.size() > 2 && word.ends_with("gb") &&
                      std::all_of(word.begin(), word.end() - 2, [](unsigned char d) { return std::isdigit(d) != 0; });
    if (size) word.resize(word.size() - 2);
    if (!word.empty() && word != "gb" && !empty_words.count(word)) out.insert(word);
    word.clear();
  }
  return out;
}

/// Letters and digits only: "rtx4090".
std::string squeezed(const std::string& name) {
  std::string out;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::vector<const Device*> devices_named(const std::vector<Device>& catalogue, const std::string& name) {
  for (const Device& d : catalogue)
    if (squeezed(d.name) == squeezed(name)) return {&d};
  const std::set<std::string> wanted = word_set(name);
  if (wanted.empty()) return {};
  std::vector<const Device*> out;
  for (const Device& d : catalogue) {
    std::set<std::string> has = word_set(d.name);
    // The memory size, for products whose name does not need it.
    const std::set<std::string> title = word_set(d.title);
    has.insert(title.begin(), title.end());
    if (std::includes(has.begin(), has.end(), wanted.begin(), wanted.end())) out.push_back(&d);
  }
  return out;
}

}  // namespace roofgen

// Scans the text of a JSON document: finds the error in an unparsable document, and the positions of values in a parsed
// one.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace roofgen {

class JsonScan {
 public:
  struct Fault {
    size_t at = 0;
    const char* expected = nullptr;
  };

  explicit JsonScan(std::string_view text) : text_(text) {}
  /// The first invalid or unexpected token. The nesting depth is not limited here.
  std::optional<Fault> fault();
  /// The position of `wanted`, a value within `root`, which was parsed from the text. With `member`, the position of
  /// the name of that member of `wanted`, inside the quotes.
  std::optional<size_t> find(const Json& root, const Json& wanted, std::string_view member);
  /// The positions of `root` and of all values within it.
  std::unordered_map<const Json*, size_t> places(const Json& root);
  /// The positions of the items of a document that is a list.
  std::vector<size_t> items_of_list();

 private:
  bool value(const Json* j);
  bool string(const char* expected);
  bool items(const Json* j, char close);
  bool expect(const char* what);
  char next();

  std::string_view text_;
  size_t at_ = 0;
  Fault fault_;
  const Json* wanted_ = nullptr;
  std::string_view member_;
  std::optional<size_t> found_;
  std::unordered_map<const Json*, size_t>* places_ = nullptr;
};

}  // namespace roofgen

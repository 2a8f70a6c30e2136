// Walks the text of a JSON document: to say what is wrong with one that cannot be parsed, and where in the text a value
// of a parsed one stands.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace roofgen {

class JsonScan {
 public:
  using Json = nlohmann::ordered_json;
  struct Fault {
    size_t at = 0;
    const char* expected = nullptr;
  };

  explicit JsonScan(std::string_view text) : text_(text) {}
  /// The first token that is none, or stands where another was expected. Nesting is as deep as the caller lets it be.
  std::optional<Fault> fault();
  /// Where `wanted`, a part of `root`, which was made of the text, begins; with `member`, the name of that member of
  /// it, inside the quotes.
  std::optional<size_t> find(const Json& root, const Json& wanted, std::string_view member);
  /// Where the items of the list that the document is begin.
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
};

}  // namespace roofgen

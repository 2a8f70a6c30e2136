// Arbitrary bytes as JSON: the scan agrees with the parser on validity, and finds every value.
#include <cstdint>
#include <cstdlib>

#include "base/json_scan.h"
#include "base/json_text.h"
#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_json {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

/// Every value starts after the previous one, and parses to itself.
void find_all(const Json& root, const Json& j, std::string_view text, size_t& behind) {
  const auto at = JsonScan(text).find(root, j, "");
  require(at && *at >= behind && *at < text.size());
  behind = *at;
  const char c = text[*at];
  require(j.is_object()    ? c == '{'
          : j.is_array()   ? c == '['
          : j.is_string()  ? c == '"'
          : j.is_null()    ? c == 'n'
          : j.is_boolean() ? c == (j.get<bool>() ? 't' : 'f')
                           : c == '-' || (c >= '0' && c <= '9'));
  for (const auto& [key, value] : j.items()) {
    if (j.is_object() && !key.empty()) {  // a member without a name has its object's position
      const auto name = JsonScan(text).find(root, j, key);
      require(name && *name > behind && text[*name - 1] == '"');
    }
    if (j.is_structured()) find_all(root, value, text, behind);
  }
}

}  // namespace

FUZZ_TARGET(json) {
  if (size > 1 << 12) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto file = JsonFile::parse(text, "f.json");
  if (!file) {
    const Error& e = file.error();
    require(!e.message.empty());
    if (e.message.starts_with("nested deeper")) return 0;
    // The scan does not read escapes, so it may also accept documents that the parser rejects for a duplicate name.
    require(e.where.line > 0 || e.message.find("twice") != std::string::npos);
    require(Json::accept(text) == (e.message.find("twice") != std::string::npos));
    return 0;
  }
  if (text.find('\0') != std::string::npos) return 0;  // the parser stops at a zero byte
  require(!JsonScan(text).fault());
  size_t behind = 0;
  find_all(file->root(), file->root(), text, behind);
  return 0;
}

}  // namespace roofgen::fuzz_json

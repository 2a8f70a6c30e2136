// JSON files with errors a user can act on: file:line:col, what was expected. Used for search
// spaces and devices; sizes and nesting are limited because the files may be a stranger's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/json.h"
#include "roofgen/result.h"

namespace roofgen {

/// A parsed file that still knows its text, so that errors can point into it.
class JsonFile {
 public:
  /// An Error for a text of more than `most` bytes.
  static Result<JsonFile> parse(std::string text, std::string file, size_t most = size_t{4} << 20);
  const Json& root() const { return root_; }
  const std::string& file() const { return source_.origin.file; }
  /// Line and column of the first occurrence of `token` as a JSON string (its first character
  /// inside the quotes); the file alone when it does not occur.
  Where find(std::string_view token) const;
  /// Where `value`, a part of root(), begins; with `member`, the name of that member of it, or the value where it has
  /// none. The file alone for what is no part of it.
  Where place(const Json& value, std::string_view member = "") const;
  /// Of the items of root(), a list; found in one go.
  std::vector<Where> places() const;
  /// The line of a place with a caret below; nothing where it cannot be shown.
  std::vector<std::string> excerpt(const Where& at) const;

 private:
  Json root_;
  Source source_;
};

}  // namespace roofgen

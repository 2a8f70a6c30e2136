// JSON files with errors a user can act on: file:line:col, what was expected. Used for search
// spaces and devices; sizes and nesting are limited because the files may be a stranger's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "base/json.h"
#include "roofgen/result.h"

namespace roofgen {

/// A text with blanks in the place of `// comments`: all else keeps its position.
std::string without_comments(std::string text);

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
  mutable std::unordered_map<const Json*, size_t> places_;  ///< of all parts of root_, once one was asked for
};

/// A document that is too long for one value: an object whose members have very many items. The items are read one at a
/// time; time and memory grow with the text alone.
class JsonStream {
 public:
  struct Item {
    std::string member;  ///< of the document
    std::string key;     ///< of the item in that member; empty in a list, and for a member that is one value
    bool in_list = false;
    Json value;
    size_t at = 0;  ///< where the value begins, of one without items where its name begins
  };

  /// `line` is that of the text's first character.
  JsonStream(std::string text, std::string file, int line = 1) : source_{std::move(text), {std::move(file), line, 1}} {}
  /// Calls `take` with each item in the order of the text. An Error where the text is not valid JSON, no object, or
  /// nested too deep; also what `take` throws. Items before the fault were taken then.
  Result<void> read(const std::function<void(const Item&)>& take) const;
  /// An error at `part` of the item's value; with `member`, at the name of that member of it.
  Error fault(const Item& item, const Json& part, std::string message, std::string_view member = "") const;
  /// The same at the beginning of the text.
  Error fault(std::string message) const;
  const std::string& text() const { return source_.text; }

 private:
  Source source_;
};

}  // namespace roofgen

// The rendered text and the origin of each of its lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/jinja/jinja.h"

namespace roofgen::jinja {

class OutputText {
 public:
  /// `tracked`: store the origin of each line; not needed for the text of a macro call in an expression.
  explicit OutputText(bool tracked) : tracked_(tracked) {}

  /// Template text: its lines are consecutive lines of `file` from `line` on. `file` must outlive this.
  void append_text(std::string_view text, const std::string& file, int line) { append(text, file, line, 1); }
  /// A value: all its lines belong to the line of the tag.
  void append_value(std::string_view text, const std::string& file, int line) { append(text, file, line, 0); }

  size_t size() const { return text_.size(); }
  std::string take() { return std::move(text_); }
  LineMap line_map() const;

 private:
  void append(std::string_view text, const std::string& file, int line, int advance);

  /// A line that has only blanks so far belongs to the first tag or text that adds more: a macro call after an
  /// indentation belongs to the macro's line.
  struct Origin {
    const std::string* file;
    int line;
    bool blank;
  };
  const bool tracked_;
  std::string text_;
  std::vector<Origin> origins_;
  bool line_open_ = false;
};

}  // namespace roofgen::jinja

// Helpers for terminal output. All texts here are ASCII and box characters, one column each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roofgen::plot {

inline constexpr int kMinWidth = 40;  ///< of text for a terminal

/// Printable ASCII only: a few common signs become their spelling ("->", "x", "us"), control characters
/// and everything else '?', so that a name can neither move the cursor nor break the columns.
std::string ascii(std::string_view text);

/// The width of `text` in columns: its number of code points.
int columns(std::string_view text);

/// The words of `text` in lines of at most `width` columns; longer words are cut.
std::vector<std::string> wrap(std::string_view text, int width);

/// `text` wrapped; each line is indented by `indent` spaces and ends with a newline.
std::string paragraph(std::string_view text, int width, int indent = 0);

struct Column {
  std::string head;
  bool right = false;  ///< right-aligned, for numbers
};
/// Columns as wide as their cells need. If `width` is too small, the widest left-aligned column is wrapped to 16
/// columns or more; if that does not suffice, each row becomes lines of "head: cell". Cells pass through ascii().
std::string text_table(const std::vector<Column>& head, const std::vector<std::vector<std::string>>& rows, int width);

/// The text in an ANSI style ("1;34"); unchanged when `style` is empty.
std::string styled(const std::string& text, std::string_view style);

}  // namespace roofgen::plot

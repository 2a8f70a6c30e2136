// Numbers in text, whatever the locale of the program.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace roofgen {

/// The number that is the whole text: "0.5", "+4", "1e6". Nothing for other text, and for numbers beyond a double.
inline std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace roofgen

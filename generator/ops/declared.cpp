#include "generator/ops/declared.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/diagnostics.h"

namespace roofgen {
namespace {

/// `message` with a caret at `length` characters from `begin` of the tensor's text.
Error bad(const TensorArg& tensor, size_t begin, size_t length, std::string message) {
  const Source source{to_string(tensor), Where{"--arg", 1, 1}};
  Error error =
      located_error(source, {static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + length)}, std::move(message));
  error.exit = Exit::kUsage;
  return error;
}

}  // namespace

Result<void> check_declared(const std::vector<TensorArg>& declared, std::string_view op,
                            const std::vector<std::string>& own) {
  for (const TensorArg& t : declared) {
    if (std::find(own.begin(), own.end(), t.name) != own.end())
      return bad(t, 0, t.name.size(),
                 fmt::format("{} is a name of {}'s own; another one was expected, like {}_in", t.name, op, t.name));
    if (t.indices == std::vector<std::string>{"n", "m"})
      return bad(
          t, to_string(t).find('['), 5,
          fmt::format("{} lies across the rows of the output; [m,n] was expected, the transposed tensor", t.name));
  }
  return {};
}

Result<std::vector<int64_t>> parse_numbers(const std::string& flag, const std::string& text, const std::string& noun,
                                           int64_t low, int64_t high) {
  const auto wrong = [&](size_t begin, size_t end, std::string message) {
    Error error = located_error({text, {flag, 1, 1}}, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)},
                                std::move(message));
    error.exit = Exit::kUsage;
    return error;
  };
  std::vector<int64_t> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t number = 0;
    const auto [stop, failure] = std::from_chars(text.data() + begin, text.data() + end, number);
    if (failure != std::errc() || stop != text.data() + end || begin == end)
      return wrong(
          begin, end,
          fmt::format("a {0} was expected; {0}s are whole numbers with commas between them, like 512,1024,33", noun));
    if (number < low || number > high)
      return wrong(begin, end, fmt::format("a {} of {} to {} was expected", noun, low, high));
    out.push_back(number);
    begin = end + 1;
  }
  return out;
}

}  // namespace roofgen

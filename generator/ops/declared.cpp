#include "generator/ops/declared.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace roofgen

#include "generator/ops/row_definitions.h"

#include <fmt/format.h>

namespace roofgen::rows {

Definitions rmsnorm(const std::string& v, const std::string& y, const NormInputs& in) {
  return {{y, fmt::format("{0} * rsqrt(mean({0} * {0}) + {1}) * {2}[n]{3}", v, in.eps, in.weight,
                          in.bias.empty() ? "" : " + " + in.bias + "[n]")}};
}

Definitions layernorm(const std::string& v, const std::string& y, const std::string& centred, const NormInputs& in) {
  Definitions out{{centred, fmt::format("{0} - mean({0})", v)}};
  out.push_back(rmsnorm(centred, y, in)[0]);
  return out;
}

Definitions softmax(const std::string& v, const std::string& y, const std::string& power) {
  return {{power, fmt::format("exp({0} - max({0}))", v)}, {y, fmt::format("{0} * (1 / sum({0}))", power)}};
}

Definitions quantised_by_row(const std::string& v, const std::string& y, const std::string& row_scale, DType format) {
  // The added constant keeps the scale of a row of zeros above zero; it is negligible for any other row.
  const double largest = format == DType::kFp8 ? 448 : 127;
  return {{row_scale, fmt::format("(amax({}) + 1e-30) * {}", v, 1 / largest)},
          {y, fmt::format("{} * (1 / {})", v, row_scale)}};
}

}  // namespace roofgen::rows

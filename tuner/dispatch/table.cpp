#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tuner/dispatch/dispatch.h"

namespace roofgen {

double distance(const Sizes& a, const Sizes& b) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kFar;
  double product = 1;
  for (auto x = a.begin(), y = b.begin(); x != a.end(); ++x, ++y) {
    if (x->first != y->first) return kFar;
    if (x->second == y->second) continue;
    if (x->second <= 0 || y->second <= 0) return kFar;
    const auto [less, more] = std::minmax(static_cast<double>(x->second), static_cast<double>(y->second));
    product *= more / less;
  }
  return product;
}

size_t DispatchKernel::requirements() const {
  return std::accumulate(stages.begin(), stages.end(), size_t{0},
                         [](size_t sum, const Stage& s) { return sum + s.requirements.size(); });
}

std::vector<std::string> DispatchTable::varied() const {
  std::vector<std::string> out;
  for (const auto& [name, size] : shapes.front().problem.dims)
    if (shapes.size() == 1 || std::ranges::any_of(shapes, [&, n = name, v = size](const DispatchShape& s) {
          return s.problem.dims.at(n) != v;
        }))
      out.push_back(name);
  return out;
}

Result<Selection> select(const DispatchTable& table, const Sizes& sizes,
                         const std::function<Result<bool>(size_t kernel)>& serves) {
  std::vector<std::pair<double, size_t>> near;
  for (size_t s = 0; s < table.shapes.size(); ++s) near.emplace_back(distance(sizes, table.shapes[s].problem.dims), s);
  std::string given, known;
  for (const auto& [name, size] : sizes) given += fmt::format(" {}={}", name, size);
  for (const auto& [name, size] : table.shapes.front().problem.dims) known += " " + name;
  if (std::ranges::all_of(near, [](const auto& n) { return std::isinf(n.first); }))
    return Error{Exit::kUsage, fmt::format("sizes{}: positive sizes{} were expected", given, known)};
  std::ranges::sort(near);
  std::vector<std::optional<bool>> answers(table.kernels.size());
  const auto ask = [&](size_t kernel) -> Result<bool> {
    if (!answers[kernel]) {
      ROOFGEN_TRY(answers[kernel], serves(kernel));
    }
    return *answers[kernel];
  };
  for (const auto& [far, shape] : near) {
    ROOFGEN_TRY(const bool right, ask(table.shapes[shape].kernel));
    if (right) return Selection{shape, table.shapes[shape].kernel};
  }
  return Error{Exit::kFailed, fmt::format("no kernel of the table serves{}", given)};
}

}  // namespace roofgen

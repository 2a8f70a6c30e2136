// Random conditions over the indices q, k and h, as in masks.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>

namespace roofgen::test {

class RandomCondition {
 public:
  explicit RandomCondition(uint64_t seed) : random_(seed) {}

  std::string condition(int depth = 3) {
    switch (depth == 0 ? 0 : below(7)) {
      case 1: return fmt::format("({} and {})", condition(depth - 1), condition(depth - 1));
      case 2: return fmt::format("({} or {})", condition(depth - 1), condition(depth - 1));
      case 3: return fmt::format("(not {})", condition(depth - 1));
      case 4:
        return fmt::format("({} if {} else {})", condition(depth - 1), condition(depth - 1), condition(depth - 1));
      default: return comparison();
    }
  }

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

 private:
  std::string comparison() {
    static const char* const kOps[] = {"<", "<=", ">", ">=", "==", "!="};
    std::string out = fmt::format("{} {} {}", number(2), kOps[below(6)], number(2));
    if (below(8) == 0) out += fmt::format(" {} {}", kOps[below(6)], number(1));
    return "(" + out + ")";
  }
  std::string number(int depth) {
    static const char* const kNames[] = {"q", "k", "q", "k", "h"};
    if (depth == 0 || below(3) == 0) return below(3) == 0 ? fmt::format("{}", between(0, 90)) : kNames[below(5)];
    const std::string a = number(depth - 1), b = number(depth - 1);
    switch (below(10)) {
      case 0:
      case 1: return fmt::format("({} + {})", a, b);
      case 2:
      case 3: return fmt::format("({} - {})", a, b);
      case 4:
        return fmt::format("({} * {})", a,
                           between(-3, 3) < 0 ? fmt::format("(-{})", between(1, 3)) : fmt::format("{}", between(0, 3)));
      case 5: return fmt::format("({} // {})", a, between(1, 40));
      case 6: return fmt::format("({} % {})", a, between(1, 40));
      case 7: return fmt::format("abs({})", a);
      case 8: return fmt::format("{}({}, {})", below(2) ? "min" : "max", a, b);
      default: return fmt::format("({} if {} < {} else {})", a, b, number(0), number(0));
    }
  }
  std::mt19937_64 random_;
};

}  // namespace roofgen::test

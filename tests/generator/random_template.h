// Random well-formed templates and expressions, for comparison with the reference engine.
#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/generator/reference.h"

namespace roofgen::test {

/// The variables available to random text.
nlohmann::json random_context();

/// A fixed seed gives the same text everywhere: only raw bits of the engine are used, no distribution.
class RandomTemplate {
 public:
  explicit RandomTemplate(uint64_t seed) : bits_(seed) {}

  enum class Type { kInt, kFloat, kString, kBool, kList };
  std::string expression(Type type, int depth);
  std::string any_expression(int depth);
  ReferenceCase make();  ///< a main template with an included and an imported one

 private:
  uint64_t below(uint64_t n) { return bits_() % n; }
  bool chance(int percent) { return below(100) < static_cast<uint64_t>(percent); }
  std::string pick(std::initializer_list<const char*> options) { return options.begin()[below(options.size())]; }
  std::string space() { return pick({" ", " ", " ", "", "  ", "\n"}); }

  std::string int_expression(int depth);
  std::string float_expression(int depth);
  std::string string_expression(int depth);
  std::string bool_expression(int depth);
  std::string list_expression(int depth);
  std::string text();
  std::string tag(const std::string& inside);
  std::string output(const std::string& inside);
  std::string statements(int depth);
  std::string statement(int depth);
  std::string macro(const std::string& name);

  std::mt19937_64 bits_;
  int loops_ = 0;        ///< enclosing loops
  bool context_ = true;  ///< whether the context is visible; not in an imported template
  bool calls_ = false;   ///< whether macros may be called
};

}  // namespace roofgen::test

// Finds the declarations of a C++ source without parsing them: their extent, and whether they are device code. Macros
// are not expanded and conditionals not evaluated.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen::check {

/// A preprocessor directive with its continuation lines.
struct Directive {
  size_t begin = 0, end = 0;
  std::string text;
  /// The header name of an #include, with quotes or brackets; "" for other directives.
  std::string_view included() const;
  /// "pragma" and "once" of #pragma once, and the end of the second word in `text`.
  struct Words {
    std::string_view first, second;
    size_t end = 0;
  };
  Words words() const;
};

/// A declaration at the scope of a namespace or a class.
struct Declaration {
  enum class Kind { kScope, kClass, kFunction, kOther };
  Kind kind = Kind::kOther;
  size_t begin = 0, end = 0;
  bool device = false;  ///< has __device__, __global__ or the like; a function before its body
  bool member = false;  ///< of a class
  bool is_template = false, is_kernel = false;
  std::string name;
};

struct Declarations {
  std::vector<Declaration> all;  ///< outer before inner ones
  std::vector<Directive> directives;
};

Declarations find_declarations(std::string_view text);

}  // namespace roofgen::check

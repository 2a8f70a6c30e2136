// The declarations of a C++ source, found without understanding them: enough to tell where each begins and ends and
// whether it is for the device. Macros and conditionals are looked at as they stand.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen::check {

/// A line that begins with #, with its continuations.
struct Directive {
  size_t begin = 0, end = 0;
  std::string text;
  /// The name in an #include, with its quotes or brackets; "" for others.
  std::string_view included() const;
  /// "pragma" and "once" of #pragma once, and where in `text` the second ends.
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
  bool device = false;  ///< __device__, __global__ and the like in it; of a function in its head
  bool member = false;  ///< of a class
  bool is_template = false, is_kernel = false;
  std::string name;  ///< of what it declares
};

struct Declarations {
  std::vector<Declaration> all;  ///< outer ones before those within
  std::vector<Directive> directives;
};

Declarations find_declarations(std::string_view text);

}  // namespace roofgen::check

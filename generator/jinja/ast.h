// A parsed template: plain values, immutable.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "generator/expr/ast.h"

namespace roofgen::jinja {

struct Statement;
using Block = std::vector<Statement>;

struct Text {  ///< copied to the output
  std::string_view text;
};
struct Output {  ///< {{ value }}
  expr::Node value;
};
struct If {  ///< the first branch whose test holds; the last may have none (else)
  struct Branch {
    std::optional<expr::Node> test;
    Block body;
  };
  std::vector<Branch> branches;
};
struct For {
  std::vector<std::string> targets;  ///< one name, or several that unpack each item
  expr::Node items;
  Block body;
  bool uses_loop = false;
};
struct Set {
  std::string name;
  expr::Node value;
};
struct Macro {
  struct Param {
    std::string name;
    std::optional<expr::Node> preset;
  };
  std::string name;
  std::vector<Param> params;
  Block body;
};
struct Include {
  expr::Node name;
};
struct Import {
  expr::Node name;
  std::string as;
};
struct Assert {
  expr::Node test, message;
};

struct Statement {
  Span at;       ///< the tag's first word, or the text
  int line = 0;  ///< of at.begin
  std::variant<Text, Output, If, For, Set, Macro, Include, Import, Assert> as;
};

/// Not movable: Text points into the source.
struct Template {
  Source source;
  Block body;
  Template() = default;
  Template(const Template&) = delete;
  Template& operator=(const Template&) = delete;
};

}  // namespace roofgen::jinja

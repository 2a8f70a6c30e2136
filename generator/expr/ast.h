// The syntax tree of an expression: plain values, immutable once parsed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "generator/expr/expr.h"

namespace roofgen::expr {

struct Builtin;

enum class Kind : uint8_t {
  kLiteral,   ///< value
  kName,      ///< name
  kVariable,  ///< variable (generator/expr/bound.h)
  kAttr,      ///< args[0] . name
  kIndex,     ///< args[0] [ args[1] ], in formulas args[0] [ args[1], args[2], ... ]
  kList,      ///< args
  kUnary,     ///< ops[0] args[0]
  kBinary,    ///< args[0] ops[0] args[1]
  kCompare,   ///< args[0] ops[0] args[1] ops[1] args[2] ..., chained as in Python
  kAnd,       ///< args, two or more
  kOr,        ///< args, two or more
  kIf,        ///< args[1] if args[0] else args[2]
  kCall,      ///< args[0] is the callee (kName or kAttr); the last keywords.size() args are named
  kFilter,    ///< args[0] | name(args[1], ...)
};

enum class Op : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kNeg,
  kPos,
  kNot,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn
};
const char* to_string(Op op);

struct Node {
  Kind kind = Kind::kLiteral;
  uint16_t height = 1;  ///< of the subtree; the parser limits it, because evaluation recurses
  Span span = {};       ///< the whole expression
  Span at = {};         ///< the token that errors point at
  Value value = {};
  std::string name = {};
  size_t variable = 0;
  std::vector<Node> args = {};
  std::vector<Op> ops = {};
  std::vector<std::string> keywords = {};
  const Builtin* builtin = nullptr;  ///< of kFilter, and of kCall of a built-in function
};

/// Adds every variable that the expression reads; the callee of a call is not a variable.
void collect_names(const Node& node, std::set<std::string>& out);

/// An expression with its text.
struct Tree {
  Source source;
  Node root;
};

}  // namespace roofgen::expr

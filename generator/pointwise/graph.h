// The typed, shared form of a formula: operations in topological order, operands first.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "roofgen/pipeline.h"

namespace roofgen::pointwise {

enum class Type : uint8_t { kBool, kInt, kFloat };

enum class Code : uint8_t {
  kSource,
  kTensor,       ///< which: of Vocabulary::tensors, at its own indices
  kScalar,       ///< which: of Vocabulary::scalars, by name
  kIndex,        ///< which: of Vocabulary::indices
  kInverseCols,  ///< 1 / columns
  kConstant,     ///< number
  kConvert,      ///< to a wider type: bool -> int -> float
  kNeg,
  kAdd,
  kSub,
  kMul,
  kFloorDiv,  ///< of ints, by a constant
  kMod,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kNot,
  kAnd,
  kOr,
  kSelect,  ///< args[0] ? args[1] : args[2]
  kMin,
  kMax,
  kCall,    ///< which: of functions()
  kCast,    ///< which: the DType of the rounded args[0]
  kReduce,  ///< which: Reduce, of args[0] over the row
};

enum class Reduce : uint8_t { kSum, kMax, kMin };

struct Operation {
  Code code = Code::kConstant;
  Type type = Type::kFloat;
  std::array<int, 3> args = {-1, -1, -1};
  double number = 0;
  int which = 0;
  bool of_data = false;  ///< depends on the source or on a tensor
  // Found by Plan:
  bool along_row = false;  ///< varies along the row
  bool needs_tensor = false;
  bool exact = false;  ///< an output of more than 16 bits depends on it
  int level = -1;      ///< the last reduction that it depends on
  int derived = -1;    ///< index among the values computed once per row
};

/// Gives equal operations the same number.
class Graph {
 public:
  int add(const Operation& op) {
    const auto [at, is_new] =
        known_.try_emplace({op.code, op.type, op.args, op.number, op.which}, static_cast<int>(operations_.size()));
    if (is_new) operations_.push_back(op);
    return at->second;
  }
  const Operation& operator[](int i) const { return operations_[static_cast<size_t>(i)]; }
  Operation& operator[](int i) { return operations_[static_cast<size_t>(i)]; }
  int size() const { return static_cast<int>(operations_.size()); }

 private:
  std::vector<Operation> operations_;
  std::map<std::tuple<Code, Type, std::array<int, 3>, double, int>, int> known_;
};

}  // namespace roofgen::pointwise

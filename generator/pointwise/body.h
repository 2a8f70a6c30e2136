// The data of a Formula: check.cpp makes operations of the text, plan.cpp phases; cuda.cpp and evaluate.cpp use both.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "generator/pointwise/formula.h"
#include "generator/pointwise/graph.h"

namespace roofgen::pointwise {

inline constexpr int kMaxPhases = 8;

/// One reduction over the row.
struct Phase {
  int reduce = -1;  ///< the kReduce operation; its args[0] is the term
  int before = -1;  ///< operation with the value of x at the start of the phase
  int after = -1;   ///< operation with the value of x after the phase
  bool online = false;
  std::vector<int> derived;  ///< values of the whole row that this reduction makes computable
  std::set<int> tensors;
};

struct PlannedOutput {
  int value = -1;
  int after_phase = -1;
  int x = -1;  ///< operation with the value of x when the output is called
  std::set<int> tensors;
};

struct Body {
  Vocabulary vocabulary;
  std::vector<std::string> scalar_names;  ///< of the vocabulary, sorted; indexed by kScalar
  std::vector<Output> outputs;
  Graph graph;

  std::vector<PlannedOutput> planned;  ///< one for each output
  std::vector<Phase> phases;
  std::vector<TensorArg> tensors;  ///< read by the formula, in order of first use
  std::vector<int> scalars;        ///< read by the formula
  int derived = 0;
  Cost cost;
  std::string cuda;

  const Operation& operator[](int i) const { return graph[i]; }
  int term(const Phase& phase) const { return graph[phase.reduce].args[0]; }
  /// Operations that compute `roots`, operands first. `is_leaf` operations are included, their operands are not.
  template <class Leaf>
  std::set<int> below(const std::vector<int>& roots, Leaf is_leaf) const {
    std::set<int> out;
    std::vector<int> open(roots);
    while (!open.empty()) {
      const int i = open.back();
      open.pop_back();
      if (i < 0 || !out.insert(i).second || is_leaf(i)) continue;
      open.insert(open.end(), graph[i].args.begin(), graph[i].args.end());
    }
    return out;
  }
};

/// Reads the definitions; sets graph and the values of the outputs.
Result<void> check(const std::vector<Definition>& definitions, Body& body);
/// Divides the work into phases; sets everything else but `cuda`.
Result<void> plan(Body& body, const std::string& argument);
std::string cuda_text(const Body& body);

}  // namespace roofgen::pointwise

// The legal combinations of parameter values, by constraint propagation: parameters are fixed one after the other, and
// a rule is evaluated as soon as all parameters that it reads are fixed. A violated rule cuts off all combinations of
// the parameters that are still open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generator/expr/bound.h"
#include "roofgen/result.h"

namespace roofgen {

struct LegalCombinations {
  uint64_t considered = 0;     ///< the product of the numbers of values
  uint64_t number = 0;         ///< legal ones
  std::vector<uint16_t> rows;  ///< of each legal combination the index of each value, in the order of the product
  /// Combinations that one rule cut off. A combination that violates several rules counts once.
  struct Cut {
    uint64_t combinations = 0;
    std::vector<uint16_t> first;  ///< the first of them, in the order of the product
    std::string reason;           ///< the rule with its values in that combination
  };
  std::vector<Cut> cuts;  ///< in the order of the rules
};

class Combinations {
 public:
  using Param = expr::Variable;
  explicit Combinations(const std::vector<Param>& params) : params_(params), points_(params) {}

  /// Rules over the parameters and `constants`, which must outlive this. Each derived name may be used by all that
  /// follow; a combination where it has no value is illegal. `why` stands before the reasons of these rules.
  void add(const expr::Map& constants, const std::vector<std::pair<std::string, expr::Expr>>& derived,
           const std::vector<expr::Expr>& conditions, std::string why = "");

  /// An Error: a condition has no value at a combination that is legal otherwise, or the space is beyond the limits.
  Result<LegalCombinations> find(uint64_t most_steps = kMostSteps);

  static constexpr uint64_t kMostCombinations = uint64_t{1} << 62;
  static constexpr size_t kMostParams = 64, kMostValues = 4096, kMostLegal = 4'000'000;
  /// Of one space: combinations of some parameters looked at, and steps of expressions. Some ten seconds.
  static constexpr uint64_t kMostSteps = 500'000'000;

 private:
  /// A derived name or a condition.
  struct Rule {
    expr::Expr source;
    size_t set;                                     ///< index into why_, and a scope of points_
    std::string name;                               ///< of a derived name; empty: a condition
    size_t form;                                    ///< in points_
    uint64_t combinations = 0, first = UINT64_MAX;  ///< cut off
  };

  Result<void> check_limits();
  void choose_order();
  void descend(size_t depth, uint64_t number, const Rule* failing);
  std::vector<uint16_t> row_of(uint64_t number) const;
  expr::Map names_at(const Rule& rule, uint64_t number);
  std::string reason(const Rule& rule);

  const std::vector<Param> params_;
  expr::Points points_;
  std::vector<std::string> why_;  ///< before the reasons of each set of rules
  std::vector<Rule> rules_;
  std::vector<size_t> order_;             ///< of the parameters
  std::vector<std::vector<size_t>> due_;  ///< rules by the number of fixed parameters
  std::vector<uint64_t> stride_, open_;   ///< of a parameter in the product; combinations below a depth
  uint64_t looked_at_ = 0, most_steps_ = 0;
  std::vector<uint64_t> legal_;
  std::optional<Error> failure_;
};

}  // namespace roofgen

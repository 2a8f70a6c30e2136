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
  struct Param {
    std::string name;
    std::vector<expr::Value> values;
  };
  explicit Combinations(std::vector<Param> params) : params_(std::move(params)), values_(params_.size()) {}

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
  enum class State : uint8_t { kUnknown, kHolds, kViolated, kFails };
  /// A derived name or a condition.
  struct Rule {
    expr::BoundExpr bound;
    expr::Expr source;
    size_t set;                 ///< index into sets_
    std::string name;           ///< of a derived name; empty: a condition
    size_t place = 0;           ///< of a derived name: in values_
    std::vector<size_t> reads;  ///< derived names: rules, ascending
    std::vector<size_t> params;
    std::vector<State> known;                       ///< by the values of `params`; empty: too many
    uint64_t combinations = 0, first = UINT64_MAX;  ///< cut off
  };
  struct Set {
    const expr::Map* constants;
    std::string why;
    std::vector<size_t> rules;
  };

  Result<void> check_limits();
  void choose_order();
  void descend(size_t depth, uint64_t number, const Rule* failing);
  State state_of(Rule& rule);
  State evaluate(Rule& rule);
  std::vector<uint16_t> row_of(uint64_t number) const;
  expr::Map scope_at(const Rule& rule, uint64_t number) const;
  std::string reason(const Rule& rule) const;

  std::vector<Param> params_;
  std::vector<Set> sets_;
  std::vector<Rule> rules_;
  std::vector<size_t> order_;             ///< of the parameters
  std::vector<std::vector<size_t>> due_;  ///< rules by the number of fixed parameters
  std::vector<uint64_t> stride_, open_;   ///< of a parameter in the product; combinations below a depth
  std::vector<uint16_t> row_;
  std::vector<expr::Value> values_;  ///< of the parameters, then of the derived names
  std::vector<uint64_t> set_at_;     ///< when each of values_ was set
  uint64_t clock_ = 0, steps_ = 0, most_steps_ = 0;
  std::vector<uint64_t> legal_;
  std::optional<Error> failure_;
};

}  // namespace roofgen

// The legal points of a stage.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "generator/generate.h"

namespace roofgen {

struct LegalPoints {
  Schedule form;                                ///< of all points: variant, stage, and each parameter with some value
  std::vector<std::vector<ParamValue>> values;  ///< of each parameter
  std::vector<uint16_t> rows;      ///< of each point the indices of its values, in the order of the space's declaration
  uint64_t considered = 0;         ///< combinations of values
  size_t number = 0;               ///< legal points
  std::vector<Rejected> rejected;  ///< one for each rule: its first point, and their number

  Schedule schedule(size_t point) const;
  /// As one of `rows`, of a point or not; nothing: it has other parameters, or values that are not in `values`.
  std::optional<std::vector<uint16_t>> row_of(const Schedule& schedule) const;
  std::vector<expr::Variable> variables() const;  ///< the parameters, with the values of the rows
};

/// Before the reason of a point that the problem used for verification does not have.
inline const std::string kOnTheReducedProblem = "on the reduced problem: ";

/// The points that satisfy derived values, constraints and prunes; launch_fault() is not asked. `pins` fixes parameters
/// (name -> value). With `reduced_scope` the point must also satisfy the constraints on that problem.
Result<LegalPoints> legal_points(const Variant& variant, const Stage& stage, const expr::Map& problem_scope,
                                 const std::map<std::string, ParamValue>& pins,
                                 const expr::Map* reduced_scope = nullptr);

}  // namespace roofgen

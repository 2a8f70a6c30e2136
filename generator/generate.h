// Problem x Schedule -> Program and Launch. Pure functions: no CUDA, no clock, no environment.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/expr/bound.h"
#include "generator/ops/op.h"
#include "generator/space/data_files.h"
#include "generator/space/space.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// The variants of a problem: an instance for each value of Variant::instances; without the variants, kernels and
/// temporaries whose `when` is false, without variants whose `target` is another architecture than the device's, and
/// with only the default of parameters whose `when` is false. Exit::kUnavailable: only other devices have a variant.
Result<std::vector<Variant>> expand(std::vector<Variant> variants, const expr::Map& problem_scope);

/// By the name of each variant: its conditions on device and problem, as in "sm_90a, not (paged or prologue)".
std::map<std::string, std::string> conditions_of(const std::vector<Variant>& variants);
/// The usage error about a variant that is not in `left`, which expand() made of variants with these conditions.
Error no_variant(const std::string& wanted, const std::map<std::string, std::string>& conditions,
                 const std::vector<std::string>& left, const std::string& device);
std::vector<std::string> names_of(const std::vector<Variant>& variants);

/// A schedule that satisfies its constraints, and its scope: the problem's names, `device.*` limits, parameters,
/// derived values. A violated constraint gives a Rejected with the comparison and its values.
struct Legal {
  Schedule schedule;
  expr::Map scope;
  operator expr::Names() const { return scope; }
};
Result<expr::Map> problem_scope(const Op& op, const Problem& problem, const expr::Map& device_limits);
/// A problem with the variants that it has on a device.
struct ProblemVariants {
  Problem problem;
  expr::Map scope;
  std::vector<Variant> variants;
  std::map<std::string, std::string> conditions;  ///< conditions_of() all variants of the op
  const Variant* find(const std::string& name) const;
};
/// `device_limits`: limits() of the device.
Result<ProblemVariants> variants_of(const DataFiles& files, const Op& op, const expr::Map& device_limits,
                                    const Problem& problem);
std::variant<Legal, Rejected, Error> check_schedule(const Variant& variant, const Stage& stage, Schedule schedule,
                                                    const expr::Map& problem_scope, bool prune = true);

/// Whether the source made for `tuned` is right for another legal problem: each assumption that holds for the tuned
/// problem holds there too.
Result<bool> serves(const Stage& stage, const expr::Names& tuned, const expr::Names& other);
/// The first such assumption that does not hold there, with its values; empty: none.
Result<std::string> broken_assumption(const Stage& stage, const expr::Names& tuned, const expr::Names& other);

/// The names of a stage's expressions before those of a schedule: the problem's scope, the stage's formula and its
/// `problem` names.
Result<expr::Map> stage_scope(const Variant& variant, const Stage& stage, const expr::Map& problem_scope);
expr::Value to_value(const ParamValue& value);

/// check_schedule for many points of a stage: expressions over the problem alone are evaluated once. The variant and
/// the stage must outlive it.
class StagePoints {
 public:
  static Result<StagePoints> of(const Variant& variant, const Stage& stage, const expr::Map& problem_scope);
  std::variant<Legal, Rejected, Error> check(Schedule schedule, bool prune = true);
  /// Sets point() without its constraints. Returns why a derived name has no value.
  std::optional<std::string> move_to(Schedule schedule);
  const Legal& point() const { return point_; }

 private:
  StagePoints(const Stage& stage, expr::Map scope) : stage_(&stage), point_{{}, std::move(scope)} {}
  const Stage* stage_;
  Legal point_;
};

Result<Schedule> default_schedule(const Variant& variant, const Stage& stage, const expr::Map& problem_scope,
                                  const std::map<std::string, ParamValue>& pins);

Result<Program> generate(const DataFiles& files, const Stage& stage, const Legal& legal);
Result<Launch> make_launch(const Stage& stage, const expr::Names& names);
/// The rule of clusters, programmatic dependent launch or tensor maps that the launch breaks on the scope's device,
/// with its values; empty: none.
Result<std::string> launch_fault(const Stage& stage, const expr::Names& names);
/// Where the fields of a struct argument begin, as in C, and its size after them.
std::vector<size_t> field_offsets(const std::vector<Stage::ArgSpec>& fields);
Result<std::vector<Buffer>> temporaries(const Variant& variant, const expr::Map& problem_scope);

}  // namespace roofgen

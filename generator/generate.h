// Problem x Schedule -> Program and Launch. Pure functions: no CUDA, no clock, no environment. A variant is one
// template per stage and one file search_spaces/<op>/<variant>.json (docs/internals/search-spaces.md).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/expr/bound.h"
#include "generator/ops/op.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// The data files of roofgen (templates/, search_spaces/, devices/), embedded at build time. Files below `--data-dir`
/// take precedence. Names are relative: "search_spaces/attention/fused.json".
class DataFiles {
 public:
  explicit DataFiles(std::vector<std::string> dirs = {});
  /// The text, or an error: no such file, a name that leaves the directory, over 4 MiB.
  Result<std::string> load(std::string_view name) const;
  std::optional<std::string> read(std::string_view name) const;  ///< `load` without the reason
  std::vector<std::string> list(std::string_view prefix) const;  ///< sorted names with this prefix
  std::string origin(
      std::string_view name) const;  ///< for messages: the path of the file, or the name if it is embedded

 private:
  std::vector<std::string> dirs_;
};

/// Stems of the JSON files in a folder ("devices/"), sorted.
std::vector<std::string> json_names(const DataFiles& files, std::string_view folder);

struct Param {
  std::string name;
  std::vector<ParamValue> values;
  expr::Expr preset;                    ///< the default; an expression over the problem
  std::optional<expr::Expr> when = {};  ///< false for the problem: only the default is tried
};

/// One kernel of a variant and its search space.
struct Stage {
  std::string name, template_name, entry;
  std::string target;                   ///< "sm_90a": compiled for it, and only for its devices; empty: any device
  std::string output;                   ///< the buffer that `Op::compare` checks; it may check more
  std::optional<expr::Expr> when = {};  ///< false for the problem: the variant does without this kernel
  std::string formula;                  ///< key in the scope's `formulas` of the template's `formula`; may be empty
  std::map<std::string, std::string> buffers;  ///< argument of a shared stage -> buffer of this variant
  std::vector<std::pair<std::string, expr::Expr>>
      problem;  ///< expressions over problem and formula; the defaults may use them
  std::vector<Param> params;
  std::vector<std::pair<std::string, expr::Expr>> derived;  ///< evaluated in order; all later expressions may use them
  std::vector<expr::Expr> constraints;
  std::vector<expr::Expr> prunes;  ///< legal points not worth trying; applied to the real problem, not to a reduced one
  struct AxisSpec {
    std::string name;
    int dim = 0;
    expr::Expr extent, step, tile;
    bool reverse = false;
    bool by_group = false;
  };
  std::vector<AxisSpec> axes;
  std::optional<expr::Expr> persistent;  ///< CTAs along x that share its tiles; 0: each CTA has one
  std::optional<expr::Expr> ctas;        ///< CTAs along x, without positions outside the output; 0: all positions
  expr::Expr block, smem;
  std::vector<expr::Expr> cluster;    ///< CTAs of a cluster along x, y and z; empty: no clusters
  std::optional<expr::Expr> overlap;  ///< programmatic dependent launch
  bool dependent = false;             ///< after another kernel it has the parameter "dependent"
  std::vector<expr::Expr> assumes;    ///< conditions; the source relies on the ones that hold for the tuned problem
  /// The view of a buffer that a tensor map gives; dims and strides count elements.
  struct MapSpec {
    expr::Expr dtype;
    std::vector<expr::Expr> dims, strides, box;
    expr::Expr swizzle, nan_fill, l2_promotion;
  };
  /// type: ptr i32 i64 f32 struct tensor_map; or `each` of formula.tensors, formula.outputs (pointers),
  /// formula.scalars (f32)
  struct ArgSpec {
    std::string name;
    std::string type;
    std::optional<expr::Expr> value = {};
    std::vector<ArgSpec> fields = {};  ///< of a struct: scalars
    std::string buffer = {};           ///< of a tensor map
    std::optional<MapSpec> map = {};
    std::optional<expr::Expr> when = {};  ///< false: the kernel has no such parameter
  };
  std::vector<ArgSpec> args;
  /// Bytes that CTAs with equal positions on `axes` share, for the L2 model (tuner/verify/l2_model.h). Without panels
  /// the model uses traced accesses.
  struct PanelSpec {
    std::string name;
    std::vector<std::string> axes;
    expr::Expr bytes;
    bool streamed = true;
  };
  std::vector<PanelSpec> panels;
  std::vector<std::pair<std::string, expr::Expr>>
      work;  ///< closed formulas for the work of the whole launch; they rank candidates before compilation
};

struct Variant : VariantInfo {
  std::string file;
  struct Temporary {
    std::string name;
    expr::Expr dtype, bytes;
    std::optional<expr::Expr> when = {};  ///< false for the problem: not needed
    bool zeroed = false;                  ///< as of Buffer
  };
  std::optional<expr::Expr> when = {};  ///< false: not a variant of the problem
  std::vector<Temporary> temporaries;
  std::vector<Stage> stages;
  /// A number that all kernels of the variant share, as the splits of a sum. Each of its values is a variant of its
  /// own, "split4": expand() makes them. The expressions are over the problem and the device.
  struct Instances {
    std::string name;
    std::vector<std::pair<std::string, expr::Expr>> problem;
    std::vector<expr::Expr> values;
    expr::Expr when;
  };
  std::optional<Instances> instances;
  /// Expressions over the problem, for the temporaries. Each stage's `problem` begins with them.
  std::vector<std::pair<std::string, expr::Expr>> problem;
};

/// All variants of an op, sorted by name. Errors carry the position in the JSON file.
Result<std::vector<Variant>> load_variants(const DataFiles& files, const std::string& op);

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

/// "sm_90a" -> 90: the devices that have the instructions of this target alone. Nothing: no such target.
std::optional<int> feature_set_of(const std::string& target);

/// A shared stage from its own file, "stages/rows.json".
Result<Stage> load_stage(const DataFiles& files, const std::string& name);

/// A schedule that satisfies its constraints, and its scope: the problem's names, `device.*` limits, parameters,
/// derived values. A violated constraint gives a Rejected with the comparison and its values.
struct Legal {
  Schedule schedule;
  expr::Map scope;
  operator expr::Names() const { return scope; }
};
Result<expr::Map> problem_scope(const Op& op, const Problem& problem, const expr::Map& device_limits);
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

// Problem x Schedule -> Program and Launch. Pure: no CUDA, no clock, no environment. A variant is
// one template per stage plus one JSON in search_spaces/<op>/<variant>.json (docs/search-spaces.md).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/expr/expr.h"
#include "generator/ops/op.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// The text files roofgen ships (templates/, search_spaces/, devices/), embedded at build time;
/// files below `--data-dir` come first. Names are relative: "search_spaces/attention/fused.json".
class DataFiles {
 public:
  explicit DataFiles(std::vector<std::string> dirs = {});
  /// The text, or why there is none: no such file, a name that leaves the directory, over 4 MiB.
  Result<std::string> load(std::string_view name) const;
  std::optional<std::string> read(std::string_view name) const;  ///< `load` without the reason
  std::vector<std::string> list(std::string_view prefix) const;  ///< sorted names with this prefix
  std::string origin(std::string_view name) const;               ///< path for messages: a real path, or the name itself

 private:
  std::vector<std::string> dirs_;
};

/// The names of the JSON files of a folder ("devices/"), without folder and ending, sorted.
std::vector<std::string> json_names(const DataFiles& files, std::string_view folder);

struct Param {
  std::string name;
  std::vector<ParamValue> values;
  expr::Expr preset;  ///< the default; an expression over the problem
};

/// One kernel of a variant and the space of its schedules.
struct Stage {
  std::string name, template_name, entry;
  std::string output;   ///< buffer that `Op::compare` checks (it may check others beside it)
  std::string formula;  ///< which of the scope's `formulas` the template sees as `formula`; may be empty
  std::map<std::string, std::string> buffers;  ///< argument of a shared stage -> buffer it stands for here
  /// Not empty: only these points, instead of the product of all values. How a search is told what another found.
  std::vector<std::vector<std::pair<std::string, ParamValue>>> points;
  std::vector<std::pair<std::string, expr::Expr>>
      problem;  ///< names for what the problem and the formula say; the defaults see them
  std::vector<Param> params;
  std::vector<std::pair<std::string, expr::Expr>> derived;  ///< evaluated in order, visible everywhere after
  std::vector<expr::Expr> constraints;
  std::vector<expr::Expr>
      prunes;  ///< points that are legal but not worth a try: asked of the real problem, not of a reduced one
  struct AxisSpec {
    std::string name;
    int dim = 0;
    expr::Expr extent, step;
    bool reverse = false;
  };
  std::vector<AxisSpec> axes;
  expr::Expr block, smem;
  std::vector<expr::Expr> cluster;    ///< CTAs of a cluster along x, y and z; empty: no clusters
  std::optional<expr::Expr> overlap;  ///< programmatic dependent launch
  std::vector<expr::Expr> assumes;    ///< where true for the tuned problem, the source relies on it
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
  };
  std::vector<ArgSpec> args;
  /// What CTAs that agree on `axes` touch together, for the model of L2 (tuner/verify/l2_model.h); empty: by traced
  /// accesses.
  struct PanelSpec {
    std::string name;
    std::vector<std::string> axes;
    expr::Expr bytes;
    bool streamed = true;
  };
  std::vector<PanelSpec> panels;
  std::vector<std::pair<std::string, expr::Expr>> work;  ///< prior: work of the whole launch by closed formula
};

struct Variant {
  std::string op, name, description, file;
  struct Temporary {
    std::string name;
    expr::Expr dtype, bytes;
  };
  bool fused =
      true;  ///< which side of the fusion verdict it is on; unless it says so, one stage is fused and more are not
  std::vector<Temporary> temporaries;
  std::vector<Stage> stages;
};

/// All variants of an op, sorted by name. Errors name the JSON file and the place in it.
Result<std::vector<Variant>> load_variants(const DataFiles& files, const std::string& op);

/// One stage from a file of its own, "stages/rows.json": kernels that several ops and every chain are made of.
Result<Stage> load_stage(const DataFiles& files, const std::string& name);

/// Scope of one schedule: the problem's names, `device.*` limits, the parameters, the derived values.
/// A constraint that fails is a Rejected with the comparison and its values.
struct Legal {
  Schedule schedule;
  expr::Map scope;
};
Result<expr::Map> problem_scope(const Op& op, const Problem& problem, const expr::Map& device_limits);
std::variant<Legal, Rejected, Error> check_schedule(const Variant& variant, const Stage& stage, Schedule schedule,
                                                    const expr::Map& problem_scope, bool prune = true);

/// check_schedule for the many points of a stage: what the problem alone decides is worked out once. The variant and
/// the stage must outlive it.
class StagePoints {
 public:
  static Result<StagePoints> of(const Variant& variant, const Stage& stage, const expr::Map& problem_scope);
  std::variant<Legal, Rejected, Error> check(Schedule schedule, bool prune = true);

 private:
  StagePoints(const Stage& stage, expr::Map scope) : stage_(&stage), scope_(std::move(scope)) {}
  const Stage* stage_;
  expr::Map scope_;  ///< with the parameters and derived values of the point checked last
};

/// Every point of a stage's space in declaration order, with `pins` fixed (name -> value).
std::vector<Schedule> enumerate(const Variant& variant, const Stage& stage,
                                const std::map<std::string, ParamValue>& pins);
Result<Schedule> default_schedule(const Variant& variant, const Stage& stage, const expr::Map& problem_scope,
                                  const std::map<std::string, ParamValue>& pins);

Result<Program> generate(const DataFiles& files, const Stage& stage, const Legal& legal);
Result<Launch> make_launch(const Stage& stage, const Legal& legal);
/// The rule of clusters, programmatic dependent launch or tensor maps that the launch breaks on the scope's device,
/// with its values; empty: none.
Result<std::string> launch_fault(const Stage& stage, const Legal& legal);
/// Where the fields of a struct argument begin, as in C, and its size behind them.
std::vector<size_t> field_offsets(const std::vector<Stage::ArgSpec>& fields);
Result<std::vector<Buffer>> temporaries(const Variant& variant, const expr::Map& problem_scope);

}  // namespace roofgen

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
  std::string origin(std::string_view name) const;  ///< path for messages: a real path, or the name itself

 private:
  std::vector<std::string> dirs_;
};

struct Param {
  std::string name;
  std::vector<ParamValue> values;
  expr::Expr preset;  ///< the default; an expression over the problem
};

/// One kernel of a variant and the space of its schedules.
struct Stage {
  std::string name, template_name, entry;
  std::string output;                      ///< buffer that `Op::compare` checks
  std::vector<Param> params;
  std::vector<std::pair<std::string, expr::Expr>> derived;  ///< evaluated in order, visible everywhere after
  std::vector<expr::Expr> constraints;
  struct AxisSpec { std::string name; int dim = 0; expr::Expr extent, step; bool reverse = false; };
  std::vector<AxisSpec> axes;
  expr::Expr block, smem;
  std::vector<expr::Expr> assumes;  ///< where true for the tuned problem, the source relies on it
  struct ArgSpec { std::string name; std::string type; std::optional<expr::Expr> value; };  ///< type: ptr i32 i64 f32
  std::vector<ArgSpec> args;
  std::vector<std::pair<std::string, expr::Expr>> work;  ///< prior: work of the whole launch by closed formula
};

struct Variant {
  std::string op, name, description, file;
  struct Temporary { std::string name; expr::Expr dtype, bytes; };
  std::vector<Temporary> temporaries;
  std::vector<Stage> stages;
};

/// All variants of an op, sorted by name. Errors name the JSON file and the place in it.
Result<std::vector<Variant>> load_variants(const DataFiles& files, const std::string& op);

/// Scope of one schedule: the problem's names, `device.*` limits, the parameters, the derived values.
/// A constraint that fails is a Rejected with the comparison and its values.
struct Legal {
  Schedule schedule;
  expr::Map scope;
};
Result<expr::Map> problem_scope(const Op& op, const Problem& problem, const expr::Map& device_limits);
std::variant<Legal, Rejected, Error> check_schedule(const Variant& variant, const Stage& stage, Schedule schedule,
                                                    const expr::Map& problem_scope);

/// Every point of a stage's space in declaration order, with `pins` fixed (name -> value).
std::vector<Schedule> enumerate(const Variant& variant, const Stage& stage,
                                const std::map<std::string, ParamValue>& pins);
Result<Schedule> default_schedule(const Variant& variant, const Stage& stage, const expr::Map& problem_scope,
                                  const std::map<std::string, ParamValue>& pins);

Result<Program> generate(const DataFiles& files, const Stage& stage, const Legal& legal);
Result<Launch> make_launch(const Stage& stage, const Legal& legal);
Result<std::vector<Buffer>> temporaries(const Variant& variant, const expr::Map& problem_scope);

}  // namespace roofgen

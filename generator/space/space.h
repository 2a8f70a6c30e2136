// A variant: one template per stage and one file search_spaces/<op>/<variant>.json (docs/internals/search-spaces.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generator/expr/expr.h"
#include "generator/space/data_files.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

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

/// A shared stage from its own file, "stages/rows.json".
Result<Stage> load_stage(const DataFiles& files, const std::string& name);

}  // namespace roofgen

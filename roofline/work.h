// The work of an operator by formula: FLOPs, bytes of each operand in each kernel, exps. The formulas are data,
// work/<op>.json, in the expression language (docs/internals/work.md); each is written once and serves `explain`,
// `model`, `lint` and the tuner's floor.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generator/expr/expr.h"
#include "generator/generate.h"
#include "roofgen/result.h"

namespace roofgen {

/// Storage size of a number format and the arithmetic that consumes it. One table: a new format is a new row.
struct NumberFormat {
  const char* name;    ///< "bf16"
  double bytes;        ///< per element, including block scales
  const char* math;    ///< the arithmetic that multiplies it: `<math>` in a device's peak_<math>_tflops cells
  int rank;            ///< wider formats rank higher; a product of two formats runs at the rate of the wider one
  const char* result;  ///< default format of products' results; narrow inputs do not imply narrow outputs
  const char* note;    ///< remark for users
};

const std::vector<NumberFormat>& number_formats();
/// Exit::kUsage with the nearest name.
Result<const NumberFormat*> find_number_format(const std::string& name);

/// One tensor that one kernel reads or writes.
struct OperandWork {
  std::string name;
  bool write = false;
  double elements = 0;
  const NumberFormat* format = nullptr;
  double bytes() const { return elements * format->bytes; }
};

/// One kernel: what it does between reading its operands from memory and writing its results.
struct KernelWork {
  std::string name;
  double mma_flops = 0;
  double vector_flops = 0;  ///< per-element operations outside the matrix units; a transcendental counts as one
  double softmax_elements = 0;
  double exps =
      0;  ///< exponentials (and square roots, reciprocals where the formula counts them) on the special-function units
  double ctas = 0;      ///< at the tile sizes the formula states; 0: unknown
  double l2_bytes = 0;  ///< between L2 and the SMs
  /// Bytes of A and of B if every multiply-add read its own from shared memory; the matrix unit's tile
  /// (device cells mma_tile_m, mma_tile_n) divides them.
  double smem_a = 0, smem_b = 0;
  double link_bytes = 0;  ///< one GPU sends over NVLink, one direction
  std::vector<OperandWork> operands;
  double dram_bytes() const;  ///< compulsory: each operand once
};

/// An operator at given dimensions: one or more kernels, run one after the other.
struct OpWork {
  std::string op, form, title;
  std::map<std::string, int64_t> dims;
  std::map<std::string, bool> flags;
  std::map<std::string, const NumberFormat*> dtypes;  ///< by role: "a", "b", "out", ...
  std::string math;                                   ///< "bf16": which peak the matrix work runs against
  std::string accumulate;                             ///< "fp32", "fp16", "int32", "fp64"
  double softmax_flops = 0;  ///< per-element operations counted as FLOPs on top of the MMA FLOPs
  std::vector<KernelWork> kernels;
  std::optional<double>
      ai_limit;             ///< AI as the dimensions that batch work grow without bound, if the formula names any
  std::string ai_limit_of;  ///< those dimensions: "M"
  std::string lever;        ///< of a form that is bound by memory, where the formula knows one
  std::vector<std::string> cache;  ///< operands that are the cache of each sequence

  double mma_flops() const;
  /// By the convention: MMA FLOPs (and softmax_flops per softmax element) where there are any, else vector FLOPs.
  double flops() const;
  double flops(const KernelWork& kernel) const;
  double dram_bytes() const;
  double exps() const;
  double arithmetic_intensity() const;
  bool uses_matrix_units() const { return mma_flops() > 0; }
  std::string flop_convention() const;  ///< one line, always printed beside FLOPs
};

/// A name an operator's formulas understand.
struct WorkDim {
  std::string name, help;
  std::optional<expr::Expr> preset;  ///< absent: must be given
};

/// What to evaluate: only what differs from the defaults.
struct WorkRequest {
  std::map<std::string, int64_t> dims = {};
  std::map<std::string, bool> flags = {};
  std::map<std::string, std::string> dtypes = {};  ///< by role ("a" for --a-dtype); "" is the common --dtype
  std::string math_dtype = {};                     ///< empty: the widest operand of the matrix work
  std::string accumulate = {};                     ///< empty: fp32 (int32 for integers, fp64 for fp64)
  double softmax_flops = 0;
};

/// How a table of kernels speaks of an operator (docs/use/lint.md).
struct TableWords {
  std::vector<std::string> names;  ///< words of a kernel's name; with a trailing *, the beginning of a word
  int64_t order = 0;               ///< the first operator whose word matches is meant: fusions before what they contain
  bool product = false;            ///< its shape may stand as [M, K] x [K, N]
  std::map<std::string, int64_t> dims = {};                          ///< instead of presets, which serve the tuner
  std::map<std::string, std::map<std::string, int64_t>> named = {};  ///< of kernels with this part of a name
  bool cache = false;                                                ///< each sequence reads a cache of its own
};

class WorkReader;

/// work/<op>.json, parsed once; evaluating is cheap and thread-safe.
class WorkFormula {
 public:
  /// Unknown op: Exit::kUsage with the nearest one. A fault in the file: its line.
  static Result<WorkFormula> load(const DataFiles& files, const std::string& op);
  static Result<WorkFormula> parse(std::string text, std::string file);  ///< the text of such a file
  static std::vector<std::string> names(const DataFiles& files);

  Result<OpWork> evaluate(const WorkRequest& request) const;

  const std::string& op() const { return op_; }
  const std::string& title() const { return title_; }
  const std::vector<WorkDim>& dims() const { return dims_; }
  const std::vector<WorkDim>& flags() const { return flags_; }
  bool uses_matrix_units() const { return !math_roles_.empty(); }
  const std::vector<std::string>& grows() const { return grows_; }  ///< dimensions that batch work
  const TableWords& tables() const { return tables_; }
  const std::vector<WorkDim>& dtypes() const { return dtypes_; }  ///< roles; a preset evaluates to a format's name

 private:
  struct Operand {
    std::string name, role;
    bool write = false;
    expr::Expr elements;
    std::optional<expr::Expr> when;
  };
  struct Kernel {
    std::string name;
    std::optional<expr::Expr> when;
    std::vector<Operand> operands;
    std::map<std::string, expr::Expr> amounts;  ///< mma_flops, vector_flops, ... by name
  };
  struct Form {
    std::string name;
    expr::Expr when;
    std::vector<Kernel> kernels;
    std::string lever;
    std::vector<std::string> cache;
  };
  friend class WorkReader;

  /// What is evaluated: everything, or FLOPs and DRAM bytes alone.
  enum class Part { kAll, kIntensity };

  Result<expr::Map> scope(const WorkRequest& request, int64_t largest, OpWork& out) const;
  Result<void> kernels(const Form& form, const expr::Map& scope, Part part, OpWork& out) const;
  Result<const Form*> choose(const expr::Map& scope) const;

  std::string op_, title_, file_;
  std::vector<WorkDim> dims_, flags_, dtypes_;
  std::vector<std::string> math_roles_;  ///< operands of the matrix work
  std::vector<std::string> grows_;       ///< dimensions that batch work, for the limit of the AI
  std::vector<std::pair<std::string, expr::Expr>> let_;
  std::vector<expr::Expr> requires_;
  std::vector<Form> forms_;
  TableWords tables_;
};

// ---- Chains of elementwise operations --------------------------------------------------------------

struct ElementwiseRequest {
  std::string expression;
  int64_t rows = 1;
  int64_t cols = 0;
  std::string dtype = "bf16";  ///< of all tensors
  bool unfused = false;        ///< each operation is a separate kernel that writes its result to memory
};

/// `x` is a tensor of rows x cols; `bias[n]` has one value per column, `w[m]` one per row; `alpha`, `beta`, `scale` are
/// scalars. Operators + - * /; functions: elementwise_functions(). Exit::kUsage with a caret for anything else.
Result<OpWork> elementwise_work(const ElementwiseRequest& request);

/// The function names with their FLOPs and special-function operations, for --help.
std::string elementwise_functions();

}  // namespace roofgen

// A chain of steps, "gemm > bias > gelu > residual > rmsnorm", and its partitions into kernels. A *part* is a run of
// steps in one kernel; a *partition* divides the whole chain into parts. Pure functions: legality, the inputs and
// outputs of each part, and its formula per element (docs/use/whatif.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/pointwise/formula.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

struct ChainStep {
  enum class Kind { kGemm, kPointwise, kRow };
  std::string label;  ///< unique in its chain: "bias", the second one "bias2"
  Kind kind = Kind::kPointwise;
  std::vector<pointwise::Definition> definitions;  ///< the last is the step's value; empty for a gemm
  std::vector<TensorArg> tensors;                  ///< inputs of the problem that it adds
  std::optional<size_t> adds;                      ///< `residual(gelu)`: adds the value of an earlier step
  DType dtype = DType::kBf16;                      ///< of its value in memory
  std::string row_scale;                           ///< of quant: the definition with the scale of each row
};

/// Steps [first, last).
struct Part {
  size_t first = 0, last = 0;
  size_t size() const { return last - first; }
  bool operator==(const Part&) const = default;
};

class Chain {
 public:
  /// `dtype`: of inputs, and of values written between kernels; `scale`: the factor of the step `scale`. Exit::kUsage
  /// with a caret at a step that is unknown, out of place, or has a wrong argument.
  static Result<Chain> parse(std::string_view text, DType dtype, std::vector<TensorArg> declared = {},
                             double scale = 1);

  const std::vector<ChainStep>& steps() const { return steps_; }
  size_t size() const { return steps_.size(); }
  Part whole() const { return {0, steps_.size()}; }
  DType dtype() const { return dtype_; }
  bool has_gemm() const { return steps_[0].kind == ChainStep::Kind::kGemm; }
  /// "gemm+bias+gelu".
  std::string name(Part part) const;

  /// The buffer of the value before step `step` (the chain's input for 0) and its dtype; "y" after the last step.
  std::string buffer_before(size_t step) const;
  DType dtype_before(size_t step) const { return step == 0 ? dtype_ : steps_[step - 1].dtype; }
  /// Values inside a part that a later part adds (`residual(name)`): the part writes them too.
  std::vector<size_t> kept(Part part) const;
  /// Earlier values that a part reads in addition to its source.
  std::vector<size_t> added(Part part) const;
  /// The outputs of a part: its value, kept values, scales of rows.
  std::vector<pointwise::Output> outputs(Part part) const;
  /// The formula of a part for each element of its source (of a gemm: of its accumulators).
  Result<pointwise::Formula> formula(Part part) const { return formula(part, outputs(part)); }
  Result<pointwise::Formula> formula(Part part, std::vector<pointwise::Output> outputs) const;
  const std::map<std::string, double>& scalars() const { return scalars_; }

 private:
  friend class ChainParser;
  std::vector<ChainStep> steps_;
  std::vector<TensorArg> declared_;
  std::map<std::string, double> scalars_;
  DType dtype_ = DType::kBf16;
};

/// A variant of `tune` that computes one part with values in memory of its own: split keys and their combination.
struct PartVariant {
  std::string name;         ///< "split16"
  double passed_bytes = 0;  ///< of these values
  double default_ctas = 0;  ///< of its longest kernel at the default schedules; 0: unknown
};

struct Partition {
  std::vector<Part> parts;
  std::string name;                         ///< the plan: "gemm+bias+gelu | residual+rmsnorm"
  std::string illegal;                      ///< why one of its parts cannot be one kernel; empty: it can be built
  std::optional<PartVariant> variant = {};  ///< of the only part
  bool cut(size_t edge) const;              ///< between steps `edge` and `edge + 1`
};

/// Why a part cannot be one kernel; empty: it can. `columns`: of every value; `widest_tile`: the largest number of
/// columns in a CTA of a gemm.
std::string illegal_because(const Chain& chain, Part part, int64_t columns, int64_t widest_tile);

/// All 2^(steps - 1) partitions, the fewest kernels first.
std::vector<Partition> partitions(const Chain& chain, int64_t columns, int64_t widest_tile);

/// `gemm+bias+gelu | residual+rmsnorm`; Exit::kUsage with a caret if it is not a partition of the chain.
Result<std::vector<Part>> parse_plan(const Chain& chain, std::string_view text);

inline constexpr size_t kMostSteps = 10;  ///< 512 partitions

}  // namespace roofgen

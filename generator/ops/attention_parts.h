// Attention cut into kernels: qk > scale > mask > softmax > pv, of which one kernel does a run of steps. Its variants
// are plans, lists of such parts; a part alone is a problem of its own, whose input is a value that the parts before it
// would leave in memory (docs/whatif.md).
#pragma once

#include "generator/generate.h"
#include "generator/ops/attention_inputs.h"
#include "generator/ops/chain.h"
#include "generator/ops/op.h"

namespace roofgen {

/// The steps of a problem: `mask` only where there is one. `scale` stands for all that is done to a score: --scale,
/// --softcap, --score.
std::vector<std::string> attention_steps(const Problem& problem);
/// "qk+scale".
std::string attention_part_name(const Problem& problem, Part part);
/// All ways to cut the steps, the fewest kernels first, each with the reason if it cannot be built.
std::vector<Partition> attention_partitions(const Problem& problem);
/// Bytes of a step's value that a kernel touches which writes or reads it: what may be seen, if it knows of a mask.
double attention_value_bytes(const Problem& problem, size_t step, Part kernel);

class AttentionParts final : public Op {
 public:
  /// A schedule's parameters, as Stage::points has them.
  using Point = std::vector<std::pair<std::string, ParamValue>>;

  /// `plan`: parts that follow one another, of the steps of `whole`, a completed problem of attention. `points`: only
  /// these schedules are tried; empty: all.
  AttentionParts(const Problem& whole, std::vector<Part> plan, std::vector<Point> points = {});

  /// The problem of the steps that this op covers.
  Problem problem_of(const Problem& whole) const;

  std::string name() const override { return "attention"; }
  Result<Problem> complete(Problem problem) const override;
  std::vector<Buffer> buffers(const Problem& problem) const override;
  expr::Map scope(const Problem& problem) const override;
  Problem reduced(const Problem& problem) const override;
  Extent extent(const Problem& problem) const override;
  Slice slice(const Problem& problem) const override;
  std::vector<InputPattern> exact_patterns(const Problem& problem) const override;
  Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const override;
  std::optional<RequiredWork> required(const Problem& problem) const override;
  void fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
            std::span<std::byte> out) const override;
  Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                             const std::string& stage, const Region& region, const ElementReader& read) const override;
  double weight(const Problem& problem, const Region& region) const override;
  bool by_pairs(const std::string& buffer) const override;

 private:
  Part covered() const { return {plan_.front().first, plan_.back().last}; }
  bool is_whole(Part part) const { return part.size() == steps_.size(); }
  bool has(Part part, std::string_view step) const;
  /// Are there keys that the kernel does not touch, because it masks or one before it did?
  bool sees_mask(Part part) const { return part.last > masks_at_; }
  attention::Value value_before(size_t step) const;
  Result<Stage> stage(const DataFiles& files, Part part) const;

  std::vector<std::string> steps_;
  size_t masks_at_ = 0;  ///< that step; steps_.size() without one
  std::vector<Part> plan_;
  std::vector<Point> points_;
};

}  // namespace roofgen

// Attention divided into kernels: each kernel computes a run of the steps qk > scale > mask > softmax > pv. Variants
// are plans, lists of such parts. A part alone is a separate problem; its input is the value that earlier parts would
// write (docs/use/whatif.md).
#pragma once

#include "generator/ops/attention_inputs.h"
#include "generator/ops/chain.h"
#include "generator/ops/op.h"
#include "generator/space/space.h"

namespace roofgen {

/// The steps of a problem: `mask` only if it has one. `scale` stands for --scale, --softcap and --score.
std::vector<std::string> attention_steps(const Problem& problem);
/// "qk+scale".
std::string attention_part_name(const Problem& problem, Part part);
/// All partitions of the steps, the fewest kernels first, each with a reason if it cannot be built.
std::vector<Partition> attention_partitions(const Problem& problem);
/// Bytes of a step's value that a kernel reads or writes: visible elements only, if the kernel knows the mask.
double attention_value_bytes(const Problem& problem, size_t step, Part kernel);

class AttentionParts final : public Op {
 public:
  /// `plan`: consecutive parts of the steps of `whole`, a completed problem of attention.
  AttentionParts(const Problem& whole, std::vector<Part> plan);

  /// The problem of the steps of this op.
  Problem problem_of(const Problem& whole) const;

  std::string name() const override { return "attention"; }
  Result<Problem> complete(Problem problem) const override;
  std::vector<Buffer> buffers(const Problem& problem) const override;
  expr::Map scope(const Problem& problem) const override;
  Problem reduced(const Problem& problem) const override;
  Extent extent(const Problem& problem) const override;
  int64_t least_rows(const Problem& problem, InputPattern pattern) const override;
  Slice slice(const Problem& problem) const override;
  std::vector<int64_t> sampled_heads(const Problem& problem) const override;
  std::vector<InputPattern> patterns(const Problem& problem) const override;
  Problem with_pattern(Problem reduced, InputPattern pattern) const override;
  Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const override;
  std::optional<RequiredWork> required(const Problem& problem) const override;
  void fill(const Problem& problem, InputPattern pattern, const std::string& buffer, uint64_t offset,
            std::span<std::byte> out) const override;
  Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                             const std::string& stage, const Region& region, const ElementReader& read) const override;
  double distinct_bytes(const Problem& problem, const Buffer& buffer) const override;
  double weight(const Problem& problem, const Region& region) const override;
  bool by_pairs(const std::string& buffer) const override;

 private:
  Part covered() const { return {plan_.front().first, plan_.back().last}; }
  bool is_whole(Part part) const { return part.size() == steps_.size(); }
  bool has(Part part, std::string_view step) const;
  /// Whether the kernel skips hidden keys, because it or an earlier one applies the mask.
  bool sees_mask(Part part) const { return part.last > masks_at_; }
  attention::Value value_before(size_t step) const;
  Result<Stage> stage(const DataFiles& files, Part part) const;

  std::vector<std::string> steps_;
  size_t masks_at_ = 0;  ///< index of the mask; steps_.size() without a mask
  std::vector<Part> plan_;
};

}  // namespace roofgen

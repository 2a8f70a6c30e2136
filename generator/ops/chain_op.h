// A chain of steps as an op: inputs, outputs, a reference, and partitions as variants. An op is made for one chain and
// is not in the table of ops.
#pragma once

#include <functional>
#include <memory>

#include "generator/ops/chain.h"
#include "generator/ops/op.h"
#include "generator/space/space.h"

namespace roofgen {

inline constexpr const char* kChain = "chain";  ///< the op, and the text of its problem with the steps

class ChainOp final : public Op {
 public:
  /// The whole problem: op "chain", texts "chain", dims M, N, K (without a gemm: rows, cols). Exit::kUsage for a
  /// missing or invalid size.
  static Result<Problem> complete_chain(const Chain& chain, Problem problem);

  /// `plan`: consecutive parts, a kernel each. If their steps are not the whole chain, the value before them is an
  /// input, and the last value an output.
  static Result<std::unique_ptr<ChainOp>> make(Chain chain, std::vector<Part> plan);

  /// The problem of this op's steps, from the problem of the whole chain.
  Problem problem_of(const Problem& whole) const;

  std::string name() const override { return kChain; }
  Result<Problem> complete(Problem problem) const override { return complete_chain(chain_, std::move(problem)); }
  std::vector<Buffer> buffers(const Problem& problem) const override;
  expr::Map scope(const Problem& problem) const override;
  Problem reduced(const Problem& problem) const override;
  Extent extent(const Problem& problem) const override;
  Slice slice(const Problem& problem) const override;
  std::vector<InputPattern> patterns(const Problem& problem) const override;
  Problem with_pattern(Problem reduced, InputPattern pattern) const override;
  int64_t least_rows(const Problem& problem, InputPattern pattern) const override;
  std::optional<RequiredWork> required(const Problem& problem) const override;
  std::function<void(uint64_t, std::span<std::byte>)> filler(const Problem& problem, InputPattern pattern,
                                                             const std::string& buffer) const override;
  Result<Comparison> compare(const Problem& problem, InputPattern pattern, const std::string& variant,
                             const std::string& stage, const Region& region, const ElementReader& read) const override;
  double weight(const Problem& problem, const Region& region) const override;
  std::vector<Thin> thinner(const Problem& problem) const override;
  InputPattern pattern_of_grid(const Problem& problem) const override;
  /// One for each kernel of a product (one_kernel_products), whose name follows the plan's.
  Result<std::vector<Variant>> variants(const DataFiles& files, const Problem& problem) const override;

 private:
  ChainOp() = default;
  Part covered() const { return {plan_.front().first, plan_.back().last}; }
  std::string plan_name() const;
  bool has_row_step(Part part) const;
  bool tiles_columns() const;
  Result<std::vector<Variant>> first_kernels(const DataFiles& files) const;

  Chain chain_;
  std::vector<Part> plan_;
  std::vector<std::pair<Part, pointwise::Formula>> formulas_;  ///< one per part
};

/// The variants of the op gemm that compute a product and its epilogue in one launch.
Result<std::vector<Variant>> one_kernel_products(const DataFiles& files);

/// Rows and columns of every value of a chain.
int64_t chain_rows(const Problem& problem);
int64_t chain_columns(const Problem& problem);
/// The first step as a problem of the op gemm: A row-major, B column-major, as in linear layers.
Result<Problem> chain_gemm(const Problem& problem);

}  // namespace roofgen

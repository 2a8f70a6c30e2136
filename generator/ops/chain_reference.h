// The values of a chain in double precision, with the errors of a correct implementation: values stored between two
// kernels are rounded to the format in memory.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "generator/ops/chain.h"
#include "generator/ops/gemm_reference.h"
#include "generator/ops/op.h"
#include "generator/ops/rows_inputs.h"

namespace roofgen {

/// The contents of the value before step `first`, where it is an input.
rows::SourceContents chain_source(const Chain& chain, size_t first, const Problem& problem, InputPattern pattern);

class ChainReference {
 public:
  /// `plan`: consecutive parts; the value before the first is an input.
  ChainReference(const Chain& chain, const std::vector<Part>& plan, const Problem& problem, InputPattern pattern)
      : chain_(chain), plan_(plan), problem_(problem), pattern_(pattern) {}

  /// Compares all outputs of the kernel of `part` in a region.
  Result<Comparison> compare(Part part, const Region& region, const ElementReader& read) const;

 private:
  using Row = std::vector<pointwise::Estimate>;
  /// Consecutive steps that are evaluated together.
  struct Run {
    Part steps;
    std::optional<pointwise::Formula> formula;  ///< absent: a gemm, or the sum with an earlier value
  };
  /// The first step's products over a rectangle of the output.
  struct Accumulators {
    gemm::Rectangle where{};
    std::shared_ptr<const gemm::Products> products;
  };
  Extent extent() const;
  Result<std::vector<Run>> runs(size_t until) const;
  Accumulators accumulators(const Region& region, bool whole_rows) const;
  Row row_before(const std::vector<Run>& runs, const Accumulators& sums, size_t step, int64_t row, int64_t first,
                 int64_t count) const;
  Row source(const Accumulators& sums, int64_t row, int64_t first, int64_t count) const;
  bool cut_between(size_t step, size_t reader) const;
  Row as_read(Row row, size_t before, size_t reader) const;

  const Chain& chain_;
  const std::vector<Part>& plan_;
  const Problem& problem_;
  InputPattern pattern_;
};

}  // namespace roofgen

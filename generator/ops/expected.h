// What comparisons expect of elements, without a run: for programs that have no reference.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "generator/ops/op.h"
#include "generator/space/space.h"

namespace roofgen {

struct ExpectedElement {
  double value = 0, tolerance = 0;  ///< tolerance 0: equal
};
/// By buffer and element.
using ExpectedElements = std::map<std::string, std::map<uint64_t, ExpectedElement>>;

/// Whether an element is asked for, of those that a comparison reads together: [first, end).
using WantedElement = std::function<bool(const std::string& buffer, uint64_t at, uint64_t first, uint64_t end)>;

/// Adds what is expected of the outputs of a stage.
Result<void> add_expected(const Op& op, const Problem& problem, InputPattern pattern, const std::string& variant,
                          const std::string& stage, const std::vector<Region>& regions, const WantedElement& wanted,
                          ExpectedElements& out);

/// Whether outputs have rows of their own.
bool has_own_rows(const Op& op, const Problem& problem);

/// The outputs by which a kernel is compared, its own first; "" where regions name no output.
std::vector<std::string> compared_outputs(const Op& op, const Problem& problem, const Stage& stage);

/// All rows of an output.
std::vector<Region> all_rows(const Op& op, const Problem& problem, const std::string& output);

/// `rows` rows at the beginning, in the middle and at the end of the first and the last (batch, head) pair, and the
/// first rows of each group; of wide rows kSampledColumns columns at each of these three places.
inline constexpr unsigned kSampledColumns = 32;
std::vector<Region> sampled_regions(const Extent& extent, int64_t rows, const std::string& output = {});

}  // namespace roofgen

// Which CTAs of a launch cover which output elements, by its grid axes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "generator/ops/op.h"
#include "roofgen/pipeline.h"

namespace roofgen {

/// Elements that one CTA covers along "row" or "col": the smallest step of the axes of that name. 1 when there is none.
int64_t finest_step(const Launch& launch, std::string_view axis);

/// Numbers of the CTAs that touch any of the regions, ascending. Axes without a meaning here (splits of the sum) are
/// taken whole.
std::vector<uint64_t> select_ctas(const Launch& launch, const std::vector<Region>& regions);

/// CTAs whose tile begins inside the output: a rasterised grid may hold others, which leave at once.
uint64_t busy_ctas(const Launch& launch, const Extent& extent);

}  // namespace roofgen

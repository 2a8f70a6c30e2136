// Compares what kernels write before the scores: rotated and converted rows, and the cache after keys were appended.
// Private to this folder.
#pragma once

#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// The temporaries Q_plain, K_plain and V_plain, as far as a problem has them: the rows of a band, and the keys of its
/// K/V head: all of up to 4096, of more those at the positions of the band and a sample.
Result<void> compare_plain(const Shape& shape, InputPattern pattern, const Region& band, const ElementReader& read,
                           Comparison& out);

/// K and V after a kernel has appended the rows of a band: the new keys in their places, and old ones (all of up to
/// 4096, of more a sample) and rows past the end of the cache unchanged. Nothing for bands of other heads than the
/// first of a group.
Result<void> compare_cache(const Shape& shape, InputPattern pattern, const Region& band, const ElementReader& read,
                           Comparison& out);

}  // namespace roofgen::attention

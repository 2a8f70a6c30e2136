// Attention in double precision for a band of rows, together with what the tolerances need to know
// about each row. Results are kept, because every candidate of a search is compared with the same ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// Where P (and S) are rounded to the problem's dtype.
enum class Rounding { kFused, kUnfused };

/// Everything about one row but the row itself. p are exact probabilities, s exact scores (scaled),
/// g = (e^(u |s|) - 1) / u is what rounding s does to p in units of u, the unit roundoff.
struct RowFacts {
  double lse = 0;         ///< natural log of the sum of e^s; -inf for a row that may see no key
  double max = 0;         ///< largest score
  double ps_squared = 0;  ///< sum of (p g)^2
};

struct BandReference {
  int64_t rows = 0, d = 0;
  std::vector<double> o;  ///< [rows][d]
  /// [rows][d], in units of u^2: sum of (p v)^2 and, unfused, of (p g (v - o))^2 as well. Times the
  /// variance of one rounding this is the variance of an output's error.
  std::vector<double> variance;
  std::vector<RowFacts> facts;
};

/// O and what its tolerance needs, for a band; from a cache shared by all threads.
std::shared_ptr<const BandReference> reference_of(const Shape& shape, InputPattern pattern, Rounding rounding,
                                                  const Region& band);

/// The scores of a band, [rows][kv_pitch]; entries a row may not see are unspecified. Cached as well;
/// callers keep rows * kv_len below kScoreLimit by cutting the band.
inline constexpr int64_t kScoreLimit = int64_t{1} << 22;
std::shared_ptr<const std::vector<float>> scores_of(const Shape& shape, InputPattern pattern,
                                                    const Region& band);

}  // namespace roofgen::attention

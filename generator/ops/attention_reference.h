// Attention in double precision for a band of rows, together with what the tolerances need to know
// about each row. Results are kept, because every candidate of a search is compared with the same ones.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// Which values on the way from Q and K to O are rounded to the problem's dtype.
struct Rounding {
  bool products = false;       ///< Q K^T, before it is scaled
  bool scores = false;         ///< scaled, and changed by a score expression
  bool probabilities = false;  ///< p of the whole row; else p relative to the row's running maximum
  static const Rounding kFused, kUnfused;
};
inline constexpr Rounding Rounding::kFused{}, Rounding::kUnfused{false, true, true};

/// How a value comes about: what it is computed from, and where that is rounded on the way. A kernel that is tried
/// alone is given values of Inputs::given.
struct Path {
  Value from = Value::kInputs;
  Rounding rounding;
  Path(Rounding r) : rounding(r) {}
  Path(Value value) : from(value) {}
};

/// Everything about one row but the row itself. p are exact probabilities, s exact scores (scaled),
/// g = (e^(u |s|) - 1) / u is what rounding s does to p in units of u, the unit roundoff. Errors that a score
/// expression makes, of standard deviation sigma, are added to g: independent ones, in the same units.
struct RowFacts {
  double lse = 0;         ///< natural log of the sum of e^s; -inf for a row that may see no key
  double max = 0;         ///< largest score
  double ps_squared = 0;  ///< sum of (p g)^2
  double p_sigma = 0;     ///< sum of p sigma: the largest error of log of the sum, should all err alike
  int64_t keys = 0;       ///< how many it may see
};

struct BandReference {
  int64_t rows = 0, d = 0;
  std::vector<double> o;  ///< [rows][d]
  /// [rows][d], in units of u^2: sum of (p v)^2 and, where scores are rounded, of (p g (v - o))^2 as well. Times the
  /// variance of one rounding this is the variance of an output's error.
  std::vector<double> variance;
  std::vector<RowFacts> facts;
};

/// Roundings of a score that change it in proportion. What a score expression makes of rounded products is in sigma.
int score_roundings(const Shape& shape, const Path& path);

/// O and what its tolerance needs, for a band; from a cache shared by all threads.
std::shared_ptr<const BandReference> reference_of(const Shape& shape, InputPattern pattern, const Path& path,
                                                  const Region& band);

/// The scores of a band, [rows][kv_pitch], as products, scores, or as the mask left them: then -inf where it hides a
/// key, and unspecified beyond Shape::allowed. `sigma` is empty unless a score expression is evaluated on the way.
/// Cached as well; callers keep rows * kv_len below kScoreLimit by cutting the band.
struct BandScores {
  std::vector<float> s, sigma;
};
inline constexpr int64_t kScoreLimit = int64_t{1} << 22;
std::shared_ptr<const BandScores> scores_of(const Shape& shape, InputPattern pattern, const Path& path, Value value,
                                            const Region& band);

}  // namespace roofgen::attention

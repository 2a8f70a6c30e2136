// Attention in double precision for a band of rows, with the data of each row that tolerances need. Results are cached,
// because all candidates of a search are compared with the same bands.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_shape.h"
#include "generator/ops/op.h"

namespace roofgen::attention {

/// The intermediate values that are rounded to the problem's dtype.
struct Rounding {
  bool products = false;       ///< Q K^T, before it is scaled
  bool scores = false;         ///< scaled, after the score expression
  bool probabilities = false;  ///< p of the whole row; else p relative to the row's running maximum
  static const Rounding kFused, kUnfused;
  bool operator==(const Rounding&) const = default;
};
inline constexpr Rounding Rounding::kFused{}, Rounding::kUnfused{false, true, true};

/// The computation of a value: its input and the roundings on the way. A kernel that is verified alone gets the values
/// of Inputs::given.
struct Path {
  Value from = Value::kInputs;
  Rounding rounding;
  Path(Rounding r) : rounding(r) {}
  Path(Value value) : from(value) {}
  bool operator==(const Path&) const = default;
};

/// A score with a larger error leaves no accuracy of probabilities: RowFacts do not count how much larger.
inline constexpr double kMaxExponent = 50;
/// Allowed standard deviations. The variance of one rounding, u^2 / 3, is that of a uniform error at the lower end of a
/// binade, 1.36^2 times the average. With many keys per row 5 of these are 6.8 true standard deviations; with up to
/// eight keys the error is at most sqrt(3 * 8) < 5.
inline constexpr double kSigmas = 5;

/// Data of one row without its elements. p: exact probabilities; s: exact scaled scores; g = (e^(u |s|) - 1) / u: the
/// effect on p of rounding s, in units of the unit roundoff u. Errors of doubtful operands and of a score expression,
/// of standard deviation sigma, add to g as independent errors in the same units.
struct RowFacts {
  double lse = 0;         ///< natural log of the sum of e^s; -inf for a row without visible keys
  double max = 0;         ///< largest score
  double ps_squared = 0;  ///< sum of (p g)^2
  /// The same with one term (sum p g)^2 for all keys whose scores round to one number from one side, as a softcap makes
  /// them: their errors have one sign.
  double ties_squared = 0;
  double roundings = 0;  ///< sum of p g without sigma: the largest relative error of the sum by rounded scores, in u
  double p_sigma = 0;    ///< sum of p sigma: the largest error of the log of the sum, if all errors have the same sign
  double largest_error = 0;  ///< of a visible score: all of its roundings and kSigmas deviations
  bool decided = false;      ///< one key has all weight, whatever the errors of the scores
  int64_t keys = 0;          ///< visible keys
};

struct BandReference {
  int64_t rows = 0, d = 0;
  std::vector<double> o;  ///< [rows][d]
  /// [rows][d], in units of u^2: sum of (p v)^2 and, if scores are rounded, of (p g (v - o))^2. Multiplied by the
  /// variance of one rounding it is the variance of an output's error, doubtful values of a cache in fp8 included.
  std::vector<double> variance;
  std::vector<RowFacts> facts;
};

/// The number of relative roundings of a score. Errors of rounded products that pass a score expression are in sigma.
int score_roundings(const Numbers& shape, const Path& path);

/// O of a band with the data for its tolerance; remembered for all threads.
std::shared_ptr<const BandReference> reference_of(const Numbers& shape, InputPattern pattern, const Path& path,
                                                  const Region& band);

/// Products, scores or masked scores of a band, [rows][kv_pitch]. Masked scores are -inf for hidden keys, and
/// unspecified beyond Numbers::allowed. `sigma` is empty without a score expression and doubtful operands. Cached;
/// callers keep rows * kv_len below kScoreLimit by dividing the band.
struct BandScores {
  std::vector<float> s, sigma;
};
inline constexpr int64_t kScoreLimit = int64_t{1} << 22;
std::shared_ptr<const BandScores> scores_of(const Numbers& shape, InputPattern pattern, const Path& path, Value value,
                                            const Region& band);

}  // namespace roofgen::attention

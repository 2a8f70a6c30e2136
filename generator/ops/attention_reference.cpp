#include "generator/ops/attention_reference.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "base/memo.h"
#include "generator/ops/attention_inputs.h"
#include "generator/ops/float16.h"
#include "generator/ops/small_gemm.h"

namespace roofgen::attention {
namespace {

constexpr int64_t kKeyBlock = 256;  // K and V of one block stay in L2 as doubles

/// All that references are made from.
struct Asked {
  Numbers numbers;
  InputPattern pattern;
  Path path;
  Value value;
  Region band;
  bool operator==(const Asked&) const = default;
};

int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

/// Scores of a band of rows with a block of keys, [rows padded to 4][kKeyBlock], after the requested steps: scaling,
/// score expression, -inf for masked keys.
struct ScoreBlock {
  int64_t first = 0, keys = 0;
  std::vector<double> s, sigma;  ///< sigma: empty without a score expression and product errors
};

/// The steps between a path's input and a value.
bool scales(const Path& path, Value value) { return path.from < Value::kScores && value >= Value::kScores; }
bool masks(const Path& path, Value value) { return path.from < Value::kMasked && value >= Value::kMasked; }

/// The error of an fp32 exponent relative to the larger of the score and the row's maximum: one rounding of each
/// product with log2(e), and one of the difference.
constexpr double kExponentError = 0x1p-23;

/// Applies score expression and mask to a block. Hidden scores become -inf.
void modify(const Numbers& shape, InputPattern pattern, const Path& path, Value value, const Region& band,
            ScoreBlock& block) {
  const bool score = shape.has_score() && scales(path, value), mask = shape.has_mask() && masks(path, value);
  if (!score && !mask) return;
  const double d = static_cast<double>(shape.d),
               accumulated = path.from == Value::kInputs ? shape.sum_error(d) * shape.scale * std::sqrt(d) : 0;
  const double rounded = path.rounding.products ? unit_roundoff(format_of(shape.dtype)) / std::sqrt(3.0) : 0x1p-24;
  const bool product_errors = shape.has_product_errors() && path.from == Value::kInputs;
  std::vector<char> visible;
  for (int64_t r = 0; r < band.row_end - band.row_begin; ++r) {
    const int64_t row = band.row_begin + r,
                  keys = std::min(
                      block.keys,
                      (value < Value::kMasked ? shape.keys(band.batch) : shape.allowed(band.batch, row)) - block.first);
    if (keys <= 0) continue;
    const std::span s(&block.s[r * kKeyBlock], static_cast<size_t>(keys));
    if (score) {
      const std::span sigma(&block.sigma[r * kKeyBlock], static_cast<size_t>(keys));
      for (size_t j = 0; j < s.size(); ++j) {
        const double own = std::hypot(accumulated, rounded * s[j]);
        sigma[j] = product_errors ? std::hypot(sigma[j], own) : own;
      }
      shape.modifiers->score(pattern, band.batch, band.head, shape.position(band.batch, row), block.first, s, sigma);
      for (size_t j = 0; j < s.size(); ++j)
        sigma[j] = std::isfinite(s[j]) ? std::hypot(sigma[j], kExponentError * std::fabs(s[j])) : 0;
    }
    if (!mask) continue;
    visible.assign(static_cast<size_t>(keys), 1);
    shape.mask(pattern, band.batch, band.head, row, block.first, visible);
    for (size_t j = 0; j < s.size(); ++j)
      if (!visible[j]) s[j] = -std::numeric_limits<double>::infinity();
  }
}

/// The deviations of scores. With doubtful operands that of q k is sqrt(k^2 var q + q^2 var k), and few columns have an
/// error; a sum in e4m3 adds a share of the sum of q^2 k^2 (Numbers::cut_off). Sums of one-hot scores are exact.
class ProductErrors {
 public:
  ProductErrors(const Numbers& shape, const Inputs& inputs, const Region& band, InputPattern pattern)
      : d_(shape.d),
        cut_off_(pattern == InputPattern::kOneHot ? 0 : shape.cut_off(static_cast<double>(shape.d))),
        padded_(round_up(band.row_end - band.row_begin, kRowBlock)),
        q_(padded_ * 2 * d_, 0.0),
        k_(2 * d_ * kKeyBlock),
        squares_(padded_ * kKeyBlock) {
    std::vector<double> row(d_), variance(d_);
    for (int64_t r = 0; r < band.row_end - band.row_begin; ++r) {
      inputs.operand(Tensor::kQ, band.batch, band.head, band.row_begin + r, row.data(), variance.data());
      for (int64_t c = 0; c < d_; ++c) {
        q_[r * 2 * d_ + c] = variance[c];
        q_[r * 2 * d_ + d_ + c] = row[c] * row[c];
      }
    }
  }
  void clear() {
    std::fill(k_.begin(), k_.end(), 0.0);
    keys_exact_ = true;
  }
  void add_key(int64_t j, const double* k, const double* variance) {
    for (int64_t c = 0; c < d_; ++c) {
      k_[c * kKeyBlock + j] = k[c] * k[c];
      k_[(d_ + c) * kKeyBlock + j] = variance[c] + cut_off_ * k[c] * k[c];
      keys_exact_ &= k_[(d_ + c) * kKeyBlock + j] == 0;
    }
  }
  void deviations(double scale, int64_t keys, std::vector<double>& sigma) {
    std::fill(squares_.begin(), squares_.end(), 0.0);
    for (int64_t r = 0; r < padded_; r += kRowBlock)
      gemm4(&q_[r * 2 * d_], 2 * d_, k_.data(), kKeyBlock, &squares_[r * kKeyBlock], kKeyBlock, round_up(keys, 8),
            keys_exact_ ? d_ : 2 * d_);
    for (size_t i = 0; i < squares_.size(); ++i) sigma[i] = scale * std::sqrt(squares_[i]);
  }

 private:
  const int64_t d_;
  const double cut_off_;
  const int64_t padded_;
  std::vector<double> q_, k_, squares_;  // [row][var q, q^2]; [k^2, var k][key]
  bool keys_exact_ = true;
};

/// Calls use(block) for each block of keys with a visible key; before the mask step, for all keys.
template <class Use>
void for_each_score_block(const Numbers& shape, const Inputs& inputs, InputPattern pattern, const Path& path,
                          Value value, const Region& band, const Use& use) {
  const int64_t rows = band.row_end - band.row_begin, padded = round_up(rows, kRowBlock), d = shape.d;
  std::vector<double> q(padded * d, 0.0), k(d * kKeyBlock), row(d);
  ScoreBlock block;
  block.s.resize(padded * kKeyBlock);
  std::optional<ProductErrors> errors;
  if (shape.has_product_errors() && path.from == Value::kInputs) errors.emplace(shape, inputs, band, pattern);
  if (errors || (shape.has_score() && scales(path, value))) block.sigma.resize(block.s.size());
  std::vector<double>& s = block.s;
  std::vector<double> variance(errors ? d : 0);
  for (int64_t r = 0; r < rows; ++r)
    inputs.operand(Tensor::kQ, band.batch, band.head, band.row_begin + r, &q[r * d], nullptr);
  const bool dense = value < Value::kMasked;
  const int64_t end = dense ? shape.keys(band.batch) : shape.allowed(band.batch, band.row_end - 1),
                kv_head = band.head / shape.group();
  for (int64_t first = 0; first < end; first += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, end - first);
    if (!dense && shape.has_mask() &&
        !shape.modifiers->may_see(pattern, band.batch, band.head, shape.position(band.batch, band.row_begin),
                                  shape.position(band.batch, band.row_end), first, keys))
      continue;
    std::fill(s.begin(), s.end(), 0.0);
    if (path.from == Value::kInputs) {
      std::fill(k.begin(), k.end(), 0.0);
      if (errors) errors->clear();
      for (int64_t j = 0; j < keys; ++j) {
        inputs.operand(Tensor::kK, band.batch, kv_head, first + j, row.data(), errors ? variance.data() : nullptr);
        if (errors) errors->add_key(j, row.data(), variance.data());
        for (int64_t c = 0; c < d; ++c) k[c * kKeyBlock + j] = row[c];
      }
      for (int64_t r = 0; r < padded; r += kRowBlock)
        gemm4(&q[r * d], d, k.data(), kKeyBlock, &s[r * kKeyBlock], kKeyBlock, round_up(keys, 8), d);
    } else {
      for (int64_t r = 0; r < rows; ++r)
        inputs.given(path.from, band.batch, band.head, band.row_begin + r, first,
                     std::span(&s[r * kKeyBlock], static_cast<size_t>(keys)));
    }
    // Scaled after the sum: sums of structured inputs are exact in double, and a score of zero stays zero.
    if (scales(path, value))
      for (double& score : s) score *= shape.scale;
    if (errors) errors->deviations(scales(path, value) ? shape.scale : 1, keys, block.sigma);
    block.first = first;
    block.keys = keys;
    if (shape.modifiers) modify(shape, pattern, path, value, band, block);
    use(block);
  }
}

/// (e^(u x) - 1) / u for x >= 0. The series has double precision in its range.
double inflated(double x, double u) {
  const double y = u * x;
  return y < 0.03 ? x * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5 * (1 + y / 6 * (1 + y / 7))))))
                  : std::expm1(y) / u;
}

double square_of(double x) { return x * x; }

/// The first key of a row, and how near another one may come.
class Leader {
 public:
  void add(double score, double error) {
    if (score > score_) {
      second_ = std::max(second_, score_ + error_);
      score_ = score, error_ = error;
    } else {
      second_ = std::max(second_, score + error);
    }
  }
  bool is_decided() const { return score_ - error_ - second_ > kCertain; }

 private:
  /// 2^24 keys that are so much lower, together, are below half an ulp of fp32.
  static constexpr double kCertain = 40;
  double score_ = -std::numeric_limits<double>::infinity(), error_ = 0, second_ = score_;
};

/// Running sums of a band relative to each row's largest score so far. Arrays: [rows padded to 4][d].
class Accumulator {
 public:
  Accumulator(const Numbers& shape, InputPattern pattern, const Path& path, const Region& band)
      : shape_(shape),
        inputs_(shape, pattern),
        roundings_(score_roundings(shape, path)),
        spreads_(roundings_ > 0 || shape.has_score() || shape.has_product_errors()),
        finished_(path.from == Value::kProbabilities),
        band_(band),
        rows_(band.row_end - band.row_begin),
        padded_(round_up(rows_, kRowBlock)),
        u_(unit_roundoff(shape.p_format())),
        v_(kKeyBlock * shape.d),
        v_squared_(v_.size()),
        v_error_(shape.has_product_errors() ? shape.d : 0),
        p_(padded_ * kKeyBlock),
        weight_(p_.size()),
        spread_(p_.size()),
        o_(padded_ * shape.d),
        variance_(o_.size()),
        cross_(o_.size()),
        sum_(rows_),
        leaders_(static_cast<size_t>(rows_)),
        ties_(roundings_ > 0 && shape.has_score() ? rows_ : 0),
        facts_(rows_) {
    for (RowFacts& f : facts_) f.max = -std::numeric_limits<double>::infinity();
  }

  const Inputs& inputs() const { return inputs_; }

  void add(const ScoreBlock& block) {
    const int64_t d = shape_.d, first = block.first, keys = block.keys;
    for (int64_t j = 0; j < keys; ++j) {
      const bool doubtful = !v_error_.empty();
      inputs_.operand(Tensor::kV, band_.batch, band_.head / shape_.group(), first + j, &v_[j * d],
                      doubtful ? v_error_.data() : nullptr);
      // The error of a value, in units of one rounding's variance, u^2 / 3.
      for (int64_t c = 0; c < d; ++c)
        v_squared_[j * d + c] = square_of(v_[j * d + c]) + (doubtful ? 3 * v_error_[c] / square_of(u_) : 0);
    }
    for (auto* a : {&p_, &weight_, &spread_}) std::fill(a->begin(), a->end(), 0.0);
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t seen = std::min(keys, shape_.allowed(band_.batch, band_.row_begin + r) - first);
      if (seen > 0)
        add_row(r, &block.s[r * kKeyBlock], block.sigma.empty() ? nullptr : &block.sigma[r * kKeyBlock], seen);
    }
    for (int64_t r = 0; r < padded_; r += kRowBlock) {
      gemm4(&p_[r * kKeyBlock], kKeyBlock, v_.data(), d, &o_[r * d], d, d, keys);
      gemm4(&weight_[r * kKeyBlock], kKeyBlock, v_squared_.data(), d, &variance_[r * d], d, d, keys);
      if (spreads_) gemm4(&spread_[r * kKeyBlock], kKeyBlock, v_.data(), d, &cross_[r * d], d, d, keys);
    }
  }

  BandReference finish() {
    const int64_t d = shape_.d;
    for (int64_t r = 0; r < rows_; ++r) {
      RowFacts& f = facts_[r];
      f.lse = sum_[r] == 0 ? f.max : f.max + std::log(sum_[r]);
      if (sum_[r] == 0) continue;
      const double square = sum_[r] * sum_[r];
      f.decided = leaders_[static_cast<size_t>(r)].is_decided();
      f.p_sigma /= sum_[r];
      f.ps_squared /= square;
      f.roundings /= sum_[r];
      f.ties_squared = f.ps_squared;
      if (!ties_.empty()) {
        f.ties_squared = 0;
        for (const auto& [score, error] : ties_[r]) f.ties_squared += square_of(error / sum_[r]);
      }
      for (int64_t i = r * d; i < (r + 1) * d; ++i) {
        o_[i] /= sum_[r];
        // sum b (v - o)^2 = sum b v^2 - 2 o sum b v + o^2 sum b; cancellation may leave it below zero.
        variance_[i] /= square;
        // Its terms cancel, however large the error of the one score.
        if (f.decided)
          variance_[i] = o_[i] * o_[i];
        else if (spreads_)
          variance_[i] = std::max(0.0, variance_[i] - 2 * o_[i] * cross_[i] / square + o_[i] * o_[i] * f.ps_squared);
      }
    }
    o_.resize(rows_ * d);
    variance_.resize(rows_ * d);
    return {rows_, d, std::move(o_), std::move(variance_), std::move(facts_)};
  }

 private:
  /// `sigma`: nullptr without a score expression and product errors.
  void add_row(int64_t r, const double* s, const double* sigma, int64_t seen) {
    RowFacts& f = facts_[r];
    if (finished_) {
      // The input is probabilities: one product, without earlier errors.
      std::copy_n(s, seen, &p_[r * kKeyBlock]);
      f.keys += std::count_if(s, s + seen, [](double p) { return p != 0; });
      f.max = 0;
      sum_[r] = 1;
      return;
    }
    if (const double next = std::max(f.max, *std::max_element(s, s + seen)); next > f.max) {
      const double factor = std::exp(f.max - next), square = factor * factor;
      f.max = next;
      sum_[r] *= factor;
      f.p_sigma *= factor;
      f.ps_squared *= square;
      f.roundings *= factor;
      if (!ties_.empty())
        for (auto& [score, error] : ties_[r]) error *= factor;
      for (int64_t i = r * shape_.d; i < (r + 1) * shape_.d; ++i) {
        o_[i] *= factor;
        variance_[i] *= square;
        cross_[i] *= square;
      }
    }
    for (int64_t j = 0; j < seen; ++j) {
      if (s[j] == -std::numeric_limits<double>::infinity()) continue;
      const double p = std::exp(s[j] - f.max);
      double g_squared = 0, largest_error = roundings_ * u_ * std::fabs(s[j]);
      if (roundings_ > 0) {
        const double g = inflated(std::min(std::fabs(s[j]), kMaxExponent / u_), u_);
        g_squared = roundings_ * square_of(p * g);
        f.roundings += roundings_ * p * g;
      }
      if (sigma) {
        const double error = std::max(sigma[j], std::isfinite(f.max) ? kExponentError * std::fabs(f.max) : 0);
        // In units of one rounding's standard deviation, u / sqrt 3.
        g_squared += 3 * square_of(p * std::expm1(std::min(error, kMaxExponent)) / u_);
        f.p_sigma += p * error;
        largest_error += kSigmas * error;
      }
      f.largest_error = std::max(f.largest_error, largest_error);
      leaders_[static_cast<size_t>(r)].add(s[j], largest_error);
      const int64_t i = r * kKeyBlock + j;
      p_[i] = p;
      spread_[i] = g_squared;
      weight_[i] = p * p + g_squared;
      sum_[r] += p;
      f.ps_squared += g_squared;
      if (!ties_.empty() && std::isfinite(s[j])) {
        const double rounded = round_to(s[j], format_of(shape_.dtype));
        ties_[r][{rounded, rounded > s[j]}] += std::sqrt(g_squared);
      }
      ++f.keys;
    }
  }

  const Numbers& shape_;
  const Inputs inputs_;
  const int roundings_;
  const bool spreads_, finished_;  // spreads_: p has errors before its rounding
  const Region band_;
  const int64_t rows_, padded_;
  const double u_;
  std::vector<double> v_, v_squared_;         // one block of keys
  std::vector<double> v_error_;               // variances of one row; empty: none
  std::vector<double> p_, weight_, spread_;   // p, the weights of v^2, (p g)^2
  std::vector<double> o_, variance_, cross_;  // cross: sum of (p g)^2 v
  std::vector<double> sum_;
  std::vector<Leader> leaders_;  // by row
  /// By row, by rounded score and direction of the rounding: sum of p g. Empty: no score expression.
  std::vector<std::map<std::pair<double, bool>, double>> ties_;
  std::vector<RowFacts> facts_;
};

}  // namespace

int score_roundings(const Numbers& shape, const Path& path) {
  return path.rounding.scores + (path.rounding.products && !shape.has_score());
}

std::shared_ptr<const BandReference> reference_of(const Numbers& shape, InputPattern pattern, const Path& path,
                                                  const Region& band) {
  static Memo<Asked, BandReference> memo(size_t{64} << 20, [](const BandReference& r) {
    return (r.o.size() + r.variance.size()) * sizeof(double) + r.facts.size() * sizeof(RowFacts);
  });
  return memo.get({shape, pattern, path, Value::kOutput, band}, [&] {
    Accumulator sums(shape, pattern, path, band);
    for_each_score_block(shape, sums.inputs(), pattern, path, Value::kMasked, band,
                         [&](const ScoreBlock& block) { sums.add(block); });
    return std::make_shared<const BandReference>(sums.finish());
  });
}

std::shared_ptr<const BandScores> scores_of(const Numbers& shape, InputPattern pattern, const Path& path, Value value,
                                            const Region& band) {
  static Memo<Asked, BandScores> memo(
      size_t{160} << 20, [](const BandScores& b) { return (b.s.size() + b.sigma.size()) * sizeof(float); });
  return memo.get({shape, pattern, path, value, band}, [&] {
    const Inputs inputs(shape, pattern);
    const int64_t rows = band.row_end - band.row_begin, pitch = shape.kv_pitch();
    BandScores out;
    out.s.assign(rows * pitch, shape.has_mask() ? -std::numeric_limits<float>::infinity() : 0.0f);
    for_each_score_block(shape, inputs, pattern, path, value, band, [&](const ScoreBlock& block) {
      if (!block.sigma.empty()) out.sigma.resize(out.s.size());
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < block.keys; ++j) {
          const int64_t to = r * pitch + block.first + j, from = r * kKeyBlock + j;
          out.s[to] = static_cast<float>(block.s[from]);
          if (!block.sigma.empty()) out.sigma[to] = static_cast<float>(block.sigma[from]);
        }
    });
    return std::make_shared<const BandScores>(std::move(out));
  });
}

}  // namespace roofgen::attention

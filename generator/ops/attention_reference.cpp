#include "generator/ops/attention_reference.h"

#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <tuple>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/float16.h"
#include "generator/ops/small_gemm.h"

namespace roofgen::attention {
namespace {

constexpr int64_t kKeyBlock = 256;  // K and V of one block stay in L2 as doubles
constexpr int64_t kRowBlock = 4;    // gemm4

/// The most recently used results, bounded by bytes. The heads and the batch of a problem are no part
/// of the key beyond the pair that is meant: inputs do not depend on them.
template <class T>
class Cache {
 public:
  using Key = std::tuple<int, int, int64_t, int64_t, int64_t, bool, double, int, int64_t, int64_t, int64_t,
                         int64_t, int64_t>;
  explicit Cache(size_t max_bytes) : max_bytes_(max_bytes) {}

  static Key key(const Shape& s, InputPattern pattern, Rounding rounding, const Region& b) {
    return {static_cast<int>(pattern),
            static_cast<int>(rounding),
            s.q_len,
            s.kv_len,
            s.d,
            s.causal,
            s.scale,
            static_cast<int>(s.dtype),
            b.batch,
            b.head,
            b.head / s.group(),
            b.row_begin,
            b.row_end};
  }

  /// Two threads that miss together both compute; the second result is dropped.
  template <class Make, class Bytes>
  std::shared_ptr<const T> get(const Key& key, const Make& make, const Bytes& bytes) {
    {
      std::lock_guard lock(mutex_);
      for (size_t i = 0; i < entries_.size(); ++i)
        if (entries_[i].key == key) {
          Entry hit = std::move(entries_[i]);
          entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
          entries_.push_front(hit);
          return hit.value;
        }
    }
    auto value = std::make_shared<const T>(make());
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
      if (entry.key == key) return entry.value;
    entries_.push_front({key, value, bytes(*value)});
    bytes_ += entries_.front().bytes;
    while (bytes_ > max_bytes_ && entries_.size() > 1) {
      bytes_ -= entries_.back().bytes;
      entries_.pop_back();
    }
    return value;
  }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const T> value;
    size_t bytes;
  };
  std::mutex mutex_;
  std::deque<Entry> entries_;
  size_t max_bytes_, bytes_ = 0;
};

int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

/// Calls use(first_key, keys, scores) for each block of keys some row of the band may see; scores are
/// [rows padded to 4][kKeyBlock], scaled.
template <class Use>
void for_each_score_block(const Shape& shape, const Inputs& inputs, const Region& band, const Use& use) {
  const int64_t rows = band.row_end - band.row_begin, padded = round_up(rows, kRowBlock), d = shape.d;
  std::vector<double> q(padded * d, 0.0), k(d * kKeyBlock), row(d), s(padded * kKeyBlock);
  for (int64_t r = 0; r < rows; ++r)
    inputs.row(Tensor::kQ, band.batch, band.head, band.row_begin + r, &q[r * d]);
  const int64_t end = shape.allowed(band.row_end - 1), kv_head = band.head / shape.group();
  for (int64_t first = 0; first < end; first += kKeyBlock) {
    const int64_t keys = std::min(kKeyBlock, end - first);
    std::fill(k.begin(), k.end(), 0.0);
    for (int64_t j = 0; j < keys; ++j) {
      inputs.row(Tensor::kK, band.batch, kv_head, first + j, row.data());
      for (int64_t c = 0; c < d; ++c) k[c * kKeyBlock + j] = row[c];
    }
    std::fill(s.begin(), s.end(), 0.0);
    for (int64_t r = 0; r < padded; r += kRowBlock)
      gemm4(&q[r * d], d, k.data(), kKeyBlock, &s[r * kKeyBlock], kKeyBlock, round_up(keys, 8), d);
    // Scaled after the sum: sums of structured inputs are exact in double, so that a score of zero is zero.
    for (double& score : s) score *= shape.scale;
    use(first, keys, s);
  }
}

/// (e^(u x) - 1) / u for x >= 0; the series is exact to double precision where it is used.
double inflated(double x, double u) {
  const double y = u * x;
  return y < 0.03 ? x * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5 * (1 + y / 6 * (1 + y / 7))))))
                  : std::expm1(y) / u;
}

/// Running sums of a band, relative to each row's largest score so far. Arrays are [rows padded to 4][d].
class Accumulator {
 public:
  Accumulator(const Shape& shape, InputPattern pattern, Rounding rounding, const Region& band)
      : shape_(shape),
        inputs_(shape, pattern),
        unfused_(rounding == Rounding::kUnfused),
        band_(band),
        rows_(band.row_end - band.row_begin),
        padded_(round_up(rows_, kRowBlock)),
        u_(unit_roundoff(format_of(shape.dtype))),
        v_(kKeyBlock * shape.d),
        v_squared_(v_.size()),
        p_(padded_ * kKeyBlock),
        weight_(p_.size()),
        spread_(p_.size()),
        o_(padded_ * shape.d),
        variance_(o_.size()),
        cross_(o_.size()),
        sum_(rows_),
        facts_(rows_) {
    for (RowFacts& f : facts_) f.max = -std::numeric_limits<double>::infinity();
  }

  const Inputs& inputs() const { return inputs_; }

  void add(int64_t first, int64_t keys, const std::vector<double>& s) {
    const int64_t d = shape_.d;
    for (int64_t j = 0; j < keys; ++j)
      inputs_.row(Tensor::kV, band_.batch, band_.head / shape_.group(), first + j, &v_[j * d]);
    for (int64_t i = 0; i < keys * d; ++i) v_squared_[i] = v_[i] * v_[i];
    for (auto* a : {&p_, &weight_, &spread_}) std::fill(a->begin(), a->end(), 0.0);
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t seen = std::min(keys, shape_.allowed(band_.row_begin + r) - first);
      if (seen > 0) add_row(r, &s[r * kKeyBlock], seen);
    }
    for (int64_t r = 0; r < padded_; r += kRowBlock) {
      gemm4(&p_[r * kKeyBlock], kKeyBlock, v_.data(), d, &o_[r * d], d, d, keys);
      gemm4(&weight_[r * kKeyBlock], kKeyBlock, v_squared_.data(), d, &variance_[r * d], d, d, keys);
      if (unfused_) gemm4(&spread_[r * kKeyBlock], kKeyBlock, v_.data(), d, &cross_[r * d], d, d, keys);
    }
  }

  BandReference finish() {
    const int64_t d = shape_.d;
    for (int64_t r = 0; r < rows_; ++r) {
      RowFacts& f = facts_[r];
      f.lse = sum_[r] > 0 ? f.max + std::log(sum_[r]) : f.max;
      if (sum_[r] == 0) continue;
      const double square = sum_[r] * sum_[r];
      f.ps_squared /= square;
      for (int64_t i = r * d; i < (r + 1) * d; ++i) {
        o_[i] /= sum_[r];
        // sum b (v - o)^2 = sum b v^2 - 2 o sum b v + o^2 sum b; cancellation may leave it below zero.
        variance_[i] /= square;
        if (unfused_)
          variance_[i] =
              std::max(0.0, variance_[i] - 2 * o_[i] * cross_[i] / square + o_[i] * o_[i] * f.ps_squared);
      }
    }
    o_.resize(rows_ * d);
    variance_.resize(rows_ * d);
    return {rows_, d, std::move(o_), std::move(variance_), std::move(facts_)};
  }

 private:
  void add_row(int64_t r, const double* s, int64_t seen) {
    RowFacts& f = facts_[r];
    if (const double next = std::max(f.max, *std::max_element(s, s + seen)); next > f.max) {
      const double factor = std::exp(f.max - next), square = factor * factor;
      f.max = next;
      sum_[r] *= factor;
      f.ps_squared *= square;
      for (int64_t i = r * shape_.d; i < (r + 1) * shape_.d; ++i) {
        o_[i] *= factor;
        variance_[i] *= square;
        cross_[i] *= square;
      }
    }
    for (int64_t j = 0; j < seen; ++j) {
      const double p = std::exp(s[j] - f.max), g = p * inflated(std::fabs(s[j]), u_);
      const int64_t i = r * kKeyBlock + j;
      p_[i] = p;
      spread_[i] = g * g;
      weight_[i] = p * p + (unfused_ ? g * g : 0);
      sum_[r] += p;
      f.ps_squared += g * g;
    }
  }

  const Shape& shape_;
  const Inputs inputs_;
  const bool unfused_;
  const Region band_;
  const int64_t rows_, padded_;
  const double u_;
  std::vector<double> v_, v_squared_;         // one block of keys
  std::vector<double> p_, weight_, spread_;   // p, what v^2 is weighted with, (p g)^2
  std::vector<double> o_, variance_, cross_;  // cross: sum of (p g)^2 v
  std::vector<double> sum_;
  std::vector<RowFacts> facts_;
};

}  // namespace

std::shared_ptr<const BandReference> reference_of(const Shape& shape, InputPattern pattern, Rounding rounding,
                                                  const Region& band) {
  static Cache<BandReference> cache(size_t{64} << 20);
  const auto make = [&] {
    Accumulator sums(shape, pattern, rounding, band);
    for_each_score_block(
        shape, sums.inputs(), band,
        [&](int64_t first, int64_t keys, const std::vector<double>& s) { sums.add(first, keys, s); });
    return sums.finish();
  };
  return cache.get(
      Cache<BandReference>::key(shape, pattern, rounding, band), make, [](const BandReference& r) {
        return (r.o.size() + r.variance.size()) * sizeof(double) + r.facts.size() * sizeof(RowFacts);
      });
}

std::shared_ptr<const std::vector<float>> scores_of(const Shape& shape, InputPattern pattern,
                                                    const Region& band) {
  using Scores = std::vector<float>;
  static Cache<Scores> cache(size_t{160} << 20);
  const auto make = [&] {
    const Inputs inputs(shape, pattern);
    const int64_t rows = band.row_end - band.row_begin, pitch = shape.kv_pitch();
    Scores out(rows * pitch, 0.0f);
    for_each_score_block(shape, inputs, band, [&](int64_t first, int64_t keys, const std::vector<double>& s) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < keys; ++j)
          out[r * pitch + first + j] = static_cast<float>(s[r * kKeyBlock + j]);
    });
    return out;
  };
  return cache.get(Cache<Scores>::key(shape, pattern, Rounding::kUnfused, band), make,
                   [](const Scores& s) { return s.size() * sizeof(float); });
}

}  // namespace roofgen::attention

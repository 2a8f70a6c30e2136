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
  using Key = std::tuple<int, int64_t, int64_t, int64_t, bool, double, int, int64_t, int64_t, int64_t, int64_t, int64_t>;
  explicit Cache(size_t max_bytes) : max_bytes_(max_bytes) {}

  static Key key(const Shape& s, InputPattern pattern, const RowBand& b) {
    return {static_cast<int>(pattern), s.q_len, s.kv_len, s.d, s.causal, s.scale, static_cast<int>(s.dtype), b.batch,
            b.head, b.head / s.group(), b.row_begin, b.row_end};
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
void for_each_score_block(const Shape& shape, const Inputs& inputs, const RowBand& band, const Use& use) {
  const int64_t rows = band.row_end - band.row_begin, padded = round_up(rows, kRowBlock), d = shape.d;
  std::vector<double> q(padded * d, 0.0), k(d * kKeyBlock), row(d), s(padded * kKeyBlock);
  for (int64_t r = 0; r < rows; ++r) {
    inputs.row(Tensor::kQ, band.batch, band.head, band.row_begin + r, &q[r * d]);
    for (int64_t c = 0; c < d; ++c) q[r * d + c] *= shape.scale;
  }
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
    use(first, keys, s);
  }
}

/// (e^(u x) - 1) / u for x >= 0; the series is exact to double precision where it is used.
double inflated(double x, double u) {
  const double y = u * x;
  return y < 0.03 ? x * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5 * (1 + y / 6 * (1 + y / 7)))))) : std::expm1(y) / u;
}

BandReference compute(const Shape& shape, InputPattern pattern, const RowBand& band) {
  const Inputs inputs(shape, pattern);
  const int64_t rows = band.row_end - band.row_begin, padded = round_up(rows, kRowBlock), d = shape.d;
  const double u = unit_roundoff(format_of(shape.dtype));
  std::vector<double> o(padded * d, 0.0), v(kKeyBlock * d), p(padded * kKeyBlock);
  std::vector<double> sum(rows, 0.0);
  BandReference out{rows, d, {}, std::vector<RowFacts>(rows)};
  for (RowFacts& f : out.facts) f.max = -std::numeric_limits<double>::infinity();

  for_each_score_block(shape, inputs, band, [&](int64_t first, int64_t keys, const std::vector<double>& s) {
    for (int64_t j = 0; j < keys; ++j)
      inputs.row(Tensor::kV, band.batch, band.head / shape.group(), first + j, &v[j * d]);
    std::fill(p.begin(), p.end(), 0.0);
    for (int64_t r = 0; r < rows; ++r) {
      RowFacts& f = out.facts[r];
      const int64_t seen = std::min(keys, shape.allowed(band.row_begin + r) - first);
      if (seen <= 0) continue;
      const double* row = &s[r * kKeyBlock];
      const double next = std::max(f.max, *std::max_element(row, row + seen));
      if (next > f.max) {
        const double factor = std::exp(f.max - next);
        sum[r] *= factor;
        f.p_squared *= factor * factor;
        f.ps_squared *= factor * factor;
        for (int64_t c = 0; c < d; ++c) o[r * d + c] *= factor;
        f.max = next;
      }
      for (int64_t j = 0; j < seen; ++j) {
        const double x = std::exp(row[j] - f.max), g = x * inflated(std::fabs(row[j]), u);
        p[r * kKeyBlock + j] = x;
        sum[r] += x;
        f.p_squared += x * x;
        f.ps_squared += g * g;
      }
    }
    for (int64_t r = 0; r < padded; r += kRowBlock)
      gemm4(&p[r * kKeyBlock], kKeyBlock, v.data(), d, &o[r * d], d, d, keys);
  });
  for (int64_t r = 0; r < rows; ++r) {
    RowFacts& f = out.facts[r];
    f.lse = sum[r] > 0 ? f.max + std::log(sum[r]) : -std::numeric_limits<double>::infinity();
    if (sum[r] == 0) continue;
    f.p_squared /= sum[r] * sum[r];
    f.ps_squared /= sum[r] * sum[r];
    for (int64_t c = 0; c < d; ++c) o[r * d + c] /= sum[r];
  }
  o.resize(rows * d);
  out.o = std::move(o);
  return out;
}

}  // namespace

std::shared_ptr<const BandReference> reference_of(const Shape& shape, InputPattern pattern, const RowBand& band) {
  static Cache<BandReference> cache(size_t{64} << 20);
  return cache.get(Cache<BandReference>::key(shape, pattern, band), [&] { return compute(shape, pattern, band); },
                   [](const BandReference& r) { return r.o.size() * 8 + r.facts.size() * sizeof(RowFacts); });
}

std::shared_ptr<const std::vector<float>> scores_of(const Shape& shape, InputPattern pattern, const RowBand& band) {
  using Scores = std::vector<float>;
  static Cache<Scores> cache(size_t{160} << 20);
  const auto make = [&] {
    const Inputs inputs(shape, pattern);
    const int64_t rows = band.row_end - band.row_begin, pitch = shape.kv_pitch();
    Scores out(rows * pitch, 0.0f);
    for_each_score_block(shape, inputs, band, [&](int64_t first, int64_t keys, const std::vector<double>& s) {
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < keys; ++j) out[r * pitch + first + j] = static_cast<float>(s[r * kKeyBlock + j]);
    });
    return out;
  };
  return cache.get(Cache<Scores>::key(shape, pattern, band), make, [](const Scores& s) { return s.size() * sizeof(float); });
}

}  // namespace roofgen::attention

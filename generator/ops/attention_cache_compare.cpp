#include "generator/ops/attention_cache_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_judge.h"
#include "generator/ops/elements.h"
#include "generator/ops/float16.h"
#include "generator/ops/small_gemm.h"

namespace roofgen::attention {
namespace {

/// Up to as many keys all are compared; of more, about 2048 at equal distances, and the last ones before the first new
/// key.
constexpr int64_t kAllKeys = 4096, kSampledKeys = 2048, kLastOldKeys = 64;
/// Rows past the end of a cache that are looked at, and pages whose first and last keys are.
constexpr int64_t kRowsBehind = 16, kPagesBefore = 64;

/// Keys of [0, count).
std::set<int64_t> some_keys(const Shape& shape, int64_t count) {
  std::set<int64_t> out;
  const int64_t step = count <= kAllKeys ? 1 : (count + kSampledKeys - 1) / kSampledKeys;
  for (int64_t key = 0; key < count; key += step) out.insert(key);
  for (int64_t key = std::max<int64_t>(0, count - kLastOldKeys); key < count; ++key) out.insert(key);
  if (!shape.paged()) return out;
  const int64_t page = shape.cache->page(), last = (count + page - 1) / page;
  for (int64_t i = std::max<int64_t>(0, last - kPagesBefore); i < last; ++i)
    for (const int64_t key : {i * page, (i + 1) * page - 1})
      if (key < count) out.insert(key);
  return out;
}

/// One row as a kernel has to write it.
struct Expected {
  std::vector<double> x, tolerance;
};

/// Rotates a row in memory. A column that is not rotated has the tolerance 0.
void rotate(const Shape& shape, int64_t position, double scale, Expected& row) {
  const Prologue& p = *shape.prologue;
  const Format16 format = format_of(shape.dtype);
  p.rotate(position, row.x.data());
  for (int64_t i = 0; i < p.rotary_dim() / 2; ++i) {
    const auto [a, b] = p.columns(i);
    const double norm = std::hypot(row.x[a], row.x[b]);
    for (const int64_t c : {a, b}) row.tolerance[c] = spacing(row.x[c], format) / 2 + scale * kRotationError * norm;
  }
}

/// A new key or value as the cache has to hold it: of e4m3 its number without the scale.
void expect_new(const Shape& shape, const Inputs& inputs, Tensor tensor, int64_t b, int64_t head, int64_t key,
                Expected& row) {
  inputs.row(tensor, b, head, key, row.x.data());
  std::fill(row.tolerance.begin(), row.tolerance.end(), 0.0);
  const bool rotated = tensor == Tensor::kK && shape.rotary();
  if (rotated) rotate(shape, key, 1, row);
  if (!shape.fp8()) return;
  const double scale = inputs.fp8_scale(tensor, head);
  for (int64_t c = 0; c < shape.d; ++c) {
    const double error = row.tolerance[c] == 0 ? 0 : row.tolerance[c] - spacing(row.x[c], format_of(shape.dtype)) / 2;
    row.x[c] = Inputs::stored_fp8(row.x[c], error, scale, &row.tolerance[c]);
  }
}

void judge_row(const RowReader& got, const Expected& expected, int64_t row, Judge& judge) {
  for (size_t c = 0; c < expected.x.size(); ++c) {
    const auto column = static_cast<int64_t>(c);
    if (!got.valid[c])
      judge.unwritten(row, column);
    else
      judge.element(row, column, got.values[c], expected.x[c], expected.tolerance[c]);
  }
}

Region with_head(const Region& band, int64_t head) {
  Region out = band;
  out.head = head;
  return out;
}

/// K_plain or V_plain.
Result<void> compare_plain_keys(const Shape& shape, const Inputs& inputs, Tensor tensor, const Region& band,
                                const ElementReader& read, Comparison& out) {
  const std::string name = tensor == Tensor::kK ? "K_plain" : "V_plain";
  const int64_t head = band.head / shape.group(), keys = shape.keys(band.batch), d = shape.d;
  std::set<int64_t> which = some_keys(shape, shape.first_new(band.batch));
  const auto clamped = [&](int64_t key) { return std::clamp<int64_t>(key, 0, keys); };
  for (int64_t key = clamped(shape.position(band.batch, band.row_begin)),
               end = clamped(shape.position(band.batch, band.row_end));
       key < end; ++key)
    which.insert(key);
  Judge judge = judge_in(with_head(band, head), name, read, "key", "column");
  RowReader row(read, name);
  Expected expected{std::vector<double>(d), std::vector<double>(d)};
  for (const int64_t key : which) {
    const int64_t token = shape.varlen() ? shape.first_token(band.batch) + key : band.batch * shape.kv_len + key;
    ROOFGEN_CHECK(row.read((token * shape.kv_heads + head) * d, d));
    if (key >= shape.first_new(band.batch) && shape.fp8()) {
      expect_new(shape, inputs, tensor, band.batch, head, key, expected);
      // Between two numbers of the cache there is none.
      for (int64_t c = 0; c < d; ++c)
        if (round_to_dtype(row.values[c], DType::kFp8) != row.values[c]) expected.tolerance[c] = 0;
    } else {
      inputs.row(tensor, band.batch, head, key, expected.x.data());
      std::fill(expected.tolerance.begin(), expected.tolerance.end(), 0.0);
      if (tensor == Tensor::kK && shape.rotates_keys()) rotate(shape, key, 1, expected);
    }
    judge_row(row, expected, key, judge);
  }
  judge.add_to(out);
  return {};
}

}  // namespace

Result<void> compare_plain(const Shape& shape, InputPattern pattern, const Region& band, const ElementReader& read,
                           Comparison& out) {
  const Inputs inputs(shape, pattern);
  const int64_t d = shape.d;
  if (shape.rotary()) {
    Judge judge = judge_in(band, "Q_plain", read, "row", "column");
    RowReader row(read, "Q_plain");
    Expected expected{std::vector<double>(d), std::vector<double>(d)};
    for (int64_t r = band.row_begin; r < band.row_end; ++r) {
      ROOFGEN_CHECK(row.read(((shape.first_token(band.batch) + r) * shape.heads + band.head) * d, d));
      inputs.row(Tensor::kQ, band.batch, band.head, r, expected.x.data());
      std::fill(expected.tolerance.begin(), expected.tolerance.end(), 0.0);
      rotate(shape, shape.position(band.batch, r), 1, expected);
      judge_row(row, expected, r, judge);
    }
    judge.add_to(out);
  }
  if (shape.rotates_keys() || shape.fp8())
    ROOFGEN_CHECK(compare_plain_keys(shape, inputs, Tensor::kK, band, read, out));
  if (shape.fp8()) ROOFGEN_CHECK(compare_plain_keys(shape, inputs, Tensor::kV, band, read, out));
  return {};
}

Result<void> compare_cache(const Shape& shape, InputPattern pattern, const Region& band, const ElementReader& read,
                           Comparison& out) {
  if (!shape.append() || band.head % shape.group() != 0) return {};
  const Inputs inputs(shape, pattern);
  const int64_t b = band.batch, head = band.head / shape.group(), d = shape.d, first_new = shape.first_new(b),
                keys = shape.keys(b);
  // Rows past the end, in the last page or the capacity.
  const int64_t capacity = shape.paged() ? round_up(keys, shape.cache->page()) : shape.kv_len;
  const size_t size = static_cast<size_t>(size_of(shape.kv_dtype()));
  for (const Tensor tensor : {Tensor::kK, Tensor::kV}) {
    const std::string name = tensor == Tensor::kK ? "K" : "V";
    Judge judge = judge_in(with_head(band, head), name, read, "key", "column");
    RowReader row(read, name);
    Expected expected{std::vector<double>(d), std::vector<double>(d)};
    for (int64_t key = first_new + band.row_begin; key < first_new + band.row_end; ++key) {
      ROOFGEN_CHECK(row.read(shape.place_of_key(tensor == Tensor::kV, b, head, key), d));
      expect_new(shape, inputs, tensor, b, head, key, expected);
      judge_row(row, expected, key, judge);
    }
    std::fill(expected.tolerance.begin(), expected.tolerance.end(), 0.0);
    std::vector<std::byte> bytes(static_cast<size_t>(d) * size);
    std::vector<uint16_t> bits(static_cast<size_t>(d));
    for (const int64_t key : some_keys(shape, first_new)) {
      const int64_t at = shape.place_of_key(tensor == Tensor::kV, b, head, key);
      inputs.row(tensor, b, head, key, bits.data());
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(bits[i / size] >> (8 * (i % size)) & 255);
      if (read.holds(name, static_cast<uint64_t>(at), bytes)) continue;
      ROOFGEN_CHECK(row.read(at, d));
      inputs.row(tensor, b, head, key, expected.x.data());
      judge_row(row, expected, key, judge);
    }
    std::fill(expected.x.begin(), expected.x.end(), std::numeric_limits<double>::quiet_NaN());
    for (int64_t key = keys; key < std::min(keys + kRowsBehind, capacity); ++key) {
      ROOFGEN_CHECK(row.read(shape.place_of_key(tensor == Tensor::kV, b, head, key), d));
      judge_row(row, expected, key, judge);
    }
    judge.add_to(out);
  }
  return {};
}

}  // namespace roofgen::attention

// Rows of Q, K and V in memory and as operands, with rotary positions, appended keys and a cache in fp8. A row of a
// structured pattern has its structure where the products use it: memory holds it rotated back, or divided by the
// scale, and rounded. Every kernel rounds a rotated element once, to the format of its products or of the cache.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/memo.h"
#include "generator/ops/attention_inputs.h"
#include "generator/ops/counter_random.h"
#include "generator/ops/elements.h"
#include "generator/ops/float16.h"

namespace roofgen::attention {
namespace {

constexpr double kMostFp16 = 57344;  // with room for one rounding
/// One element of a new row is so many times larger, and most of these are beyond the largest e4m3.
constexpr double kTooLarge = 64;

uint16_t bits_of_fp8(double x) {
  std::byte out;
  store_element(&out, 0, DType::kFp8, x);
  return static_cast<uint16_t>(out);
}

double value_of_fp8(uint16_t bits) {
  static const auto all = [] {
    std::array<double, 256> out;
    for (size_t i = 0; i < out.size(); ++i) {
      const std::byte code{static_cast<unsigned char>(i)};
      out[i] = load_element(&code, 0, DType::kFp8);
    }
    return out;
  }();
  return all[bits & 255];
}

/// The e4m3 of every number of a 16-bit format divided by a scale: caches are large, and divisions by a power of a
/// table are not.
using QuantisedBits = std::array<uint8_t, 1 << 16>;
std::shared_ptr<const QuantisedBits> quantised(DType dtype, double scale) {
  static Memo<std::pair<DType, double>, QuantisedBits> memo(256);
  return memo.get({dtype, scale}, [&] {
    auto made = std::make_shared<QuantisedBits>();
    for (uint32_t i = 0; i < made->size(); ++i)
      (*made)[i] = static_cast<uint8_t>(bits_of_fp8(decode16(static_cast<uint16_t>(i), dtype) / scale));
    return made;
  });
}

}  // namespace

bool Inputs::is_new(Tensor tensor, int64_t batch, int64_t row) const {
  return tensor != Tensor::kQ && row >= shape_.first_new(batch);
}

bool Inputs::is_unrotated(Tensor tensor, int64_t batch, int64_t row) const {
  return shape_.rotary() &&
         (tensor == Tensor::kQ || (tensor == Tensor::kK && (shape_.rotates_keys() || is_new(tensor, batch, row))));
}

DType Inputs::dtype_of(Tensor tensor, int64_t batch, int64_t row) const {
  return shape_.scaled(tensor == Tensor::kQ) && !is_new(tensor, batch, row) ? DType::kFp8 : shape_.dtype;
}

double Inputs::fp8_scale(Tensor tensor, int64_t kv_head) const {
  const int64_t h = shape_.prologue->scale_per_head() ? kv_head : 0;
  const bool keys = tensor == Tensor::kK;
  const auto power = [](int64_t exponent) { return std::ldexp(1.0, static_cast<int>(exponent)); };
  if (tensor == Tensor::kQ) {
    switch (pattern_) {
      case InputPattern::kOneHot: return decode16(q_magnitude_, shape_.dtype) * power(-4 - (h + 1) % 3);
      case InputPattern::kZeroQuery: return power(h % 3 - 1);
      // The factor of column 3 ends at e^2.
      case InputPattern::kGrowing:
        return power(static_cast<int64_t>(std::ceil(std::log2(8 * growing_query_ / 448))) + h % 2);
      default: return round_to_dtype(0.0413 + 0.0097 * static_cast<double>(h % 4), DType::kFp32);
    }
  }
  switch (pattern_) {
    // N(0,1) ends at 3.7; codes of keys become 16 to 64.
    case InputPattern::kOneHot:
      return keys ? decode16(k_magnitude_, shape_.dtype) * power(-4 - h % 3) : power(h % 3 - 6);
    case InputPattern::kZeroQuery: return power(keys ? h % 3 - 6 : -h % 3);
    case InputPattern::kGrowing: {
      // Columns 0 and 3 are the largest; before they are rotated they share a pair with another one.
      const double largest = (kLate + kOffset / 2) / (shape_.scale * growing_query_);
      return power(keys ? std::max(0, static_cast<int>(std::ceil(std::log2(largest / 448)))) + h % 2 : h % 2);
    }
    default:
      return round_to_dtype(
          keys ? 0.0371 + 0.0113 * static_cast<double>(h % 5) : 0.0459 + 0.0071 * static_cast<double>(h % 3),
          DType::kFp32);
  }
}

double Inputs::scale_of(Tensor tensor, int64_t head) const {
  const bool is_q = tensor == Tensor::kQ;
  return shape_.scaled(is_q) ? fp8_scale(tensor, is_q ? head / shape_.group() : head) : 1;
}

void Inputs::row(Tensor tensor, int64_t batch, int64_t head, int64_t row, uint16_t* out) const {
  pattern_row(tensor, batch, head, row, out);
  if (!shape_.prologue) return;
  const bool fp8 = dtype_of(tensor, batch, row) == DType::kFp8;
  const bool structured = pattern_ == InputPattern::kOneHot || pattern_ == InputPattern::kGrowing;
  const bool turned = structured && is_unrotated(tensor, batch, row);
  const double scale = scale_of(tensor, head);
  if (turned) {
    std::array<double, 256> x;
    for (int64_t c = 0; c < shape_.d; ++c) x[c] = decode16(out[c], shape_.dtype);
    shape_.prologue->rotate(tensor == Tensor::kQ ? shape_.position(batch, row) : row, x.data(), true);
    if (shape_.dtype == DType::kFp16)
      for (int64_t i = 0; i < shape_.prologue->rotary_dim() / 2; ++i) {
        const auto [a, b] = shape_.prologue->columns(i);
        if (const double norm = std::hypot(x[a], x[b]); norm > kMostFp16)
          for (const int64_t c : {a, b}) x[c] *= kMostFp16 / norm;
      }
    for (int64_t c = 0; c < shape_.d; ++c) out[c] = encode16(round_to(x[c], format_of(shape_.dtype)), shape_.dtype);
  } else if (fp8) {
    const auto table = quantised(shape_.dtype, scale);
    for (int64_t c = 0; c < shape_.d; ++c) out[c] = (*table)[out[c]];
  } else if (shape_.fp8() && tensor != Tensor::kQ && pattern_ == InputPattern::kNormal) {
    const uint64_t column = mix(static_cast<uint64_t>(head) << 32 ^ static_cast<uint64_t>(row)) % 32;
    out[column] = encode16(kTooLarge * decode16(out[column], shape_.dtype), shape_.dtype);
  } else if (shape_.fp8() && tensor == Tensor::kV) {
    // A new value is a number of the cache already: the scales of structured patterns are powers of two.
    for (int64_t c = 0; c < shape_.d; ++c)
      out[c] = encode16(round_to_dtype(decode16(out[c], shape_.dtype) / scale, DType::kFp8) * scale, shape_.dtype);
  }
}

Recipe Inputs::recipe(Tensor tensor, bool appended) const {
  Recipe out{.kind = Recipe::Kind::kRows, .key = static_cast<uint64_t>(tensor) << 48, .letters = shape_.dtype};
  const bool q = tensor == Tensor::kQ, scaled = shape_.scaled(q) && !appended;
  out.large = shape_.fp8() && appended;
  for (int64_t head = 0; head < (q ? shape_.heads : shape_.kv_heads); ++head)
    out.scales.push_back(scaled ? scale_of(tensor, head) : 1);
  const int64_t page = shape_.paged() && !q && !appended ? shape_.cache->page() : 0;
  if (page > 0) {
    for (int64_t i = 0; i < shape_.cache->pages(); ++i)
      if (const auto [owner, number] = shape_.cache->contents(i); owner >= 0)
        out.runs.push_back(
            {i, 0, owner, number * page, std::clamp<int64_t>(shape_.first_new(owner) - number * page, 0, page)});
    return out;
  }
  for (int64_t b = 0; b < shape_.batch; ++b) {
    const int64_t first = appended ? shape_.first_new(b) : 0,
                  count = q || appended ? shape_.rows(b) : shape_.first_new(b);
    out.runs.push_back(shape_.varlen()
                           ? Recipe::Run{0, shape_.modifiers->first_tokens()[static_cast<size_t>(b)], b, first, count}
                           : Recipe::Run{b, 0, b, first, count});
  }
  return out;
}

void Inputs::row(Tensor tensor, int64_t batch, int64_t head, int64_t row, double* out) const {
  std::array<uint16_t, 256> bits;
  this->row(tensor, batch, head, row, bits.data());
  if (dtype_of(tensor, batch, row) == DType::kFp8)
    for (int64_t c = 0; c < shape_.d; ++c) out[c] = value_of_fp8(bits[c]);
  else
    for (int64_t c = 0; c < shape_.d; ++c) out[c] = decode16(bits[c], shape_.dtype);
}

double Inputs::stored_fp8(double x, double error, double scale, double* doubt) {
  // The quotient is one fp32 product with a rounded reciprocal, or a division.
  const double y = x / scale, off = error / scale + 0x1p-22 * std::fabs(y);
  const double low = round_to_dtype(y - off, DType::kFp8), high = round_to_dtype(y + off, DType::kFp8);
  *doubt = std::isnan(y) ? 0 : high - low;
  return round_to_dtype(y, DType::kFp8);
}

void Inputs::operand(Tensor tensor, int64_t batch, int64_t head, int64_t row, double* out, double* variance) const {
  this->row(tensor, batch, head, row, out);
  if (variance) std::fill_n(variance, shape_.d, 0.0);
  if (!shape_.prologue) return;
  const bool fp8 = shape_.scaled(tensor == Tensor::kQ), becomes_fp8 = fp8 && is_new(tensor, batch, row);
  const double scale = scale_of(tensor, head);
  if (fp8 && !becomes_fp8)
    for (int64_t c = 0; c < shape_.d; ++c) out[c] *= scale;
  std::array<double, 256> error{};  // of the fp32 value before it is rounded
  const bool rotated = is_unrotated(tensor, batch, row);
  if (rotated) {
    const Prologue& p = *shape_.prologue;
    p.rotate(tensor == Tensor::kQ ? shape_.position(batch, row) : row, out);
    for (int64_t i = 0; i < p.rotary_dim() / 2; ++i) {
      const auto [a, b] = p.columns(i);
      error[a] = error[b] = kRotationError * std::hypot(out[a], out[b]);
    }
  }
  if (!rotated && !becomes_fp8) return;
  const Format16 format = format_of(shape_.dtype);
  for (int64_t c = 0; c < shape_.d; ++c) {
    double doubt = 0;
    if (becomes_fp8) {
      out[c] = stored_fp8(out[c], error[c], scale, &doubt) * scale;
      doubt *= scale;
    } else {
      if (variance) doubt = round_to(out[c] + error[c], format) - round_to(out[c] - error[c], format);
      out[c] = round_to(out[c], format);
    }
    if (variance) variance[c] = doubt * doubt;
  }
}

}  // namespace roofgen::attention

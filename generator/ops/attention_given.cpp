// The generated values between the kernels of attention as bytes, and pattern kOneKey.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/counter_random.h"
#include "generator/ops/float16.h"

namespace roofgen::attention {

int64_t Inputs::one_key(int64_t batch, int64_t head, int64_t row) const {
  const int64_t allowed = row < shape_.rows(batch) ? shape_.allowed(batch, row) : 0;
  if (allowed == 0) return -1;
  const uint64_t random =
      mix(mix(static_cast<uint64_t>(batch) << 32 ^ static_cast<uint64_t>(head)) ^ static_cast<uint64_t>(row));
  if (!shape_.has_mask()) return static_cast<int64_t>(random % static_cast<uint64_t>(allowed));
  std::vector<char> visible(static_cast<size_t>(allowed), 1);
  shape_.mask(pattern_, batch, head, row, 0, visible);
  const auto count = static_cast<uint64_t>(std::count(visible.begin(), visible.end(), char{1}));
  if (count == 0) return -1;
  uint64_t left = random % count;
  int64_t key = 0;
  while (!visible[static_cast<size_t>(key)] || left-- > 0) ++key;
  return key;
}

/// Scores are far enough apart that the other probabilities underflow.
double Inputs::value_of_one_key(Value value) const {
  if (value == Value::kProbabilities) return 1;
  const double score = value == Value::kProducts ? (kGap + 16) / shape_.scale : kGap + 16;
  return round_to(std::min(score, 57344.0), format_of(shape_.dtype));
}

void Inputs::fill_given(Value value, uint64_t offset, std::span<std::byte> out) const {
  const int64_t pitch = shape_.kv_pitch();
  const bool sparse = pattern_ == InputPattern::kOneKey && !shape_.has_mask();
  const double missing = value == Value::kProbabilities ? 0 : std::numeric_limits<double>::quiet_NaN();
  const uint16_t hot = encode16(value_of_one_key(value), shape_.dtype), hidden = encode16(missing, shape_.dtype);
  std::vector<double> row;
  std::vector<uint16_t> bits;
  while (!out.empty()) {
    // The rest of a row, or its requested part.
    const int64_t element = static_cast<int64_t>(offset / 2), line = element / pitch, key = element % pitch,
                  pair = line / shape_.q_len, b = pair / shape_.heads, h = pair % shape_.heads, r = line % shape_.q_len;
    const size_t skip = offset % 2, bytes = std::min<size_t>(out.size(), static_cast<size_t>(pitch - key) * 2 - skip),
                 count = (bytes + skip + 1) / 2;
    bits.resize(count);
    if (sparse) {
      const int64_t keys = r >= shape_.rows(b) ? 0 : value < Value::kMasked ? shape_.keys(b) : shape_.allowed(b, r);
      const int64_t seen = std::clamp<int64_t>(keys - key, 0, static_cast<int64_t>(count)), at = one_key(b, h, r) - key;
      std::fill_n(bits.begin(), seen, uint16_t{0});
      std::fill(bits.begin() + seen, bits.end(), hidden);
      if (at >= 0 && at < seen) bits[static_cast<size_t>(at)] = hot;
    } else {
      row.resize(count);
      given(value, b, h, r, key, row);
      for (size_t i = 0; i < count; ++i) bits[i] = encode16(row[i], shape_.dtype);
    }
    std::copy_n(std::as_bytes(std::span(bits)).begin() + static_cast<std::ptrdiff_t>(skip), bytes, out.begin());
    out = out.subspan(bytes);
    offset += bytes;
  }
}

}  // namespace roofgen::attention

#include "generator/ops/attention_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "generator/ops/counter_random.h"
#include "generator/ops/float16.h"

namespace roofgen::attention {
namespace {

uint64_t row_key(Tensor tensor, int64_t batch, int64_t head, int64_t row) {
  uint64_t key =
      mix(static_cast<uint64_t>(tensor) << 48 ^ static_cast<uint64_t>(batch) << 24 ^ static_cast<uint64_t>(head));
  return mix(key ^ static_cast<uint64_t>(row));
}

using NormalTable = std::array<uint16_t, kQuantiles>;

NormalTable make_normal_table(DType dtype) {
  NormalTable table;
  for (int i = 0; i < kQuantiles; ++i) table[i] = encode16(round_to(normal_quantiles()[i], format_of(dtype)), dtype);
  return table;
}

const NormalTable& normal_table(DType dtype) {
  static const NormalTable bf16 = make_normal_table(DType::kBf16);
  static const NormalTable fp16 = make_normal_table(DType::kFp16);
  return dtype == DType::kFp16 ? fp16 : bf16;
}

}  // namespace

// kOneHot: column c of key k is +-1 by bit c mod code_bits of k. Two different keys differ in at least floor(d /
// code_bits) columns, and their scores by twice this number times the magnitudes and the scale. The magnitudes are
// powers of two that make this difference at least kGap: one key has the probability 1 in every precision, and without
// this key in the row's maximum e^kGap overflows.
Inputs::Inputs(const Numbers& shape, InputPattern pattern) : shape_(shape), pattern_(pattern) {
  code_bits_ = 1;
  while ((int64_t{1} << code_bits_) < shape.kv_len) ++code_bits_;
  // With lengths, the code distinguishes the keys of the longest sequence.
  const double columns = static_cast<double>(shape.d / code_bits_);
  const int exponent = static_cast<int>(std::ceil(std::log2(kGap / 2 / (columns * shape.scale))));
  const int k_exponent = static_cast<int>(std::floor(exponent / 2.0));
  k_magnitude_ = encode16(std::ldexp(1.0, k_exponent), shape.dtype);
  q_magnitude_ = encode16(std::ldexp(1.0, exponent - k_exponent), shape.dtype);
  growing_query_ = std::exp2(std::round(std::log2(1 / shape.scale) / 2));
  product_magnitude_ = std::exp2(std::round(std::log2(static_cast<double>(shape.d)) / 2));
}

void Inputs::normal(Tensor tensor, int64_t batch, int64_t head, int64_t row, uint16_t* out) const {
  const NormalTable& table = normal_table(shape_.dtype);
  const uint64_t key = row_key(tensor, batch, head, row);
  for (int64_t c = 0; c < shape_.d; c += 4) {
    const uint64_t bits = mix(key + static_cast<uint64_t>(c));
    for (int i = 0; i < 4; ++i) out[c + i] = table[(bits >> (16 * i)) & (kQuantiles - 1)];
  }
}

void Inputs::code(int64_t key, uint16_t magnitude, uint16_t* out) const {
  for (int64_t c = 0, bit = 0; c < shape_.d; ++c) {
    out[c] = static_cast<uint16_t>(magnitude | ((key >> bit) & 1) << 15);
    if (++bit == code_bits_) bit = 0;
  }
}

double Inputs::large_value(int64_t key) const {
  constexpr double kExact = 0x1p24;  // sums of integers up to here
  if (shape_.fp8()) return 0;        // e4m3 has no 69
  if (static_cast<double>(shape_.kv_len) * (kLargeValue + 10) > kExact) return 0;
  return 2 * key < shape_.kv_len ? kLargeValue : -kLargeValue;
}

// Integers from -5 to 10 and a large one: their sums are exact in fp32, and so is their mean with equal probabilities.
void Inputs::small_integers(int64_t batch, int64_t head, int64_t row, uint16_t* out) const {
  std::array<uint16_t, 16> code;
  const double unit = shape_.fp8() ? fp8_scale(Tensor::kV, head) : 1;
  // With a sign for every second key, partial sums stay small: sm_90 keeps 14 bits of sums in e4m3.
  const double sign = shape_.fp8_products && row % 2 != 0 ? -1 : 1;
  for (int i = 0; i < 16; ++i) code[i] = encode16(sign * (i - 5 + large_value(row)) * unit, shape_.dtype);
  const uint64_t key = row_key(Tensor::kV, batch, head, row);
  for (int64_t c = 0; c < shape_.d; c += 16) {
    const uint64_t bits = mix(key + static_cast<uint64_t>(c));
    for (int i = 0; i < 16; ++i) out[c + i] = code[(bits >> (4 * i)) & 15];
  }
}

// Steps of 61, 40, 15, 5, 1 and 6 over the keys: a kernel may skip the rescaling for small ones.
double Inputs::level(int64_t key) const {
  constexpr std::array<double, 8> kLevels{-kDeepest, -67, -27, -12, -7, -6, 0, 0};
  const int64_t keys = std::max<int64_t>(1, shape_.kv_len);
  return kLevels[static_cast<size_t>(std::clamp<int64_t>(key * 8 / keys, 0, 7))];
}

// A kernel may rescale where all rows of a warp need it, or only look at some of them. Of each 256 rows, counted from
// the end, 64 grow by `late` and 64 by `level` where `grows_alone`; 64 differ at random; all of 64 grow.
double Inputs::growth(int64_t batch, int64_t kind) const {
  constexpr std::array<double, 8> kFactors{1, 1, 1, 1, -1, -0.75, 1.0 / 8, 0};
  switch (block_from_end(batch, kind) % 4) {
    case 0: return 0;
    case 1: return grows_alone(kind ^ 8) ? 1 : 0;
    case 2: return kFactors[mix(static_cast<uint64_t>(kind)) % kFactors.size()];
    default: return 1;
  }
}

// Small offsets are in the range where score expressions such as a softcap bend.
double Inputs::offset_factor(int64_t kind) {
  constexpr std::array<double, 16> kFactors{0, 1, 0, kLowest, 0, 0.08, 0, -0.08, 0, 1, 0, kLowest, 0, 0.3, 0, -0.3};
  return kFactors[static_cast<size_t>(kind % 16)];
}

double Inputs::exact_growth(int64_t batch, int64_t kind) const {
  if (block_from_end(batch, kind) % 4 != 2 || kind % 8 != 6) return 0;
  const float wanted = kExactGrowth[kind / 8 % 2], per_score = static_cast<float>(shape_.scale * std::numbers::log2e);
  float product = wanted / per_score;
  if (product * per_score < wanted) product = std::nextafter(product, 2 * product);
  return product;
}

// So few equal scores that their roundings, which have one sign, are within the tolerance of independent ones.
bool Inputs::grows_exactly(int64_t key) const {
  const int64_t left = shape_.kv_len - 1 - key, few = std::max<int64_t>(1, shape_.kv_len / 32);
  return left < 4 * few && left % few == 0;
}

double lowest_score(const Numbers& shape) {
  if (shape.has_score() || shape.prologue || shape.scale < 1.0 / 32) return 0;
  return shape.dtype == DType::kFp16 ? -56000 * shape.scale : -80000;
}

int64_t Inputs::block_from_end(int64_t batch, int64_t kind) const {
  return ((shape_.q_len <= kFewRows ? kGrowingRows : shape_.rows(batch)) - 1) / 64 - kind / 64;
}

// Eight rows, over queries, heads and batches, stay together. The first octets are from blocks of different growth.
int64_t Inputs::kind(int64_t batch, int64_t head, int64_t row) const {
  if (shape_.q_len > kFewRows) return row;
  const int64_t i = row + shape_.q_len * (head + shape_.heads * batch), octet = i / 8;
  return (24 * octet + octet / 4) % 32 * 8 + i % 8;
}

// One half of the first 16 of 64 rows, and the other half of the last 16: warps of 16 and of 32 rows have no other.
bool Inputs::grows_alone(int64_t kind) { return kind / 8 % 8 == 0 || kind / 8 % 8 == 7; }

// The last keys that a row sees are the first to raise its maximum. Where rows see different keys, the factor of a row
// undoes the distance of its own last key from the last of all.
double Inputs::late_factor(int64_t batch, int64_t row, int64_t kind) const {
  if (block_from_end(batch, kind) % 4 != 0 || !grows_alone(kind)) return 0;
  if (!shape_.causal && !shape_.has_mask()) return 1;
  const int64_t left = shape_.rows(batch) - 1 - row;
  return left < 64 ? std::exp(static_cast<double>(left) / kLateKeys) : 0;
}

double Inputs::late(int64_t batch, int64_t key) const {
  return kLate * std::exp(-static_cast<double>(std::max<int64_t>(0, shape_.keys(batch) - 1 - key)) / kLateKeys);
}

void Inputs::pattern_row(Tensor tensor, int64_t batch, int64_t head, int64_t row, uint16_t* out) const {
  if (tensor != Tensor::kQ && shape_.cache) batch = shape_.cache->owner(batch, row);
  if (pattern_ == InputPattern::kZeroQuery && tensor == Tensor::kQ) {
    std::fill_n(out, shape_.d, uint16_t{0});
  } else if (pattern_ == InputPattern::kZeroQuery && tensor == Tensor::kV) {
    small_integers(batch, head, row, out);
  } else if (pattern_ == InputPattern::kOneHot && tensor == Tensor::kQ) {
    code(target(batch, head, row), q_magnitude_, out);
  } else if (pattern_ == InputPattern::kOneHot && tensor == Tensor::kK) {
    code(row, k_magnitude_, out);
  } else {
    normal(tensor, batch, head, row, out);
    const auto scale = [&](double factor) {
      for (int64_t c = 0; c < shape_.d; ++c) out[c] = encode16(factor * decode16(out[c], shape_.dtype), shape_.dtype);
    };
    const bool is_small = pattern_ == InputPattern::kOneHot && tensor == Tensor::kV && row % 2 == 1;
    if (is_small && shape_.dtype == DType::kFp16 && !shape_.fp8()) scale(kSubnormal);
    if (pattern_ != InputPattern::kGrowing) return;
    if (tensor == Tensor::kV) {
      // The keys of one head or sequence are after those of another. Two sequences may share a page: in pages, heads
      // alone differ. The last head of the last of two sequences, which is compared, is finite in both
      // cases. Of packed sequences the first is compared: the second follows.
      if (((shape_.paged() ? 1 : shape_.varlen() ? batch + 1 : batch) + head) % 2 != 0)
        return (void)std::fill_n(out, shape_.d, encode16(std::numeric_limits<double>::quiet_NaN(), shape_.dtype));
      // Keys before the last step still count, at e^-6.
      return scale(growing_unit(shape_) * (level(row) < 0 ? kGrowingValue : 1));
    }
    const auto put = [&](int column, double value) {
      constexpr double kMost = 57344;  // of fp16, with room for one rounding
      if (shape_.dtype == DType::kFp16) value = std::clamp(value, -kMost, kMost);
      out[column] = encode16(round_to(value, format_of(shape_.dtype)), shape_.dtype);
    };
    const int64_t kind = this->kind(batch, head, row);
    const double factor = shape_.scale * growing_query_, lowest = lowest_score(shape_);
    const bool is_lowest = tensor == Tensor::kQ && kind % 16 == kLowestKind && lowest < 0;
    const double sign = is_lowest ? lowest / kOffset : offset_factor(kind);
    const double exact = tensor == Tensor::kQ ? exact_growth(batch, kind) : 0;
    if (is_lowest || exact > 0) std::fill_n(out, shape_.d, uint16_t{0});
    const double on = std::exp2(std::round(std::log2(1 / factor)));
    double left = exact / on;
    for (const int column : kExactColumns) {
      // Each adds what the columns before lack by their rounding.
      if (exact > 0) put(column, left), left -= decode16(out[column], shape_.dtype);
      if (tensor == Tensor::kK) put(column, grows_exactly(row) ? on : 0);
    }
    if (exact > 0) return;
    put(0, tensor == Tensor::kQ ? growth(batch, kind) * growing_query_ : level(row) / factor);
    const double of_late = is_lowest ? 0 : late_factor(batch, row, kind) * growing_query_;
    put(3, tensor == Tensor::kQ ? of_late : late(batch, row) / factor);
    for (const int column : {1, 2}) put(column, tensor == Tensor::kQ ? sign * growing_query_ : kOffset / 2 / factor);
  }
}

int64_t Inputs::target(int64_t batch, int64_t head, int64_t row) const {
  const int64_t allowed = shape_.allowed(batch, row);
  if (!shape_.has_mask()) return one_hot_target(kind(batch, head, row), 0, std::max<int64_t>(1, allowed));
  std::vector<char> visible(static_cast<size_t>(allowed), 1);
  shape_.mask(pattern_, batch, head, row, 0, visible);
  const auto first = std::find(visible.begin(), visible.end(), char{1});
  if (first == visible.end()) return 0;
  const auto last = std::find(visible.rbegin(), visible.rend(), char{1});
  int64_t key = one_hot_target(kind(batch, head, row), first - visible.begin(), visible.rend() - last);
  while (!visible[static_cast<size_t>(key)]) --key;
  return key;
}

double Inputs::largest_product() const {
  return static_cast<double>(shape_.d) * decode16(q_magnitude_, shape_.dtype) * decode16(k_magnitude_, shape_.dtype);
}

void Inputs::given(Value value, int64_t batch, int64_t head, int64_t row, int64_t first, std::span<double> out) const {
  const NormalTable& table = normal_table(shape_.dtype);
  const uint64_t key = row_key(Tensor::kGiven, batch, head, row);
  const int64_t only = pattern_ == InputPattern::kOneKey ? one_key(batch, head, row) : -1;
  const double magnitude = value == Value::kProducts ? product_magnitude_ : 1;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t k = static_cast<uint64_t>(first) + i;
    out[i] = pattern_ == InputPattern::kOneKey
                 ? (static_cast<int64_t>(k) == only ? value_of_one_key(value) : 0)
                 : magnitude * decode16(table[(mix(key + k / 4) >> (16 * (k % 4))) & (kQuantiles - 1)], shape_.dtype);
  }
  if (pattern_ == InputPattern::kGrowing || pattern_ == InputPattern::kOneHot) {
    const double unit = value == Value::kProducts ? 1 / shape_.scale : 1;
    const int64_t hot = pattern_ == InputPattern::kOneHot ? target(batch, head, row) : 0;
    const int64_t kind = this->kind(batch, head, row);
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t k = first + static_cast<int64_t>(i);
      const double more = pattern_ == InputPattern::kGrowing
                              ? growth(batch, kind) * level(k) + late_factor(batch, row, kind) * late(batch, k) +
                                    kOffset * offset_factor(kind)
                          : k == hot ? kGap + 16
                                     : 0;
      out[i] = round_to(out[i] + unit * more, format_of(shape_.dtype));
    }
  }
  const bool masked = value >= Value::kMasked, probabilities = value == Value::kProbabilities;
  const int64_t keys = row >= shape_.rows(batch) ? 0 : masked ? shape_.allowed(batch, row) : shape_.keys(batch);
  const size_t seen = static_cast<size_t>(std::clamp<int64_t>(keys - first, 0, static_cast<int64_t>(out.size())));
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(seen), out.end(),
            probabilities ? 0 : std::numeric_limits<double>::quiet_NaN());
  if (!masked || !shape_.has_mask() || seen == 0) return;
  std::vector<char> visible(seen, 1);
  shape_.mask(pattern_, batch, head, row, first, visible);
  for (size_t i = 0; i < seen; ++i)
    if (!visible[i]) out[i] = probabilities ? 0 : -std::numeric_limits<double>::infinity();
}

int64_t one_hot_target(int64_t row, int64_t begin, int64_t end) {
  // Halves of 16 rows share instructions, and so do keys at the same place of their 8 and in the same 8 of a tile. One
  // half takes late keys, the other early ones, so that only one half of 16 rows meets a new maximum in the last tile.
  // The key that shares its 8 with the last one is the last: the edge of the mask and of the tail.
  const int64_t group = row / 16, part = row % 8, last = end - 1, low = begin / 64, high = last / 64;
  // Which half it is changes between the warps, also of 32 and of 64 rows.
  const bool late = (group + group / 2 + group / 4 + row / 8) % 2 == 0;
  const int64_t early = static_cast<int64_t>(mix(static_cast<uint64_t>(row)) %
                                             static_cast<uint64_t>(std::max<int64_t>(1, (high - low) * 3 / 4)));
  int64_t key = (late ? high : low + early) * 64 + part * 8 + (part + group / 4) % 4 * 2 + group / 2 % 2;
  if (key / 8 == last / 8) key = last;
  if (key > last) key -= 64;
  return std::clamp(key, begin, last);
}

}  // namespace roofgen::attention

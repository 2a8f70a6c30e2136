#include "generator/ops/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "generator/ops/counter_random.h"
#include "generator/ops/float16.h"

namespace roofgen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr uint8_t kFp8Nan = 0x7f;

Format16 float_format(DType dtype) {
  if (dtype == DType::kFp32 || dtype == DType::kTf32) return {24, -126};
  if (dtype == DType::kFp8) return {4, -6};
  return format_of(dtype);
}

/// The largest finite number of a format.
double largest_of(DType dtype) {
  switch (dtype) {
    case DType::kFp16: return 65504;
    case DType::kBf16: return 0x1.fep127;
    case DType::kFp8: return 448;
    case DType::kInt8: return 127;
    case DType::kInt32: return 2147483647;
    default: return std::numeric_limits<float>::max();
  }
}

template <class T>
T load_as(const std::byte* base, size_t index) {
  T value;
  std::memcpy(&value, base + sizeof(T) * index, sizeof(T));
  return value;
}

template <class T>
void store_as(std::byte* base, size_t index, T value) {
  std::memcpy(base + sizeof(T) * index, &value, sizeof(T));
}

// Moves exponent and mantissa of the small formats to their positions in fp32. A product with 2^(127 - bias) corrects
// the bias, also of subnormal numbers.
double decode_fp8(uint8_t bits) {
  if ((bits & 0x7f) == kFp8Nan) return kNan;
  return std::bit_cast<float>((uint32_t{bits} << 24 & 0x80000000u) | (bits & 0x7fu) << 20) * 0x1p120f;
}

double decode_fp16(uint16_t bits) {
  if ((bits & 0x7c00) == 0x7c00) return bits & 0x3ff ? kNan : bits & 0x8000 ? -kInfinity : kInfinity;
  return std::bit_cast<float>((bits & 0x8000u) << 16 | (bits & 0x7fffu) << 13) * 0x1p112f;
}

/// The bits of a value of fp8.
uint8_t encode_fp8(double x) {
  const int sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return kFp8Nan;
  const double a = std::fabs(x);
  if (a < 0x1p-6) return static_cast<uint8_t>(sign | static_cast<int>(a * 0x1p9));
  const int e = std::ilogb(a);
  return static_cast<uint8_t>(sign | (e + 7) << 3 | static_cast<int>(std::ldexp(a, 3 - e) - 8));
}

uint16_t encode_half(double x, DType dtype) {
  if (std::isnan(x)) return 0x7fff;
  if (std::isinf(x)) return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | (dtype == DType::kFp16 ? 0x7c00 : 0x7f80));
  return encode16(x, dtype);
}

}  // namespace

std::string what_is_not_zero(const Buffer& buffer, std::span<const std::byte> bytes) {
  const auto first = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  if (first == bytes.end()) return "";
  const size_t index = static_cast<size_t>(first - bytes.begin()) / static_cast<size_t>(size_of(buffer.dtype));
  return fmt::format("{}[{}] is {:g} after the launch; 0 was expected, as before it", buffer.name, index,
                     load_element(bytes.data(), index, buffer.dtype));
}

std::vector<bool> written_elements(const std::vector<bool>& bytes, size_t size) {
  std::vector<bool> out(bytes.size() / size, true);
  // std::find looks at whole words.
  for (auto at = std::find(bytes.begin(), bytes.end(), false); at != bytes.end();
       at = std::find(at + 1, bytes.end(), false))
    out[static_cast<size_t>(at - bytes.begin()) / size] = false;
  return out;
}

double load_element(const std::byte* base, size_t index, DType dtype) {
  switch (dtype) {
    case DType::kBf16: return std::bit_cast<float>(uint32_t{load_as<uint16_t>(base, index)} << 16);
    case DType::kFp16: return decode_fp16(load_as<uint16_t>(base, index));
    case DType::kFp8: return decode_fp8(load_as<uint8_t>(base, index));
    case DType::kInt8: return load_as<int8_t>(base, index);
    case DType::kInt32: return load_as<int32_t>(base, index);
    case DType::kFp32:
    case DType::kTf32: break;
  }
  return load_as<float>(base, index);
}

void store_element(std::byte* base, size_t index, DType dtype, double value) {
  const double x = round_to_dtype(value, dtype);
  switch (dtype) {
    case DType::kBf16:
    case DType::kFp16: return store_as(base, index, encode_half(x, dtype));
    case DType::kFp8: return store_as(base, index, encode_fp8(x));
    case DType::kInt8: return store_as(base, index, static_cast<int8_t>(x));
    case DType::kInt32: return store_as(base, index, static_cast<int32_t>(x));
    case DType::kFp32:
    case DType::kTf32: break;
  }
  store_as(base, index, static_cast<float>(x));
}

double round_to_dtype(double value, DType dtype) {
  const double largest = largest_of(dtype);
  if (is_integer(dtype)) return std::isnan(value) ? 0 : std::clamp(std::nearbyint(value), -largest - 1, largest);
  if (std::isnan(value)) return value;
  const double x = std::isinf(value) ? value : round_to(value, float_format(dtype));
  if (std::fabs(x) <= largest) return x;
  return std::copysign(dtype == DType::kFp8 ? largest : kInfinity, x);
}

double as_operand(double value, DType dtype) {
  if (dtype != DType::kTf32) return value;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(value)) & ~uint32_t{0x1fff});
}

double spacing_of(double value, DType dtype) {
  if (is_integer(dtype)) return 1;
  const double largest = largest_of(dtype);
  return spacing(std::fabs(value) < largest ? value : largest, float_format(dtype));
}

double rounding_sigma(double value, DType dtype) { return spacing_of(value, dtype) / std::sqrt(12.0); }

// ---- contents of inputs ------------------------------------------------------------------------

namespace {

/// Standard deviation of integer inputs: the outermost quantile, at 3.7 deviations, fits int8.
constexpr double kIntegerDeviation = 32;

/// One of 4096 equally likely elements, as a number and as stored bits.
struct Alphabet {
  std::array<double, kQuantiles> values;
  std::array<uint32_t, kQuantiles> words;
};

uint32_t word_of(double value, DType dtype) {
  std::array<std::byte, 4> raw{};
  store_element(raw.data(), 0, dtype, value);
  return load_as<uint32_t>(raw.data(), 0);
}

std::unique_ptr<const Alphabet> make_alphabet(DType dtype, bool integers) {
  auto out = std::make_unique<Alphabet>();
  const double deviation = is_integer(dtype) ? kIntegerDeviation : 1;
  for (int i = 0; i < kQuantiles; ++i) {
    out->values[i] = round_to_dtype(integers ? i % 5 - 2 : deviation * normal_quantiles()[i], dtype);
    out->words[i] = word_of(out->values[i], dtype);
  }
  return out;
}

const Alphabet& alphabet(DType dtype, bool integers) {
  static const auto all = [] {
    std::array<std::array<std::unique_ptr<const Alphabet>, 2>, 7> out;
    for (DType d : {DType::kBf16, DType::kFp16, DType::kFp32, DType::kTf32, DType::kFp8, DType::kInt8, DType::kInt32})
      for (bool i : {false, true}) out[static_cast<size_t>(d)][i] = make_alphabet(d, i);
    return out;
  }();
  return *all[static_cast<size_t>(dtype)][integers];
}

/// The elements of a tensor, in groups of four that share random bits.
class Stream {
 public:
  explicit Stream(const TensorContents& c)
      : key_(stream_key(c.name)),
        special_(c.pattern == InputPattern::kSpecial && !is_integer(c.dtype)),
        extremes_(c.pattern == InputPattern::kExtremes),
        dtype_(c.dtype) {}

  /// Calls `put(i, letter, special)` for i in [0, count), elements first + i. `special` is 0, or the number of the
  /// dtype that replaces the letter.
  template <class Put>
  void each(uint64_t first, uint64_t count, const Put& put) const {
    for (uint64_t e = first; e < first + count;) {
      const uint64_t bits = mix(key_ + e / 4), exceptions = special_ ? mix(~key_ + e / 4) : ~uint64_t{0};
      for (uint64_t lane = e % 4; lane < 4 && e < first + count; ++lane, ++e)
        put(e - first, bits >> 16 * lane & (kQuantiles - 1),
            extremes_ ? extreme(e) : special_value(exceptions >> 16 * lane & 0xffff));
    }
  }

 private:
  double special_value(uint64_t bits) const {
    if (bits & 0xfff) return 0;
    const uint64_t which = bits >> 12;
    return which < 6 || dtype_ == DType::kFp8 ? kNan : which & 1 ? kInfinity : -kInfinity;
  }

  /// One of eight neighbours, so that 64 neighbours have all of them. exp overflows fp32 above 88, a square fp16 above
  /// 255, a sum with 65504 fp16; 1e-6 is below the normal numbers of fp16. No infinities: an infinite factor of a value
  /// that underflows, as silu(-100) does, gives NaN in fp32 and an infinity in double precision.
  double extreme(uint64_t element) const {
    if (element % 8 != mix(key_ ^ element / 8) % 8) return 0;
    constexpr std::array kExtremes{kNan, 65504.0, -65504.0, 100.0, -100.0, 1e4, -1e4, 1e-6};
    const double value = kExtremes[(element / 8 + mix(key_ + element / 512)) % kExtremes.size()];
    return round_to_dtype(std::isnan(value) && is_integer(dtype_) ? 0 : value, dtype_);
  }
  uint64_t key_;
  bool special_, extremes_;
  DType dtype_;
};

}  // namespace

uint64_t stream_key(const std::string& name) {
  uint64_t key = name.size();
  for (const char c : name) key = mix(key ^ static_cast<uint8_t>(c));
  return key;
}

bool TensorContents::is_zero() const { return pattern == InputPattern::kExtremeRows && name == "residual"; }

namespace {

/// Calls `f` for the rare elements of [first, end).
template <class F>
void each_rare(uint64_t first, uint64_t end, const F& f) {
  for (uint64_t e = 13; e < end; e = 4 * e + 1)
    if (e >= first) f(e);
}

}  // namespace

void TensorContents::values(uint64_t first, std::span<double> out) const {
  const Alphabet& letters = alphabet(dtype, pattern == InputPattern::kIntegers);
  if (is_zero())
    std::fill(out.begin(), out.end(), 0);
  else
    Stream(*this).each(first, out.size(), [&](uint64_t i, uint64_t letter, double special) {
      out[i] = special != 0 ? special : letters.values[letter];
    });
  if (has_rare_nans()) each_rare(first, first + out.size(), [&](uint64_t e) { out[e - first] = kNan; });
}

namespace {

template <class Element>
void fill_elements(const TensorContents& c, uint64_t first, std::span<std::byte> out) {
  const Alphabet& letters = alphabet(c.dtype, c.pattern == InputPattern::kIntegers);
  Stream(c).each(first, out.size() / sizeof(Element), [&](uint64_t i, uint64_t letter, double special) {
    store_as(out.data(), i, static_cast<Element>(special != 0 ? word_of(special, c.dtype) : letters.words[letter]));
  });
}

void fill_whole(const TensorContents& c, uint64_t first, std::span<std::byte> out) {
  const auto size = static_cast<uint64_t>(size_of(c.dtype));
  if (c.is_zero())
    std::fill(out.begin(), out.end(), std::byte{0});
  else if (size == 1)
    fill_elements<uint8_t>(c, first, out);
  else if (size == 2)
    fill_elements<uint16_t>(c, first, out);
  else
    fill_elements<uint32_t>(c, first, out);
  if (c.has_rare_nans())
    each_rare(first, first + out.size() / size,
              [&](uint64_t e) { store_element(out.data(), e - first, c.dtype, kNan); });
}

}  // namespace

void TensorContents::fill(uint64_t byte_offset, std::span<std::byte> out) const {
  const uint64_t size = static_cast<uint64_t>(size_of(dtype));
  // `out` may start or end inside an element.
  const auto fill_part = [&](std::span<std::byte> part) {
    std::array<std::byte, 4> element;
    fill_whole(*this, byte_offset / size, std::span(element).first(size));
    std::copy_n(element.begin() + static_cast<ptrdiff_t>(byte_offset % size), part.size(), part.begin());
    byte_offset += part.size();
    out = out.subspan(part.size());
  };
  if (byte_offset % size != 0) fill_part(out.first(std::min(out.size(), size - byte_offset % size)));
  const std::span<std::byte> whole = out.first(out.size() / size * size);
  fill_whole(*this, byte_offset / size, whole);
  byte_offset += whole.size();
  out = out.subspan(whole.size());
  if (!out.empty()) fill_part(out);
}

// ---- comparison --------------------------------------------------------------------------------

std::string Judge::place(int64_t row, int64_t col) const {
  std::string out = fmt::format("{}[{}{} {}", buffer_, within_, rows_, row);
  return col < 0 ? out + "]" : fmt::format("{}, {} {}]", out, cols_, col);
}

void Judge::unwritten(int64_t row, int64_t col) {
  if (missing_++ == 0) first_missing_ = place(row, col);
}

void Judge::element(int64_t row, int64_t col, double got, double expected, double tolerance) {
  read_.judged(buffer_, got, expected, tolerance);
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return;  // also an expected infinity
  double error = std::fabs(got - expected) / tolerance;
  if (!(error < kHopeless)) error = kHopeless;
  if (error <= worst_) return;
  worst_ = error;
  if (error > 1)
    message_ = fmt::format("{} is {:.9g}, {:.9g} was expected within {:.3g} ({:.3g} times the tolerance)",
                           place(row, col), got, expected, tolerance, error);
}

void Judge::add_to(Comparison& out) const {
  out.worst = std::max(out.worst, missing_ > 0 ? kHopeless : worst_);
  if (!out.failure.empty()) return;
  out.failure =
      missing_ > 0 ? fmt::format("{} and {} more elements were never written", first_missing_, missing_ - 1) : message_;
}

}  // namespace roofgen

#include "check/element.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "generator/ops/float16.h"

namespace roofgen::check {
namespace {

struct Row {
  const char* name;
  uint32_t bytes;
  bool integer, is_signed;
};
constexpr Row kRows[] = {{"i8", 1, true, true},    {"u8", 1, true, false},  {"i16", 2, true, true},
                         {"u16", 2, true, false},  {"i32", 4, true, true},  {"u32", 4, true, false},
                         {"i64", 8, true, true},   {"u64", 8, true, false}, {"f16", 2, false, true},
                         {"bf16", 2, false, true}, {"f32", 4, false, true}, {"f64", 8, false, true}};
const Row& row(Element e) { return kRows[static_cast<size_t>(e)]; }

uint64_t encode_half(double value, DType dtype) {
  const double largest = dtype == DType::kFp16 ? 65504.0 : 0x1.fep127;
  if (std::isnan(value)) return dtype == DType::kFp16 ? 0x7e00 : 0x7fc0;
  const double rounded = std::isinf(value) ? value : round_to(value, format_of(dtype));
  if (std::fabs(rounded) > largest)
    return static_cast<uint64_t>((dtype == DType::kFp16 ? 0x7c00 : 0x7f80) | (std::signbit(value) ? 0x8000 : 0));
  return encode16(rounded, dtype);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

const char* to_string(Element e) { return row(e).name; }
uint32_t bytes_of(Element e) { return row(e).bytes; }
bool is_integer(Element e) { return row(e).integer; }

const std::vector<std::string>& element_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Row& r : kRows) out.emplace_back(r.name);
    return out;
  }();
  return names;
}

std::optional<Element> parse_element(std::string_view name) {
  for (size_t i = 0; i < std::size(kRows); ++i)
    if (name == kRows[i].name) return static_cast<Element>(i);
  return std::nullopt;
}

std::pair<int64_t, uint64_t> range_of(Element e) {
  const uint32_t bits = 8 * row(e).bytes;
  if (!row(e).is_signed) return {0, bits == 64 ? std::numeric_limits<uint64_t>::max() : (uint64_t{1} << bits) - 1};
  return {-static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1) - 1, (uint64_t{1} << (bits - 1)) - 1};
}

uint64_t encode_integer(Element e, int64_t value) {
  if (!is_integer(e)) return encode(e, static_cast<double>(value));
  return static_cast<uint64_t>(value);
}

uint64_t encode(Element e, double value) {
  switch (e) {
    case Element::kF16: return encode_half(value, DType::kFp16);
    case Element::kBf16: return encode_half(value, DType::kBf16);
    case Element::kF32: return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Element::kF64: return std::bit_cast<uint64_t>(value);
    case Element::kU64: return static_cast<uint64_t>(value);
    default: return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

double decode(Element e, const std::byte* from) {
  switch (e) {
    case Element::kI8: return load<int8_t>(from);
    case Element::kU8: return load<uint8_t>(from);
    case Element::kI16: return load<int16_t>(from);
    case Element::kU16: return load<uint16_t>(from);
    case Element::kI32: return load<int32_t>(from);
    case Element::kU32: return load<uint32_t>(from);
    case Element::kI64: return static_cast<double>(load<int64_t>(from));
    case Element::kU64: return static_cast<double>(load<uint64_t>(from));
    case Element::kF16: return decode16(load<uint16_t>(from), DType::kFp16);
    case Element::kBf16: return decode16(load<uint16_t>(from), DType::kBf16);
    case Element::kF32: return load<float>(from);
    case Element::kF64: return load<double>(from);
  }
  return 0;
}

double distance(Element e, const std::byte* a, const std::byte* b) {
  if (is_integer(e) && bytes_of(e) == 8) {
    const auto x = load<uint64_t>(a), y = load<uint64_t>(b);
    const bool less = row(e).is_signed ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    return static_cast<double>(less ? y - x : x - y);
  }
  const double x = decode(e, a), y = decode(e, b);
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  const double apart = std::fabs(x - y);
  return std::isnan(apart) ? HUGE_VAL : apart;
}

std::string shown(Element e, const std::byte* from) {
  if (e == Element::kI64) return fmt::format("{}", load<int64_t>(from));
  if (e == Element::kU64) return fmt::format("{}", load<uint64_t>(from));
  return fmt::format("{}", decode(e, from));
}

}  // namespace roofgen::check

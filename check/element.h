// The types an argument's elements may have, and their bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofgen::check {

enum class Element : uint8_t { kI8, kU8, kI16, kU16, kI32, kU32, kI64, kU64, kF16, kBf16, kF32, kF64 };

const char* to_string(Element element);  ///< "i8" ... "f64"
std::optional<Element> parse_element(std::string_view name);
const std::vector<std::string>& element_names();
uint32_t bytes_of(Element element);
bool is_integer(Element element);
/// The least and the largest whole number an integer type holds.
std::pair<int64_t, uint64_t> range_of(Element element);

/// The bits of a number, rounded to nearest even; of an integer type, of a whole number in its range.
uint64_t encode(Element element, double value);
uint64_t encode_integer(Element element, int64_t value);
/// The number that the first bytes at `from` hold. 64-bit integers beyond 2^53 lose their last bits.
double decode(Element element, const std::byte* from);
/// How far two are apart, and one as it is written; of all 64 bits of integers. NaN is infinitely far from all else.
double distance(Element element, const std::byte* a, const std::byte* b);
std::string shown(Element element, const std::byte* from);

}  // namespace roofgen::check

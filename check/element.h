// The element types of arguments, and their encoding.
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
/// The smallest and the largest value of an integer type.
std::pair<int64_t, uint64_t> range_of(Element element);

/// The bits of a number, rounded to nearest even. For integer types the number is an integer in their range.
uint64_t encode(Element element, double value);
uint64_t encode_integer(Element element, int64_t value);
/// Decodes one element. 64-bit integers above 2^53 lose their last bits.
double decode(Element element, const std::byte* from);
/// |a - b|, exact for 64-bit integers; infinite between NaN and a number.
double distance(Element element, const std::byte* a, const std::byte* b);
/// In decimal.
std::string shown(Element element, const std::byte* from);

}  // namespace roofgen::check

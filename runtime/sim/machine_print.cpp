// printf and assert as the device's library has them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/sim/machine.h"

namespace roofgen::sim {
namespace {

constexpr size_t kMaxText = 4096;  ///< of a format or a string; of one value that is printed

/// One conversion of a format: "%-8.3lf".
struct Conversion {
  std::string flags;  ///< without '%', length and letter
  int stars = 0;      ///< widths that are arguments
  bool wide = false;  ///< an integer of 64 bits
  char letter = 0;    ///< 0: not one that printf knows
  size_t length = 0;  ///< characters in the format
};

Conversion parse_conversion(std::string_view text) {
  Conversion c;
  size_t at = 1, number = 0;
  const auto is = [&](const char* any) { return at < text.size() && std::strchr(any, text[at]); };
  while (is("-+ #0123456789.*")) {
    if (text[at] == '*') ++c.stars;
    number = text[at] >= '0' && text[at] <= '9' ? number * 10 + static_cast<size_t>(text[at] - '0') : 0;
    if (number > kMaxText) return c;  // longer padding is refused
    c.flags += text[at++];
  }
  while (is("hlLqjzt")) c.wide |= text[at++] != 'h';
  if (!is("diuoxXcfFeEgGaAsp%")) return c;
  c.letter = text[at];
  c.length = at + 1;
  return c;
}

template <class... T>
std::string formatted(const std::string& spec, const int* widths, int stars, T... value) {
  char out[kMaxText + 64];
  int n = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  if (stars == 0)
    n = std::snprintf(out, sizeof out, spec.c_str(), value...);
  else if (stars == 1)
    n = std::snprintf(out, sizeof out, spec.c_str(), widths[0], value...);
  else
    n = std::snprintf(out, sizeof out, spec.c_str(), widths[0], widths[1], value...);
#pragma GCC diagnostic pop
  return std::string(out, static_cast<size_t>(std::clamp<int>(n, 0, sizeof out - 1)));
}

}  // namespace

void Machine::read_any(const Warp& w, uint64_t address, uint32_t bytes, uint32_t lane, std::byte* out) {
  if (address < kSharedWindowEnd) {
    read_shared(w, shared_offset(address, bytes, lane), bytes, lane, out, *this);
  } else if (address < kLocalWindowEnd) {
    uint32_t offset[kWarpSize];
    offset[lane] = local_offset(address, bytes, lane);
    LocalAccess e{{site(w), Op::kRead, 1u << lane, bytes}, offset};
    e.is_request = false;
    emit(e);
    std::memcpy(out, local_of(w, lane) + offset[lane], bytes);
  } else {
    read_device(w, address, bytes, lane, out, true);
  }
}

/// A string that ends with a zero; no more than kMaxText of it.
std::string Machine::read_text(const Warp& w, uint64_t address, uint32_t lane) {
  std::string out;
  while (out.size() < kMaxText) {
    std::byte b;
    read_any(w, address + out.size(), 1, lane, &b);
    if (b == std::byte{0}) break;
    out += static_cast<char>(b);
  }
  return out;
}

/// Values lie one after the other, each at a multiple of its size; numbers of less than 32 bits come as int, float as
/// double.
void Machine::print(Warp& w, const Inst& in, uint32_t mask) {
  require_order(first_lane(mask));
  uint32_t* count = row(w, in.d);
  for (uint32_t m = mask; m; m &= m - 1) {
    const uint32_t l = first_lane(m);
    const std::string format = read_text(w, wide_row(w, in.a)[l], l);
    uint64_t at = wide_row(w, in.b)[l];
    count[l] = 0;
    const auto next = [&]<class T>(T value) {
      at = (at + sizeof value - 1) / sizeof value * sizeof value;
      read_any(w, at, sizeof value, l, reinterpret_cast<std::byte*>(&value));
      at += sizeof value;
      ++count[l];
      return value;
    };
    std::string text;
    for (size_t i = 0; i < format.size();) {
      if (format[i] != '%') {
        text += format[i++];
        continue;
      }
      const Conversion c = parse_conversion(std::string_view(format).substr(i));
      if (!c.letter || c.stars > 2) {
        text += format[i++];
        continue;
      }
      i += c.length;
      int widths[2] = {0, 0};
      for (int s = 0; s < c.stars; ++s) widths[s] = std::clamp(next(int{}), -int{kMaxText}, int{kMaxText});
      const std::string spec = "%" + c.flags;
      if (c.letter == '%')
        text += '%';
      else if (std::strchr("fFeEgGaA", c.letter))
        text += formatted(spec + c.letter, widths, c.stars, next(double{}));
      else if (c.letter == 's')
        text += formatted(spec + 's', widths, c.stars, read_text(w, next(uint64_t{}), l).c_str());
      else if (c.letter == 'p')
        text += formatted(spec + 'p', widths, c.stars, reinterpret_cast<const void*>(next(uint64_t{})));
      else if (c.wide)
        text += formatted(spec + "ll" + c.letter, widths, c.stars, next(static_cast<long long>(0)));
      else
        text += formatted(spec + c.letter, widths, c.stars, next(int{}));
    }
    if (state_.printed && state_.printed->size() < kMaxPrintedBytes)
      state_.printed->append(text, 0, kMaxPrintedBytes - state_.printed->size());
  }
}

void Machine::assertion(const Warp& w, const Inst& in, uint32_t mask) {
  const uint32_t l = first_lane(mask);
  throw Fault{"assert",
              fmt::format("assertion '{}' failed at {}:{}", read_text(w, wide_row(w, in.a)[l], l),
                          read_text(w, wide_row(w, in.b)[l], l), row(w, in.c)[l]),
              l};
}

}  // namespace roofgen::sim

// Formats numbers with units for display.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace roofgen {

/// "34.4 GB": powers of 1000, as for bandwidths.
inline std::string bytes_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int i = 0;
  for (; i < 5 && std::fabs(bytes) >= 1000; ++i) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes,
                     i == 0 || std::fabs(bytes) >= 100 ? 0
                     : std::fabs(bytes) >= 10          ? 1
                                                       : 2,
                     units[i]);
}

/// "9.66 G": a count with a decimal prefix.
inline std::string count_text(double count) {
  const char* units[] = {"", " k", " M", " G", " T", " P", " E"};
  int i = 0;
  for (; i < 6 && std::fabs(count) >= 1000; ++i) count /= 1000;
  return fmt::format("{:.{}f}{}", count,
                     i == 0 || std::fabs(count) >= 100 ? 0
                     : std::fabs(count) >= 10          ? 1
                                                       : 2,
                     units[i]);
}

/// "1 launch", "3 launches", "2 CTAs".
inline std::string counted(double n, const std::string& what) {
  const bool sibilant = what.ends_with("ch") || what.ends_with("s");
  return fmt::format("{:g} {}{}", n, what, n == 1 ? "" : sibilant ? "es" : "s");
}

inline std::string time_text(double seconds) {
  if (seconds >= 1) return fmt::format("{:.3f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

/// "31.03", "0.125": FLOP per byte.
inline std::string intensity_text(double flop_per_byte) {
  return fmt::format("{:.{}f}", flop_per_byte, flop_per_byte < 0.9995 ? 3 : 2);
}

}  // namespace roofgen

// Targets of the compiler: "sm_90" is code for this architecture and later ones, "sm_90a" for this one alone, "sm_100f"
// for its family (CUDA C++ Programming Guide, feature set compiler targets).
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace roofgen {

struct Target {
  enum class Features { kPortable, kFamily, kOwn };
  int arch = 0;  ///< 100: compute capability 10.0
  Features features = Features::kPortable;
  bool is_portable() const { return features == Features::kPortable; }
  std::string plain() const { return "sm_" + std::to_string(arch); }
  /// Whether machine code for the target runs on a device of this architecture.
  bool runs_on(int device_arch) const {
    return features == Features::kOwn ? device_arch == arch : device_arch >= arch && device_arch / 10 == arch / 10;
  }
};

inline std::optional<Target> parse_target(std::string_view name) {
  if (!name.starts_with("sm_")) return std::nullopt;
  Target out;
  const auto end = std::from_chars(name.data() + 3, name.data() + name.size(), out.arch).ptr;
  const std::string_view suffix(end, static_cast<size_t>(name.data() + name.size() - end));
  if (out.arch < 10 || out.arch > 999 || (!suffix.empty() && suffix != "a" && suffix != "f")) return std::nullopt;
  if (suffix == "f" && out.arch < 100) return std::nullopt;  // families begin with sm_100
  if (!suffix.empty()) out.features = suffix == "a" ? Target::Features::kOwn : Target::Features::kFamily;
  return out;
}

/// "sm_90a", "sm_100f": code that uses more than the portable instructions.
inline bool is_specific(std::string_view name) {
  const auto target = parse_target(name);
  return target && !target->is_portable();
}

}  // namespace roofgen

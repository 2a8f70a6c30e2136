// Fat binaries as nvcc makes them, from PTX.
#pragma once

#include <cstdint>
#include <string>

namespace roofgen::test {

inline constexpr unsigned kPtx = 1, kMachineCode = 2;
inline constexpr unsigned long long kPlain = 0x11, kLz4 = 0x2011, kZstd = 0x8011;

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// An entry of 64 bytes and its content.
inline std::string entry(unsigned kind, unsigned arch, unsigned long long flags, const std::string& content,
                         size_t original) {
  const bool packed = flags != kPlain;
  return raw<uint16_t>(static_cast<uint16_t>(kind)) + raw<uint16_t>(0x101) + raw<uint32_t>(64) +
         raw<uint64_t>(content.size()) + raw<uint32_t>(packed ? static_cast<uint32_t>(content.size()) : 0) +
         raw<uint32_t>(0) + raw<uint16_t>(0) + raw<uint16_t>(9) + raw<uint32_t>(arch) + raw<uint64_t>(0) +
         raw<uint64_t>(flags) + raw<uint64_t>(0) + raw<uint64_t>(packed ? original : 0) + content;
}
inline std::string container(const std::string& entries) {
  return raw<uint32_t>(0xba55ed50) + raw<uint16_t>(1) + raw<uint16_t>(16) + raw<uint64_t>(entries.size()) + entries;
}

/// What host code of nvcc passes to the runtime.
struct FatbinWrapper {
  unsigned magic = 0x466243b1, version = 1;
  const void *data = nullptr, *name = nullptr;
};

}  // namespace roofgen::test

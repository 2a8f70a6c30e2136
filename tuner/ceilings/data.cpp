#include "tuner/ceilings/data.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "generator/ops/float16.h"

namespace roofgen::ceilings {
namespace {

uint64_t mix(uint64_t x) {  // the finalizer of splitmix64
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/// Near N(0, 1): the sum of four uniform numbers, of 16 bits each, scaled to variance 1.
double normal(uint64_t i) {
  const uint64_t h = mix(0x9e3779b97f4a7c15u * (i + 1));
  double sum = 0;
  for (int k = 0; k < 64; k += 16) sum += static_cast<double>(h >> k & 0xffff) + 0.5;
  return (sum / 65536 - 2) * std::sqrt(3.0);
}

/// e4m3: four significant bits, normal from 2^-6 on.
constexpr Format16 kE4m3{4, -6};

uint8_t encode_e4m3(double x) {
  const double a = std::fabs(x);
  const int e = std::ilogb(a);
  return static_cast<uint8_t>((x < 0 ? 0x80 : 0) | (e + 7) << 3 | static_cast<int>((std::ldexp(a, -e) - 1) * 8));
}

/// Calls `word(i)` for each word of `size` bytes that [offset, offset + out.size()) touches and copies its part.
template <class Word, class F>
void fill_words(uint64_t offset, std::span<std::byte> out, const F& word) {
  constexpr uint64_t kSize = sizeof(Word);
  for (uint64_t at = offset; at < offset + out.size();) {
    const uint64_t i = at / kSize, begin = at % kSize, count = std::min(kSize - begin, offset + out.size() - at);
    const Word w = word(i);
    std::memcpy(out.data() + (at - offset), reinterpret_cast<const std::byte*>(&w) + begin, count);
    at += count;
  }
}

}  // namespace

uint32_t pattern_sum(uint64_t n, uint32_t seed) {
  const auto sum = [&](uint64_t end) {
    uint32_t s = 0;
    for (uint64_t i = 0; i < end; ++i) s += pattern_word(i, seed);
    return s;
  };
  const auto periods = static_cast<uint32_t>(n / kPatternPeriod);
  return (periods ? periods * sum(kPatternPeriod) : 0) + sum(n % kPatternPeriod);
}

Fill pattern_fill(uint32_t seed) {
  return [seed](uint64_t offset, std::span<std::byte> out) {
    fill_words<uint32_t>(offset, out, [&](uint64_t i) { return pattern_word(i, seed); });
  };
}

int operand_parts(const std::string& kind) {
  return kind == "int8" || kind == "fp8" ? 4 : kind == "tf32" || kind == "fp64" ? 1 : 2;
}
int operand_bytes(const std::string& kind) { return kind == "fp64" ? 8 : 4; }

double operand(const std::string& kind, uint64_t i, int part) {
  const double z = normal(i * 4 + static_cast<uint64_t>(part));
  const double x = std::copysign(std::max(std::fabs(z), 0x1p-6), z);
  if (kind == "bf16") return round_to(x, format_of(DType::kBf16));
  if (kind == "fp8") return round_to(x, kE4m3);
  if (kind == "int8") return std::copysign(std::max(1.0, std::fabs(std::nearbyint(36 * x))), x);
  if (kind == "tf32") return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & ~0x1fffu);
  if (kind == "fp64") return x;
  return round_to(x, format_of(DType::kFp16));
}

Fill operand_fill(const std::string& kind) {
  return [kind](uint64_t offset, std::span<std::byte> out) {
    if (kind == "fp64") {
      fill_words<double>(offset, out, [&](uint64_t i) { return operand(kind, i, 0); });
      return;
    }
    fill_words<uint32_t>(offset, out, [&](uint64_t i) -> uint32_t {
      if (kind == "tf32") return std::bit_cast<uint32_t>(static_cast<float>(operand(kind, i, 0)));
      uint32_t word = 0;
      const int parts = operand_parts(kind), bits = 32 / parts;
      for (int part = 0; part < parts; ++part) {
        const double x = operand(kind, i, part);
        const uint32_t code = kind == "int8"  ? static_cast<uint8_t>(static_cast<int8_t>(x))
                              : kind == "fp8" ? encode_e4m3(x)
                                              : encode16(x, kind == "bf16" ? DType::kBf16 : DType::kFp16);
        word |= code << (bits * part);
      }
      return word;
    });
  };
}

}  // namespace roofgen::ceilings

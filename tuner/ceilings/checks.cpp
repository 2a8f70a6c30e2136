
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "generator/ops/float16.h"
#include "tuner/ceilings/data.h"

namespace roofgen::ceilings {
namespace {

/// Larger arrays are sampled in windows: at both ends and evenly in between.
constexpr uint64_t kWhole = uint64_t{4} << 20;
constexpr uint64_t kWindow = uint64_t{64} << 10;
constexpr uint64_t kWindows = 32;

/// ex2 of the special function unit is exact to 2 ulp (PTX ISA), and a sum of some ten thousand terms in FP32 to a few
/// 1e-5: one missing iteration in a thousand fails.
constexpr double kMufuTolerance = 1e-3;
/// Root mean square error over a warp's outputs. Tensor cores truncate, up to 2^-23 of the sum per addition: over the 2
/// 10^4 additions of a launch a few 1e-3 at worst. FP16 sums are reset after 16 additions of 2^-11. Operands are exact.
constexpr double kMmaTolerance = 1e-2;
constexpr double kMmaTolerance64 = 1e-9;

template <class T>
Result<std::vector<T>> read_array(const OutputReader& read, uint64_t first, uint64_t count) {
  std::vector<T> out(count);
  ROOFGEN_CHECK(read(first * sizeof(T), std::as_writable_bytes(std::span(out))));
  return out;
}

/// Compares n words with expected(i).
template <class F>
Result<std::string> check_words(const OutputReader& read, uint64_t n, const F& expected) {
  const uint64_t window = kWindow / 4, last = n > window ? n - window : 0;
  const bool whole = 4 * n <= kWhole;
  for (uint64_t k = 0; k < (whole ? 1 : kWindows); ++k) {
    const uint64_t first = whole ? 0 : last * k / (kWindows - 1), count = whole ? n : std::min(window, n - first);
    ROOFGEN_TRY(const std::vector<uint32_t> words, read_array<uint32_t>(read, first, count));
    for (uint64_t i = 0; i < count; ++i)
      if (const uint32_t want = expected(first + i); words[i] != want)
        return fmt::format("word {} of {} is 0x{:08x}, 0x{:08x} was expected", first + i, n, words[i], want);
  }
  return std::string();
}

uint32_t last_pass(const MicroKernel& k) { return static_cast<uint32_t>(k.integer("passes") - 1); }
uint64_t words_of(const MicroKernel& k) { return static_cast<uint64_t>(k.integer("n")); }

/// Outputs that are equal for every CTA: `one` is a single CTA's.
Result<std::string> check_ctas(const MicroKernel& k, const OutputReader& read, const std::vector<float>& one,
                               double tolerance) {
  for (int64_t cta = 0; cta < k.integer("ctas"); ++cta) {
    ROOFGEN_TRY(const std::vector<float> got,
                read_array<float>(read, static_cast<uint64_t>(cta) * one.size(), one.size()));
    for (size_t i = 0; i < one.size(); ++i)
      if (!(std::fabs(got[i] - one[i]) <= tolerance * std::fabs(one[i])))
        return fmt::format("output {} of CTA {} is {:.9g}, {:.9g} was expected", i, cta, got[i], one[i]);
  }
  return std::string();
}

/// The float argument of a launch.
float float_arg(const MicroKernel& k, const std::string& name) {
  for (const Arg& arg : k.launch.args)
    if (arg.name == name) return std::bit_cast<float>(static_cast<uint32_t>(arg.bits));
  return 0;
}

}  // namespace

Result<std::string> check_read(const MicroKernel& k, const OutputReader& read) {
  const uint64_t threads = static_cast<uint64_t>(k.integer("ctas") * k.integer("threads"));
  ROOFGEN_TRY(const std::vector<uint32_t> sums, read_array<uint32_t>(read, 0, threads));
  uint32_t got = 0;
  for (uint32_t s : sums) got += s;
  const uint32_t want = (last_pass(k) + 1) * pattern_sum(words_of(k), stream_seed("x"));
  if (got == want) return std::string();
  return fmt::format("the words read sum to 0x{:08x}, 0x{:08x} was expected", got, want);
}

Result<std::string> check_write(const MicroKernel& k, const OutputReader& read) {
  const uint32_t seed = stream_seed("out") + last_pass(k) * kPassSeed;
  return check_words(read, words_of(k), [&](uint64_t i) { return pattern_word(i, seed); });
}

Result<std::string> check_copy(const MicroKernel& k, const OutputReader& read) {
  return check_words(read, words_of(k), [&](uint64_t i) { return pattern_word(i, stream_seed("x")) + last_pass(k); });
}

Result<std::string> check_triad(const MicroKernel& k, const OutputReader& read) {
  const float factor = float_arg(k, "scale") + static_cast<float>(last_pass(k));
  return check_words(read, words_of(k), [&](uint64_t i) {
    const float x = std::bit_cast<float>(pattern_word(i, stream_seed("x"))),
                y = std::bit_cast<float>(pattern_word(i, stream_seed("y")));
    return std::bit_cast<uint32_t>(std::fmaf(factor, y, x));
  });
}

Result<std::string> check_smem(const MicroKernel& k, const OutputReader& read) {
  const auto threads = static_cast<uint64_t>(k.integer("threads")), unroll = static_cast<uint64_t>(k.integer("unroll"));
  const auto trips = static_cast<uint32_t>(k.integer("trips"));
  return check_words(read, static_cast<uint64_t>(k.integer("ctas")) * threads, [&](uint64_t i) {
    uint32_t sum = 0;
    for (uint64_t u = 0; u < unroll; ++u)
      for (uint64_t word = 0; word < 4; ++word)
        sum += pattern_word((u * threads + (i % threads + 32) % threads) * 4 + word, stream_seed("x"));
    return trips * sum;
  });
}

Result<std::string> check_fma(const MicroKernel& k, const OutputReader& read) {
  const float up = float_arg(k, "up"), down = float_arg(k, "down"), add = float_arg(k, "add"),
              back = float_arg(k, "back");
  std::vector<float> one(static_cast<size_t>(k.integer("chains") * k.integer("threads")));
  const int64_t pairs = k.integer("trips") * k.integer("unroll") / 2;
  for (size_t i = 0; i < one.size(); ++i) {
    float v = std::bit_cast<float>(pattern_word(i, stream_seed("x")));
    for (int64_t p = 0; p < pairs; ++p) v = std::fmaf(std::fmaf(v, up, add), down, back);
    one[i] = v;
  }
  return check_ctas(k, read, one, 0);
}

Result<std::string> check_mufu(const MicroKernel& k, const OutputReader& read) {
  const float step = float_arg(k, "step");
  std::vector<float> one(static_cast<size_t>(k.integer("chains") * k.integer("threads")));
  const int64_t count = k.integer("trips") * k.integer("unroll");
  for (size_t i = 0; i < one.size(); ++i) {
    float at = std::bit_cast<float>(pattern_word(i, stream_seed("x"))) - 2, sum = 0;
    for (int64_t n = 0; n < count; ++n, at += step) sum += std::exp2(at);
    one[i] = sum;
  }
  return check_ctas(k, read, one, kMufuTolerance);
}

// Fragments of mma.sync (PTX ISA), of e elements a register, for lane l, g = l / 4, t = l % 4:
//   A register r: row g + 8 (r % 2), columns e t + 4 e (r / 2) ..     B register r: rows e t + 4 e r .., column g
//   C element r: row g + 8 (r / 2), column 2 t + r % 2
Result<std::string> check_mma(const MicroKernel& k, const OutputReader& read) {
  const std::string kind = k.text("kind");
  const int64_t rows = k.integer("mma_m"), depth = k.integer("mma_k"), a_regs = k.integer("a_regs"),
                b_regs = k.integer("b_regs"), m = k.integer("tiles_m"), n = k.integer("tiles_n"),
                parts = operand_parts(kind), distinct = k.integer("frag_warps"),
                warps = k.integer("ctas") * k.integer("threads") / 32, outputs = rows * 8 / 32;
  const double count = static_cast<double>(k.integer("trips") * k.integer("unroll"));
  const auto element = [&](int64_t warp, int64_t reg, int64_t lane, int64_t part) {
    return operand(kind, static_cast<uint64_t>((warp * (m * a_regs + n * b_regs) + reg) * 32 + lane),
                   static_cast<int>(part));
  };
  for (int64_t warp = 0; warp < std::min(warps, distinct); ++warp) {
    // The sum over all pairs of fragments is the product of the sums.
    std::vector<double> a(static_cast<size_t>(rows * depth)), b(static_cast<size_t>(depth * 8)),
        c(static_cast<size_t>(rows * 8));
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t g = lane / 4, t = lane % 4;
        for (int64_t tile = 0; tile < m; ++tile)
          for (int64_t r = 0; r < a_regs; ++r)
            a[static_cast<size_t>((g + 8 * (r % 2)) * depth + parts * t + 4 * parts * (r / 2) + part)] +=
                element(warp, tile * a_regs + r, lane, part);
        for (int64_t tile = 0; tile < n; ++tile)
          for (int64_t r = 0; r < b_regs; ++r)
            b[static_cast<size_t>((parts * t + 4 * parts * r + part) * 8 + g)] +=
                element(warp, m * a_regs + tile * b_regs + r, lane, part);
      }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 8; ++j)
        for (int64_t p = 0; p < depth; ++p)
          c[static_cast<size_t>(i * 8 + j)] +=
              a[static_cast<size_t>(i * depth + p)] * b[static_cast<size_t>(p * 8 + j)];
    for (int64_t w = warp; w < warps; w += distinct) {
      const auto first = static_cast<uint64_t>(w * 32 * outputs), size = static_cast<uint64_t>(32 * outputs);
      std::vector<double> got;
      if (kind == "fp64") {
        ROOFGEN_TRY(got, read_array<double>(read, first, size));
      } else if (kind == "int8") {
        ROOFGEN_TRY(const std::vector<int32_t> words, read_array<int32_t>(read, first, size));
        got.assign(words.begin(), words.end());
      } else {
        ROOFGEN_TRY(const std::vector<float> words, read_array<float>(read, first, size));
        got.assign(words.begin(), words.end());
      }
      double error = 0, norm = 0;
      for (int64_t lane = 0; lane < 32; ++lane)
        for (int64_t r = 0; r < outputs; ++r) {
          double want = count * c[static_cast<size_t>((lane / 4 + 8 * (r / 2)) * 8 + 2 * (lane % 4) + r % 2)];
          const double have = got[static_cast<size_t>(lane * outputs + r)];
          if (kind == "int8")  // sums wrap; 2^53 holds them before
            want = static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(want)));
          error += (have - want) * (have - want), norm += want * want;
        }
      const double relative = std::sqrt(error / norm), most = kind == "int8"   ? 0
                                                              : kind == "fp64" ? kMmaTolerance64
                                                                               : kMmaTolerance;
      if (!(relative <= most))
        return fmt::format("warp {} is {:.3g} away from its sum, {:g} is allowed", w, relative, most);
    }
  }
  return std::string();
}

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

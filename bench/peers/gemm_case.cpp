#include "bench/peers/gemm_case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

namespace roofgen::peers {
namespace {

/// exponent bits, mantissa bits, bias. e4m3 has no infinity; its largest number is 448.
struct Layout {
  int exponent, mantissa, bias;
};
Layout layout(Format format) {
  constexpr Layout kLayouts[] = {{8, 7, 127}, {5, 10, 15}, {4, 3, 7}};
  return kLayouts[static_cast<size_t>(format)];
}

/// Distance to the next number of the format at |x|.
double ulp(Format format, double x) {
  const Layout l = layout(format);
  const int exponent = x == 0 ? 1 - l.bias : std::max(std::ilogb(x), 1 - l.bias);
  return std::ldexp(1.0, exponent - l.mantissa);
}

uint16_t encode(Format format, double x) {
  const Layout l = layout(format);
  const double step = ulp(format, x);
  const double rounded = std::nearbyint(std::fabs(x) / step) * step;
  uint16_t bits = 0;
  if (rounded > 0) {
    const int exponent = std::max(std::ilogb(rounded), 1 - l.bias);
    const auto mantissa = static_cast<uint16_t>(std::ldexp(rounded, l.mantissa - exponent));
    // The hidden one of a normal number adds one to the exponent field.
    bits = static_cast<uint16_t>(((exponent + l.bias - 1) << l.mantissa) + mantissa);
  }
  return static_cast<uint16_t>(bits | (std::signbit(x) ? 1 << (l.exponent + l.mantissa) : 0));
}

constexpr int kTableBits = 12;
using Table = std::array<uint16_t, 1 << kTableBits>;

/// Quantiles of N(0,1) in equal steps of probability, by bisection on the distribution function.
Table make_table(Format format) {
  Table table{};
  for (size_t i = 0; i < table.size(); ++i) {
    const double p = (static_cast<double>(i) + 0.5) / static_cast<double>(table.size());
    double low = -9, high = 9;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      (0.5 * std::erfc(-middle / std::numbers::sqrt2) < p ? low : high) = middle;
    }
    table[i] = encode(format, low);
  }
  return table;
}

const Table& table(Format format) {
  static const Table tables[] = {make_table(Format::kBf16), make_table(Format::kFp16), make_table(Format::kFp8)};
  return tables[static_cast<int>(format)];
}

/// A bijection of 64 bits that spreads counters (the finaliser of splitmix64).
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// In the order of the enums.
constexpr std::array kEpilogues{"none", "bias", "relu", "gelu-bias"};
constexpr std::array kFormats{"bf16", "fp16", "fp8"};

template <class E, size_t N>
Result<E> parse(const std::string& text, const std::array<const char*, N>& names, const char* what) {
  const auto at = std::find(names.begin(), names.end(), text);
  if (at != names.end()) return static_cast<E>(at - names.begin());
  return Error{Exit::kUsage, fmt::format("unknown {} \"{}\"; known are {}", what, text, fmt::join(names, ", "))};
}

}  // namespace

const char* to_string(Epilogue epilogue) { return kEpilogues[static_cast<size_t>(epilogue)]; }
const char* to_string(Format format) { return kFormats[static_cast<size_t>(format)]; }
Result<Epilogue> parse_epilogue(const std::string& text) { return parse<Epilogue>(text, kEpilogues, "epilogue"); }
Result<Format> parse_format(const std::string& text) { return parse<Format>(text, kFormats, "dtype"); }
size_t element_bytes(Format format) { return format == Format::kFp8 ? 1 : 2; }
Format result_format(Format format) { return format == Format::kFp16 ? Format::kFp16 : Format::kBf16; }

Result<GemmCase> plain_case(int64_t m, int64_t n, int64_t k, Format format, Epilogue epilogue) {
  const int64_t multiple = format == Format::kFp8 ? 16 : 8;
  for (int64_t size : {m, n, k})
    if (size < multiple || size % multiple != 0 || size > (1 << 20))
      return Error{Exit::kUsage,
                   fmt::format("{} x {} x {}: multiples of {} up to {} were expected", m, n, k, multiple, 1 << 20)};
  GemmCase c;
  c.name = fmt::format("{}x{}x{} {} {}", m, n, k, to_string(format), to_string(epilogue));
  c.m = m, c.n = n, c.k = k;
  c.format = format;
  c.epilogue = epilogue;
  c.a_pitch = c.b_pitch = k;
  c.d_pitch = n;
  c.a_stride = c.a_outer = m * k;
  c.b_stride = c.b_outer = n * k;
  c.d_stride = c.d_outer = m * n;
  return c;
}

std::vector<GemmCase> suite(Format format) {
  std::vector<GemmCase> out;
  for (int64_t size : {4096, 8192}) out.push_back(*plain_case(size, size, size, format, Epilogue::kNone));
  for (Epilogue e : {Epilogue::kBias, Epilogue::kRelu, Epilogue::kGeluBias})
    out.push_back(*plain_case(4096, 4096, 4096, format, e));
  out.push_back(*plain_case(512, 12288, 3072, format, Epilogue::kGeluBias));
  return out;
}

Result<std::vector<GemmCase>> attention_cases(int64_t length, int64_t kv_length, int64_t d, int64_t batch,
                                              int64_t heads, Format format) {
  if (format == Format::kFp8) return Error{Exit::kUsage, "attention in fp8 is not there; bf16 or fp16 was expected"};
  for (int64_t size : {length, kv_length, d, batch, heads})
    if (size < 1 || size > (1 << 24))
      return Error{Exit::kUsage, fmt::format("{}: a size from 1 to 2^24 was expected", size)};
  if (d % 8 != 0) return Error{Exit::kUsage, fmt::format("d is {}; a multiple of 8 was expected", d)};
  const int64_t pitch = (kv_length + 7) / 8 * 8, row = heads * d;
  GemmCase s;
  s.name = fmt::format("QK^T L={} kv_len={} d={} batch={} heads={} {}", length, kv_length, d, batch, heads,
                       to_string(format));
  s.m = length, s.n = kv_length, s.k = d;
  s.format = format;
  s.batch = heads, s.outer = batch;
  s.a_pitch = s.b_pitch = row;
  s.d_pitch = pitch;
  s.a_stride = s.b_stride = d;
  s.d_stride = length * pitch;
  s.a_outer = length * row, s.b_outer = kv_length * row, s.d_outer = heads * length * pitch;
  s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  GemmCase o = s;
  o.name =
      fmt::format("PV L={} kv_len={} d={} batch={} heads={} {}", length, kv_length, d, batch, heads, to_string(format));
  o.n = d, o.k = kv_length;
  o.b_is_kn = true;
  o.scale = 1;
  o.a_pitch = pitch, o.a_stride = length * pitch, o.a_outer = heads * length * pitch;
  o.d_pitch = row, o.d_stride = d, o.d_outer = length * row;
  return std::vector<GemmCase>{s, o};
}

uint16_t normal_bits(Format format, uint64_t seed, uint64_t index) {
  return table(format)[mix(mix(seed) ^ index) & ((1 << kTableBits) - 1)];
}

double value_of(Format format, uint16_t bits) {
  const Layout l = layout(format);
  const int field = (bits >> l.mantissa) & ((1 << l.exponent) - 1);
  const int mantissa = bits & ((1 << l.mantissa) - 1);
  const bool negative = (bits >> (l.exponent + l.mantissa)) & 1;
  if (format != Format::kFp8 && field == (1 << l.exponent) - 1)
    return std::nan("");  // infinities too: neither is an answer
  if (format == Format::kFp8 && (bits & 0x7f) == 0x7f) return std::nan("");
  const double magnitude = field == 0 ? std::ldexp(mantissa, 1 - l.bias - l.mantissa)
                                      : std::ldexp(mantissa + (1 << l.mantissa), field - l.bias - l.mantissa);
  return negative ? -magnitude : magnitude;
}

double apply(Epilogue epilogue, double sum, double bias) {
  const double x = epilogue == Epilogue::kBias || epilogue == Epilogue::kGeluBias ? sum + bias : sum;
  switch (epilogue) {
    case Epilogue::kRelu: return std::max(x, 0.0);
    case Epilogue::kGeluBias:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    default: return x;
  }
}

std::vector<Place> places(const GemmCase& c, int count) {
  std::vector<Place> out;
  for (int64_t m : {int64_t{0}, c.m - 1})
    for (int64_t n : {int64_t{0}, c.n - 1}) {
      out.push_back({0, 0, m, n});
      out.push_back({c.outer - 1, c.batch - 1, m, n});
    }
  for (uint64_t i = 0; static_cast<int>(out.size()) < count; ++i) {
    const auto below = [&](int64_t limit, uint64_t salt) {
      return static_cast<int64_t>(mix(mix(i) + salt) % static_cast<uint64_t>(limit));
    };
    out.push_back({below(c.outer, 1), below(c.batch, 2), below(c.m, 3), below(c.n, 4)});
  }
  return out;
}

double error_over_tolerance(const GemmCase& c, const Operands& operands, const std::vector<Place>& where) {
  std::vector<double> exact, got, sums;
  double squares = 0;
  for (const Place& p : where) {
    const int64_t a = p.outer * c.a_outer + p.product * c.a_stride + p.m * c.a_pitch,
                  b = p.outer * c.b_outer + p.product * c.b_stride;
    double sum = 0;
    for (int64_t k = 0; k < c.k; ++k)
      sum += value_of(c.format, operands.a[static_cast<size_t>(a + k)]) *
             value_of(c.format,
                      operands.b[static_cast<size_t>(b + (c.b_is_kn ? k * c.b_pitch + p.n : p.n * c.b_pitch + k))]);
    sum *= c.scale;
    squares += sum * sum;
    const Format result = result_format(c.format);
    const double bias = operands.bias.empty() ? 0 : value_of(result, operands.bias[static_cast<size_t>(p.n)]);
    exact.push_back(apply(c.epilogue, sum, bias));
    got.push_back(value_of(
        result, operands.d[static_cast<size_t>(p.outer * c.d_outer + p.product * c.d_stride + p.m * c.d_pitch + p.n)]));
  }
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(where.size(), 1)));
  const double depth = static_cast<double>(c.k);
  const double share =
      c.format == Format::kFp8 ? depth / 32 * std::ldexp(1.0, -13) : std::sqrt(depth) * std::ldexp(1.0, -16);
  double worst = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double ratio = std::fabs(got[i] - exact[i]) / (ulp(result_format(c.format), exact[i]) + share * rms);
    worst = std::isnan(ratio) ? INFINITY : std::max(worst, ratio);
  }
  return worst;
}

}  // namespace roofgen::peers

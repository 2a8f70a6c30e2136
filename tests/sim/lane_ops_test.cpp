// Every lane-wise instruction, run from PTX, against plain host arithmetic on edge cases. The builds for wider host
// instruction sets must match the portable build bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <sstream>

#include "runtime/sim/machine.h"
#include "runtime/sim/opcode_table.h"
#include "support.h"
#include "tests/support/words.h"

namespace roofgen::sim_test::lane_ops_test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using s32 = int32_t;
using s64 = int64_t;

/// Operand kinds, destination first as in "rrr": r 32-bit, d 64-bit, h 16-bit.
std::string reg(char kind, int i) { return (kind == 'r' ? "%r" : kind == 'd' ? "%rd" : "%rs") + std::to_string(i); }

/// Runs `op` with the shape over rows of source values; returns destination values.
std::vector<u64> run_op(const std::string& op, const std::string& shape, const std::vector<std::vector<u64>>& rows) {
  size_t sources = shape.size() - 1;
  std::string body =
      "ld.param.u64 %rd40, [p0];\nld.param.u64 %rd41, [p1];\nmov.u32 %r40, %ctaid.x;\n"
      "mad.lo.s32 %r41, %r40, 32, 0;\nmov.u32 %r42, %tid.x;\nadd.s32 %r41, %r41, %r42;\n"
      "mul.wide.u32 %rd42, %r41, " +
      std::to_string(8 * sources) +
      ";\nadd.s64 %rd43, %rd40, %rd42;\n"
      "mul.wide.u32 %rd44, %r41, 8;\nadd.s64 %rd45, %rd41, %rd44;\n";
  std::string call = op + " " + reg(shape[0], 1);
  for (size_t i = 0; i < sources; ++i) {
    char kind = shape[i + 1];
    std::string r = reg(kind, static_cast<int>(i) + 2);
    const char* width = kind == 'r' ? "b32" : kind == 'd' ? "b64" : "b16";
    body += std::string("ld.global.") + width + " " + r + ", [%rd43+" + std::to_string(8 * i) + "];\n";
    call += ", " + r;
  }
  const char* width = shape[0] == 'r' ? "b32" : shape[0] == 'd' ? "b64" : "b16";
  body += call + ";\nmov.b64 %rd50, 0;\nst.global.b64 [%rd45], %rd50;\nst.global." + std::string(width) + " [%rd45], " +
          reg(shape[0], 1) + ";\n";
  Bench bench;
  EXPECT_EQ(bench.load(kernel_text(2, body)), "") << op;
  u32 ctas = static_cast<u32>((rows.size() + 31) / 32);
  std::vector<u64> in;
  for (size_t i = 0; i < size_t{ctas} * 32; ++i)
    for (size_t s = 0; s < sources; ++s) in.push_back(rows[i % rows.size()][s]);
  DevicePtr out = bench.poisoned(u64{ctas} * 32 * 8);
  bench.arg(bench.buffer(in)).arg(out);
  RunResult r = bench.run({ctas, 1, 1}, {32, 1, 1});
  for (const Finding& f : r.findings) ADD_FAILURE() << op << ": " << f.message;
  auto result = bench.read<u64>(out, size_t{ctas} * 32);
  result.resize(rows.size());
  return result;
}

const std::vector<u64> kInts = test::numbers(
    "0 1 2 3 7 31 32 33 0x7f 0x80 0xff 0x7fff 0x8000 0xffff 0x12345678 0x7fffffff 0x80000000 0xfffffffe 0xffffffff "
    "0x8000000000000000 0x7fffffffffffffff 0xffffffffffffffff 0x123456789abcdef0 0xffffffff00000000");
std::vector<float> float_edges() {
  std::istringstream in(
      "0 -0 1 -1 0.5 1.5 2.5 -2.5 3.14159265 1e-38 -1e-40 1e-45 3.4e38 -3.4e38 16777216 8388607.5 65504 65520 "
      "6.1e-5 1e10 inf -inf nan");
  std::vector<float> out;
  for (std::string word; in >> word;) out.push_back(std::strtof(word.c_str(), nullptr));
  return out;
}

std::vector<std::vector<u64>> tuples(const std::vector<u64>& values, size_t n, u64 mask) {
  std::vector<std::vector<u64>> rows;
  std::mt19937_64 rng(11);
  if (n <= 2) {
    for (u64 a : values)
      for (u64 b : values) {
        rows.push_back({a & mask, b & mask});
        if (n == 1) break;
      }
  } else {
    for (int i = 0; i < 2000; ++i) {
      std::vector<u64> row;
      for (size_t k = 0; k < n; ++k) row.push_back(values[rng() % values.size()] & mask);
      rows.push_back(row);
    }
  }
  return rows;
}
std::vector<u64> float_bits() {
  std::vector<u64> v;
  for (float f : float_edges()) v.push_back(std::bit_cast<u32>(f));
  std::mt19937 rng(3);
  for (int i = 0; i < 20; ++i) v.push_back(rng());
  return v;
}
u32 canonical(float x) { return std::isnan(x) ? 0x7fffffffu : std::bit_cast<u32>(x); }

void check(const std::string& op, const std::string& shape, const std::vector<std::vector<u64>>& rows,
           const std::function<u64(const std::vector<u64>&)>& expect) {
  auto got = run_op(op, shape, rows);
  int shown = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    u64 want = expect(rows[i]);
    if (got[i] == want || ++shown > 3) continue;
    std::string in;
    char text[32];
    for (u64 v : rows[i]) std::snprintf(text, sizeof text, " %#llx", static_cast<unsigned long long>(v)), in += text;
    ADD_FAILURE() << op << in << ": got " << std::hex << got[i] << ", expected " << want;
  }
}

struct IntCase {
  const char* op;
  const char* shape;
  std::function<u64(u64, u64, u64)> expect;
};

TEST(LaneOps, Integers) {
  auto u = [](u64 x) { return static_cast<u32>(x); };
  auto s = [](u64 x) { return static_cast<s32>(x); };
  const std::vector<IntCase> cases = {
      {"add.s32", "rrr", [=](u64 a, u64 b, u64) { return u(a + b); }},
      {"add.s64", "ddd", [=](u64 a, u64 b, u64) { return a + b; }},
      {"add.sat.s32", "rrr",
       [=](u64 a, u64 b, u64) { return u(u64(std::clamp<s64>(s64{s(a)} + s(b), INT32_MIN, INT32_MAX))); }},
      {"sub.u32", "rrr", [=](u64 a, u64 b, u64) { return u(a - b); }},
      {"sub.u16", "hhh", [=](u64 a, u64 b, u64) { return static_cast<uint16_t>(a - b); }},
      {"mul.lo.s32", "rrr", [=](u64 a, u64 b, u64) { return u(a * b); }},
      {"mul.lo.s64", "ddd", [=](u64 a, u64 b, u64) { return a * b; }},
      {"mul.hi.u32", "rrr", [=](u64 a, u64 b, u64) { return u(u64{u(a)} * u(b) >> 32); }},
      {"mul.hi.s32", "rrr", [=](u64 a, u64 b, u64) { return u(u64(s64{s(a)} * s(b)) >> 32); }},
      {"mul.hi.u64", "ddd",
       [=](u64 a, u64 b, u64) { return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64); }},
      {"mul.hi.s64", "ddd",
       [=](u64 a, u64 b, u64) { return static_cast<u64>(static_cast<__int128>(s64(a)) * s64(b) >> 64); }},
      {"mul.wide.s32", "drr", [=](u64 a, u64 b, u64) { return u64(s64{s(a)} * s(b)); }},
      {"mul.wide.u16", "rhh", [=](u64 a, u64 b, u64) { return u((a & 0xffff) * (b & 0xffff)); }},
      {"mad.lo.s32", "rrrr", [=](u64 a, u64 b, u64 c) { return u(a * b + c); }},
      {"mad.wide.u32", "drrd", [=](u64 a, u64 b, u64 c) { return u64{u(a)} * u(b) + c; }},
      {"div.u32", "rrr", [=](u64 a, u64 b, u64) { return u(b) ? u(a) / u(b) : ~0u; }},
      {"div.s32", "rrr", [=](u64 a, u64 b, u64) { return s(b) == 0 ? ~0u : u(u64(s64{s(a)} / s(b))); }},
      {"rem.s32", "rrr", [=](u64 a, u64 b, u64) { return s(b) == 0 ? u(a) : u(u64(s64{s(a)} % s(b))); }},
      {"rem.u64", "ddd", [=](u64 a, u64 b, u64) { return b ? a % b : a; }},
      {"min.s32", "rrr", [=](u64 a, u64 b, u64) { return u(u64(s64{std::min(s(a), s(b))})); }},
      {"max.u64", "ddd", [=](u64 a, u64 b, u64) { return std::max(a, b); }},
      {"max.s16", "hhh", [=](u64 a, u64 b, u64) { return static_cast<uint16_t>(std::max(int16_t(a), int16_t(b))); }},
      {"neg.s32", "rr", [=](u64 a, u64, u64) { return u(0 - a); }},
      {"abs.s32", "rr", [=](u64 a, u64, u64) { return s(a) < 0 ? u(0 - a) : u(a); }},
      {"and.b32", "rrr", [=](u64 a, u64 b, u64) { return u(a & b); }},
      {"xor.b64", "ddd", [=](u64 a, u64 b, u64) { return a ^ b; }},
      {"not.b32", "rr", [=](u64 a, u64, u64) { return u(~a); }},
      {"shl.b32", "rrr", [=](u64 a, u64 b, u64) { return u(b) > 31 ? 0 : u(a << u(b)); }},
      {"shr.u32", "rrr", [=](u64 a, u64 b, u64) { return u(b) > 31 ? 0 : u(a) >> u(b); }},
      {"shr.s32", "rrr", [=](u64 a, u64 b, u64) { return u(u64(s64{s(a)} >> std::min(u(b), 31u))); }},
      {"shr.s64", "ddr", [=](u64 a, u64 b, u64) { return u64(s64(a) >> std::min(u(b), 63u)); }},
      {"shf.l.wrap.b32", "rrrr",
       [=](u64 a, u64 b, u64 c) {
         u32 n = u(c) & 31;
         return n ? u(b) << n | u(a) >> (32 - n) : u(b);
       }},
      {"shf.r.clamp.b32", "rrrr",
       [=](u64 a, u64 b, u64 c) {
         u32 n = std::min(u(c), 32u);
         return n == 32 ? u(b) : n ? u(a) >> n | u(b) << (32 - n) : u(a);
       }},
      {"popc.b64", "rd", [=](u64 a, u64, u64) { return u64(std::popcount(a)); }},
      {"clz.b32", "rr", [=](u64 a, u64, u64) { return u64(std::countl_zero(u(a))); }},
      {"clz.b64", "rd", [=](u64 a, u64, u64) { return u64(std::countl_zero(a)); }},
      {"brev.b32", "rr",
       [=](u64 a, u64, u64) {
         u32 r = 0;
         for (int i = 0; i < 32; ++i) r |= (u(a) >> i & 1) << (31 - i);
         return r;
       }},
      {"bfind.u32", "rr", [=](u64 a, u64, u64) { return u(a) ? u(31 - std::countl_zero(u(a))) : ~0u; }},
      {"bfind.s32", "rr",
       [=](u64 a, u64, u64) {
         u32 x = s(a) < 0 ? ~u(a) : u(a);
         return x ? u(31 - std::countl_zero(x)) : ~0u;
       }},
      {"sad.s32", "rrrr", [=](u64 a, u64 b, u64 c) { return u(u64(std::abs(s64{s(a)} - s(b))) + c); }},
      {"sad.s16", "hhhh", [](u64 a, u64 b, u64 c) { return uint16_t(std::abs(int16_t(a) - int16_t(b)) + c); }},
      {"mad.hi.s16", "hhhh", [](u64 a, u64 b, u64 c) { return uint16_t((int16_t(a) * int16_t(b) >> 16) + c); }},
      {"bfind.shiftamt.u64", "rd", [=](u64 a, u64, u64) { return a ? u(u64(std::countl_zero(a))) : ~0u; }},
      {"bfe.u32", "rrrr",
       [=](u64 a, u64 b, u64 c) {
         u32 r = 0;
         for (u32 i = 0; i < (c & 255) && i < 32; ++i) {
           u32 at = u(b & 255) + i;
           r |= (at < 32 ? u(a) >> at & 1 : 0) << i;
         }
         return r;
       }},
      {"bfe.s32", "rrrr",
       [=](u64 a, u64 b, u64 c) {
         u32 r = 0, n = u(c & 255), p = u(b & 255);
         if (!n) return 0u;
         u32 top = u(a) >> std::min(p + n - 1, 31u) & 1;
         for (u32 i = 0; i < 32; ++i) r |= (i < n && p + i < 32 ? u(a) >> (p + i) & 1 : top) << i;
         return r;
       }},
      {"prmt.b32", "rrrr",
       [=](u64 a, u64 b, u64 c) {
         u64 bytes = u64{u(b)} << 32 | u(a);
         u32 r = 0;
         for (int i = 0; i < 4; ++i) {
           u32 k = u(c) >> (4 * i) & 15, v = u(bytes >> (8 * (k & 7))) & 255;
           r |= (k & 8 ? (v >> 7) * 255 : v) << (8 * i);
         }
         return r;
       }},
  };
  for (const IntCase& c : cases) {
    u64 mask = c.shape[1] == 'd' ? ~u64{0} : c.shape[1] == 'r' ? 0xffffffff : 0xffff;
    check(c.op, c.shape, tuples(kInts, std::strlen(c.shape) - 1, mask),
          [&](const std::vector<u64>& v) { return c.expect(v[0], v.size() > 1 ? v[1] : 0, v.size() > 2 ? v[2] : 0); });
  }
}

TEST(LaneOps, FourOperands) {
  auto rows = tuples(kInts, 4, 0xffffffff);
  check("bfi.b32", "rrrrr", rows, [](const std::vector<u64>& v) {
    u32 r = static_cast<u32>(v[1]), at = v[2] & 255, n = v[3] & 255;
    for (u32 i = 0; i < n && at + i < 32; ++i)
      r = (r & ~(1u << (at + i))) | (static_cast<u32>(i < 32 ? v[0] >> i : 0) & 1) << (at + i);
    return u64{r};
  });
  for (u32 table : {0x80u, 0x96u, 0xe8u, 0x1bu}) {
    Bench bench;
    std::string body =
        "ld.param.u64 %rd1,[p0]; mov.u32 %r1, 0xF0F0AA55; mov.u32 %r2, 0xCC33FF00; mov.u32 %r3, 0xAAAA1234;\n"
        "lop3.b32 %r4, %r1, %r2, %r3, " +
        std::to_string(table) + "; st.global.u32 [%rd1], %r4;";
    ASSERT_EQ(bench.load(kernel_text(1, body)), "");
    DevicePtr out = bench.poisoned(4);
    bench.arg(out).run({1, 1, 1}, {1, 1, 1});
    u32 want = 0, a = 0xF0F0AA55, b = 0xCC33FF00, c = 0xAAAA1234;
    for (int i = 0; i < 32; ++i) want |= (table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i;
    EXPECT_EQ(bench.read<u32>(out, 1)[0], want);
  }
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

TEST(LaneOps, Fp32) {
  auto f = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  using V = const std::vector<u64>&;
  auto one = tuples(float_bits(), 1, ~0u), two = tuples(float_bits(), 2, ~0u), three = tuples(float_bits(), 3, ~0u);
  check("add.f32", "rrr", two, [&](V v) { return canonical(f(v[0]) + f(v[1])); });
  check("sub.rn.f32", "rrr", two, [&](V v) { return canonical(f(v[0]) - f(v[1])); });
  check("mul.f32", "rrr", two, [&](V v) { return canonical(f(v[0]) * f(v[1])); });
  check("mul.ftz.f32", "rrr", two, [&](V v) { return canonical(flushed(flushed(f(v[0])) * flushed(f(v[1])))); });
  check("add.ftz.f32", "rrr", two, [&](V v) { return canonical(flushed(flushed(f(v[0])) + flushed(f(v[1])))); });
  check("fma.rn.f32", "rrrr", three, [&](V v) { return canonical(std::fma(f(v[0]), f(v[1]), f(v[2]))); });
  check("div.rn.f32", "rrr", two, [&](V v) { return canonical(f(v[0]) / f(v[1])); });
  check("div.approx.f32", "rrr", two, [&](V v) {
    const float b = f(v[1]), flushed = std::fabs(b) > 0x1p126f ? std::copysign(INFINITY, b) : b;
    return canonical(f(v[0]) / flushed);
  });
  check("sqrt.rn.f32", "rr", one, [&](V v) { return canonical(std::sqrt(f(v[0]))); });
  check("rcp.rn.f32", "rr", one, [&](V v) { return canonical(1.0f / f(v[0])); });
  check("neg.f32", "rr", one, [&](V v) { return static_cast<u32>(v[0] ^ 0x80000000u); });
  check("add.sat.f32", "rrr", two, [&](V v) {
    float r = f(v[0]) + f(v[1]);
    return std::bit_cast<u32>(r > 0 ? std::min(r, 1.0f) : 0.0f);
  });
  auto minimum = [&](float a, float b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  };
  check("min.f32", "rrr", two, [&](V v) { return canonical(minimum(f(v[0]), f(v[1]))); });
  check("max.f32", "rrr", two, [&](V v) { return canonical(-minimum(-f(v[0]), -f(v[1]))); });
  check("max.NaN.f32", "rrr", two, [&](V v) {
    return std::isnan(f(v[0])) || std::isnan(f(v[1])) ? 0x7fffffffu : canonical(-minimum(-f(v[0]), -f(v[1])));
  });
}

/// Directed rounding of an exact sum or product, found by stepping from the nearest float.
u32 directed(long double exact, int mode) {  // 0 toward zero, 1 down, 2 up
  float n = static_cast<float>(exact);
  long double back = n;
  if (back > exact && (mode == 1 || (mode == 0 && exact > 0))) n = std::nextafter(n, -INFINITY);
  if (back < exact && (mode == 2 || (mode == 0 && exact < 0))) n = std::nextafter(n, INFINITY);
  return std::bit_cast<u32>(n);
}

TEST(LaneOps, DirectedRounding) {
  std::mt19937 rng(5);
  std::vector<std::vector<u64>> rows;
  for (int i = 0; i < 1000; ++i) {
    float a = std::ldexp(static_cast<float>(static_cast<s32>(rng())), -20 - static_cast<int>(rng() % 16));
    float b = std::ldexp(static_cast<float>(static_cast<s32>(rng())), -20 - static_cast<int>(rng() % 16));
    rows.push_back({std::bit_cast<u32>(a), std::bit_cast<u32>(b)});
  }
  auto f = [](u64 x) { return static_cast<long double>(std::bit_cast<float>(static_cast<u32>(x))); };
  const char* names[] = {"rz", "rm", "rp"};
  for (int mode = 0; mode < 3; ++mode) {
    check(std::string("add.") + names[mode] + ".f32", "rrr", rows,
          [&](auto& v) { return directed(f(v[0]) + f(v[1]), mode); });
    check(std::string("mul.") + names[mode] + ".f32", "rrr", rows,
          [&](auto& v) { return directed(f(v[0]) * f(v[1]), mode); });
  }
}

TEST(LaneOps, ApproximationsAreWithinTheirBounds) {
  std::vector<std::vector<u64>> rows;
  for (int i = -2000; i < 2000; ++i) rows.push_back({std::bit_cast<u32>(static_cast<float>(i) * 0.063f + 0.0017f)});
  auto f = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  auto close = [&](const char* op, double bound, bool absolute, double (*reference)(double)) {
    auto got = run_op(op, "rr", rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      double want = reference(static_cast<double>(f(rows[i][0])));
      if (!std::isfinite(want) || std::abs(want) < 1.2e-38 || std::abs(want) > 3.3e38) continue;
      EXPECT_LE(std::abs(static_cast<double>(f(got[i])) - want), absolute ? bound : bound * std::abs(want))
          << op << " " << f(rows[i][0]);
    }
  };
  // Bounds of the PTX ISA: ex2 2^-22, rsqrt 2^-22.4, sin and cos 2^-20.5 absolute, tanh 2^-11.
  close("ex2.approx.ftz.f32", 0x1p-22, false, [](double x) { return std::exp2(x); });
  close("ex2.approx.f32", 0x1p-22, false, [](double x) { return std::exp2(x); });
  close("lg2.approx.f32", 0x1p-22, false, [](double x) { return std::log2(x); });
  close("rsqrt.approx.f32", 0x1p-22, false, [](double x) { return 1 / std::sqrt(x); });
  close("sin.approx.f32", 0x1p-20, true, [](double x) { return std::sin(x); });
  close("cos.approx.f32", 0x1p-20, true, [](double x) { return std::cos(x); });
  close("tanh.approx.f32", 0x1p-11, false, [](double x) { return std::tanh(x); });
  auto special = [&](const char* op, float x) { return f(run_op(op, "rr", {{std::bit_cast<u32>(x)}})[0]); };
  EXPECT_EQ(special("ex2.approx.f32", -INFINITY), 0.0f);
  EXPECT_EQ(special("ex2.approx.f32", INFINITY), INFINITY);
  EXPECT_EQ(special("ex2.approx.f32", 128.0f), INFINITY);
  EXPECT_EQ(special("ex2.approx.f32", -149.0f), 0x1p-149f);
  EXPECT_EQ(special("ex2.approx.ftz.f32", -127.0f), 0.0f);
  EXPECT_EQ(special("ex2.approx.f32", 5.0f), 32.0f);
  EXPECT_TRUE(std::isnan(special("ex2.approx.f32", NAN)));
  EXPECT_EQ(special("lg2.approx.f32", 0.0f), -INFINITY);
  EXPECT_TRUE(std::isnan(special("lg2.approx.f32", -1.0f)));
  EXPECT_EQ(special("lg2.approx.f32", 8.0f), 3.0f);
}

// 16-bit references: search for the nearest value of the format by its definition.
double half_value(u32 h) {
  int e = static_cast<int>(h >> 10 & 31);
  double m = h & 1023;
  double v = e == 31 ? (m != 0.0 ? NAN : INFINITY) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
  return h & 0x8000 ? -v : v;
}
u32 nearest_half(double x) {
  if (std::isnan(x)) return 0x7fff;
  u32 sign = std::signbit(x) ? 0x8000 : 0;
  double a = std::abs(x);
  if (a >= 65520) return sign | 0x7c00;
  u32 low = 0, high = 0x7c00;  // positive halves are ordered as integers
  while (high - low > 1) {
    u32 mid = (low + high) / 2;
    (half_value(mid) <= a ? low : high) = mid;
  }
  double below = half_value(low), above = high == 0x7c00 ? 65536 : half_value(high);
  if (a - below > above - a || (a - below == above - a && (low & 1))) low = high;
  return sign | low;
}

TEST(LaneOps, HalfConversionsAndArithmetic) {
  std::vector<std::vector<u64>> floats;
  for (u64 b : float_bits()) floats.push_back({b});
  std::mt19937 rng(9);
  for (int i = 0; i < 4000; ++i)
    floats.push_back(
        {std::bit_cast<u32>(std::ldexp(static_cast<float>(rng() % 0x1000000), -static_cast<int>(rng() % 56)))});
  auto f = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  check("cvt.rn.f16.f32", "hr", floats, [&](auto& v) { return nearest_half(static_cast<double>(f(v[0]))); });
  std::vector<std::vector<u64>> all, pairs;
  for (u32 h = 0; h < 65536; h += 7) all.push_back({h});
  check("cvt.f32.f16", "rh", all,
        [&](auto& v) { return canonical(static_cast<float>(half_value(static_cast<u32>(v[0])))); });
  for (int i = 0; i < 4000; ++i) pairs.push_back({rng() & 0xffff, rng() & 0xffff});
  auto h = [](u64 x) { return half_value(static_cast<u32>(x)); };
  check("add.f16", "hhh", pairs, [&](auto& v) { return nearest_half(h(v[0]) + h(v[1])); });
  check("mul.f16", "hhh", pairs, [&](auto& v) { return nearest_half(h(v[0]) * h(v[1])); });
  // The exact value needs up to 80 bits; long double has 64, so the operands have similar sizes.
  std::vector<std::vector<u64>> near;
  for (int i = 0; i < 4000; ++i)
    near.push_back({0x3800 + (rng() & 0x87ff), 0x3800 + (rng() & 0x87ff), 0x3400 + (rng() & 0x8fff)});
  check("fma.rn.f16", "hhhh", near, [&](auto& v) {
    return nearest_half(static_cast<double>(static_cast<long double>(h(v[0])) * static_cast<long double>(h(v[1])) +
                                            static_cast<long double>(h(v[2]))));
  });
  auto bf = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x) << 16); };
  auto nearest_bf16 = [](double x) -> u64 {
    if (std::isnan(x)) return 0x7fff;
    u32 u = std::bit_cast<u32>(static_cast<float>(x));
    u32 low = u & 0xffff0000u, up = low + 0x10000;
    double a = static_cast<double>(std::bit_cast<float>(low)), b = static_cast<double>(std::bit_cast<float>(up));
    if (!std::isfinite(b)) return (u + 0x8000) >> 16;
    double da = std::abs(x - a), db = std::abs(b - x);
    return (da < db || (da == db && !(low >> 16 & 1)) ? low : up) >> 16;
  };
  check("cvt.rn.bf16.f32", "hr", floats, [&](auto& v) { return nearest_bf16(static_cast<double>(f(v[0]))); });
  std::vector<std::vector<u64>> moderate;
  for (int i = 0; i < 4000; ++i)
    moderate.push_back({0x3e00 + (rng() & 0x81ff), 0x3e00 + (rng() & 0x81ff), 0x3d00 + (rng() & 0x83ff)});
  check("fma.rn.bf16", "hhhh", moderate, [&](auto& v) {
    return nearest_bf16(static_cast<double>(bf(v[0])) * static_cast<double>(bf(v[1])) + static_cast<double>(bf(v[2])));
  });
  check("cvt.rn.bf16x2.f32", "rrr", tuples(float_bits(), 2, ~0u), [&](auto& v) {
    return nearest_bf16(static_cast<double>(f(v[0]))) << 16 | nearest_bf16(static_cast<double>(f(v[1])));
  });
  const auto finite = [&](u64 x) {
    const u64 bits = nearest_bf16(static_cast<double>(f(x)));
    return (bits & 0x7fff) == 0x7f80 ? (bits & 0x8000) | 0x7f7f : bits;
  };
  check("cvt.rn.satfinite.bf16x2.f32", "rrr", tuples(float_bits(), 2, ~0u),
        [&](auto& v) { return finite(v[0]) << 16 | finite(v[1]); });
}

TEST(LaneOps, Conversions) {
  auto f = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  std::vector<std::vector<u64>> floats;
  for (u64 b : float_bits()) floats.push_back({b});
  auto to_s32 = [](double x) -> u64 {
    return std::isnan(x) ? 0 : static_cast<u32>(static_cast<s32>(std::clamp(x, -2147483648.0, 2147483647.0)));
  };
  check("cvt.rni.s32.f32", "rr", floats, [&](auto& v) { return to_s32(std::nearbyint(static_cast<double>(f(v[0])))); });
  check("cvt.rzi.s32.f32", "rr", floats, [&](auto& v) { return to_s32(std::trunc(static_cast<double>(f(v[0])))); });
  check("cvt.rmi.s32.f32", "rr", floats, [&](auto& v) { return to_s32(std::floor(static_cast<double>(f(v[0])))); });
  check("cvt.rpi.s32.f32", "rr", floats, [&](auto& v) { return to_s32(std::ceil(static_cast<double>(f(v[0])))); });
  check("cvt.rmi.f32.f32", "rr", floats, [&](auto& v) { return canonical(std::floor(f(v[0]))); });
  check("cvt.rni.f32.f32", "rr", floats, [&](auto& v) { return canonical(std::nearbyint(f(v[0]))); });
  check("cvt.rzi.u32.f32", "rr", floats, [&](auto& v) {
    double x = static_cast<double>(f(v[0]));
    return std::isnan(x) ? 0 : static_cast<u64>(std::clamp(std::trunc(x), 0.0, 4294967295.0));
  });
  auto one32 = tuples(kInts, 1, 0xffffffff), one64 = tuples(kInts, 1, ~u64{0});
  check("cvt.rn.f32.s32", "rr", one32,
        [&](auto& v) { return std::bit_cast<u32>(static_cast<float>(static_cast<s32>(v[0]))); });
  check("cvt.rn.f32.u64", "rd", one64, [&](auto& v) { return std::bit_cast<u32>(static_cast<float>(v[0])); });
  check("cvt.rz.f32.u32", "rr", one32,
        [&](auto& v) { return directed(static_cast<long double>(static_cast<u32>(v[0])), 0); });
  check("cvt.s64.s32", "dr", one32,
        [&](auto& v) { return static_cast<u64>(static_cast<s64>(static_cast<s32>(v[0]))); });
  check("cvt.u64.u32", "dr", one32, [&](auto& v) { return v[0]; });
  check("cvt.u32.u64", "rd", one64, [&](auto& v) { return static_cast<u32>(v[0]); });
  check("cvt.s32.s8", "rh", tuples(kInts, 1, 0xffff),
        [&](auto& v) { return static_cast<u32>(static_cast<s32>(static_cast<int8_t>(v[0]))); });
  check("cvt.sat.s8.s32", "hr", one32,
        [&](auto& v) { return static_cast<uint16_t>(std::clamp(static_cast<s32>(v[0]), -128, 127)); });
  check("cvt.sat.u8.s32", "hr", one32,
        [&](auto& v) { return static_cast<u64>(std::clamp(static_cast<s32>(v[0]), 0, 255)); });
  check("cvt.f64.f32", "dr", floats, [&](auto& v) {
    double x = static_cast<double>(f(v[0]));
    return std::isnan(x) ? 0x7ff8000000000000u : std::bit_cast<u64>(x);
  });
}

// 8-bit floats by their definition: `m` mantissa bits, bias `bias`, largest finite number `last` (bits), NaN 0x7f.
double fp8_value(u32 x, int m, int bias) {
  const int e = static_cast<int>(x & 127) >> m;
  const double f = static_cast<double>(x & ((1u << m) - 1)) / (1 << m);
  const double v = e ? std::ldexp(1 + f, e - bias) : std::ldexp(f, 1 - bias);
  return x & 128 ? -v : v;
}
u32 nearest_fp8(double x, int m, int bias, u32 last) {
  if (std::isnan(x)) return 0x7f;
  const double a = std::min(std::abs(x), 1e6);  // beyond, distances are equal in double
  u32 best = last;
  for (u32 i = last; i-- > 0;) {  // downwards, so that ties go to the even number
    const double d = std::abs(fp8_value(i, m, bias) - a), b = std::abs(fp8_value(best, m, bias) - a);
    if (d < b || (d == b && i % 2 == 0)) best = i;
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

TEST(LaneOps, EightBitFloats) {
  struct Format {
    const char* name;
    int m, bias;
    u32 last;
  };
  auto f = [](u64 x) { return static_cast<double>(std::bit_cast<float>(static_cast<u32>(x))); };
  for (const Format& t : {Format{"e4m3x2", 3, 7, 0x7e}, Format{"e5m2x2", 2, 15, 0x7b}}) {
    std::vector<u64> values = float_bits();
    for (u32 i = 0; i < t.last; ++i) {  // each number, each midpoint, and the floats next to the midpoint
      const double middle = (fp8_value(i, t.m, t.bias) + fp8_value(i + 1, t.m, t.bias)) / 2;
      const u32 bits = std::bit_cast<u32>(static_cast<float>(middle));
      values.insert(values.end(), {std::bit_cast<u32>(static_cast<float>(fp8_value(i, t.m, t.bias))), bits, bits - 1,
                                   (bits + 1) ^ 0x80000000u});
    }
    std::vector<std::vector<u64>> rows;
    for (size_t i = 0; i < values.size(); ++i) rows.push_back({values[i], values[values.size() - 1 - i]});
    auto nearest = [&](double x) { return u64{nearest_fp8(x, t.m, t.bias, t.last)}; };
    check(std::string("cvt.rn.satfinite.") + t.name + ".f32", "hrr", rows,
          [&](auto& v) { return nearest(f(v[0])) << 8 | nearest(f(v[1])); });
    auto relu = [&](double x) { return nearest(x < 0 ? 0 : x); };
    check(std::string("cvt.rn.satfinite.relu.") + t.name + ".f32", "hrr", rows,
          [&](auto& v) { return relu(f(v[0])) << 8 | relu(f(v[1])); });
    std::vector<std::vector<u64>> halves, bytes;
    for (u32 i = 0; i < 4096; ++i) halves.push_back({u64{i * 16 + 7} << 16 | (i * 41 & 0xffff)});
    check(std::string("cvt.rn.satfinite.") + t.name + ".f16x2", "hr", halves, [&](auto& v) {
      return nearest(half_value(static_cast<u32>(v[0] >> 16))) << 8 | nearest(half_value(v[0] & 0xffff));
    });
    for (u32 i = 0; i < 256; ++i) bytes.push_back({i << 8 | (255 - i)});
    check(std::string("cvt.rn.f16x2.") + t.name, "rh", bytes, [&](auto& v) {
      auto half = [&](u32 x) -> u32 {
        const u32 magnitude = x & 127;
        if (magnitude <= t.last) return nearest_half(fp8_value(x, t.m, t.bias));
        return t.bias == 15 && magnitude == 0x7c ? (x & 128) << 8 | 0x7c00 : 0x7fff;  // e5m2 has an infinity
      };
      return u64{half(static_cast<u32>(v[0]) >> 8) << 16 | half(v[0] & 255)};
    });
  }
}

/// Formats of 4 and 6 bits and scales: each against the nearest of all its numbers.
TEST(LaneOps, SmallFloats) {
  struct Format {
    const char* name;
    int e, m;
  };
  const auto value_of = [](const Format& t, u32 code) {
    const int bias = (1 << (t.e - 1)) - 1, exponent = static_cast<int>(code >> t.m);
    const double mantissa = code & ((1u << t.m) - 1);
    return exponent ? std::ldexp((1 << t.m) + mantissa, exponent - bias - t.m) : std::ldexp(mantissa, 1 - bias - t.m);
  };
  for (const Format& t : {Format{"e2m1", 2, 1}, Format{"e2m3", 2, 3}, Format{"e3m2", 3, 2}}) {
    const u32 last = (1u << (t.e + t.m)) - 1;
    std::vector<u64> values = float_bits();
    for (u32 i = 0; i < last; ++i) {
      const u32 bits = std::bit_cast<u32>(static_cast<float>((value_of(t, i) + value_of(t, i + 1)) / 2));
      values.insert(values.end(),
                    {bits, bits - 1, (bits + 1) ^ 0x80000000u, std::bit_cast<u32>(static_cast<float>(value_of(t, i)))});
    }
    const auto nearest = [&](u64 bits) -> u64 {
      const double x = std::bit_cast<float>(static_cast<u32>(bits));
      if (std::isnan(x)) return last;
      if (std::fabs(x) >= value_of(t, last)) return last | (std::signbit(x) ? last + 1 : 0);
      u32 best = 0;
      for (u32 i = 1; i <= last; ++i) {
        const double now = std::fabs(value_of(t, i) - std::fabs(x)),
                     before = std::fabs(value_of(t, best) - std::fabs(x));
        if (now < before || (now == before && i % 2 == 0)) best = i;
      }
      return best | (std::signbit(x) ? last + 1 : 0);
    };
    std::vector<std::vector<u64>> rows, codes;
    for (size_t i = 0; i < values.size(); ++i) rows.push_back({values[i], values[values.size() - 1 - i]});
    const bool nibbles = t.e + t.m == 3;
    const std::string name = std::string(t.name) + "x2";
    const auto joined = [&](auto& v) { return nearest(v[0]) << (nibbles ? 4 : 8) | nearest(v[1]); };
    check("cvt.rn.satfinite." + name + ".f32", "hrr", rows, joined);
    for (u32 i = 0; i <= 2 * last + 1; ++i) codes.push_back({u64{i} << (nibbles ? 4 : 8) | (2 * last + 1 - i)});
    check("cvt.rn.f16x2." + name, "rh", codes, [&](auto& v) {
      const auto half = [&](u64 code) {
        return u64{nearest_half(value_of(t, static_cast<u32>(code) & last))} | (code & (last + 1) ? 0x8000u : 0u);
      };
      return half(v[0] >> (nibbles ? 4 : 8)) << 16 | half(v[0] & (2 * last + 1));
    });
  }
  check("{ .reg .b8 a, b, c, d;\nmov.b32 {a, b, c, d}, %r2;\nmov.b32 %r2, {d, c, b, a};\n}\nadd.u32", "rrr",
        {{0x12345678, 1}, {0xff00aa55, 0}},
        [](auto& v) { return u64{__builtin_bswap32(static_cast<u32>(v[0])) + static_cast<u32>(v[1])}; });
}

TEST(LaneOps, Scales) {
  std::vector<std::vector<u64>> rows, codes;
  for (const u64 bits : float_bits()) rows.push_back({bits & 0x7fffffff, 0x3f800001});
  for (int e = -149; e < 128; ++e)
    for (const float factor : {1.0f, 1.5f})
      rows.push_back({std::bit_cast<u32>(std::ldexp(factor, e)), std::bit_cast<u32>(1.0f)});
  for (const bool up : {false, true})
    for (const bool finite : {false, true}) {
      const auto code = [&](u64 bits) -> u64 {
        const double x = std::bit_cast<float>(static_cast<u32>(bits));
        if (std::isnan(x)) return 255;
        if (std::isinf(x)) return finite ? 254 : 255;
        int c = 0;
        while (c < 255 && std::ldexp(1.0, c + 1 - 127) <= x) ++c;
        if (up && std::ldexp(1.0, c - 127) < x) ++c;
        return static_cast<u64>(finite ? std::min(c, 254) : c);
      };
      check(std::string("cvt.") + (up ? "rp" : "rz") + (finite ? ".satfinite" : "") + ".ue8m0x2.f32", "hrr", rows,
            [&](auto& v) { return code(v[0]) << 8 | code(v[1]); });
    }
  for (u32 i = 0; i < 256; ++i) codes.push_back({i << 8 | (255 - i)});
  check("cvt.rn.bf16x2.ue8m0x2", "rh", codes, [&](auto& v) {
    const auto value = [](u64 c) -> u64 {
      return c == 255 ? 0x7fff : std::bit_cast<u32>(std::ldexp(1.0f, static_cast<int>(c) - 127)) >> 16;
    };
    return value(v[0] >> 8) << 16 | value(v[0] & 255);
  });
}

TEST(LaneOps, PairsAndTriplesOfFloats) {
  std::vector<std::vector<u64>> pairs, triples;
  const std::vector<u64> bits = float_bits();
  std::mt19937 rng(9);
  const auto any = [&] { return bits[rng() % bits.size()]; };
  for (int i = 0; i < 1000; ++i) pairs.push_back({any() << 32 | any(), any() << 32 | any(), any() << 32 | any()});
  for (int i = 0; i < 1000; ++i) triples.push_back({any(), any(), any()});
  const auto f = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  const auto each = [&](auto op) {
    return [=](auto& v) {
      return u64{canonical(op(f(v[0] >> 32), f(v[1] >> 32), f(v[2] >> 32)))} << 32 |
             canonical(op(f(v[0]), f(v[1]), f(v[2])));
    };
  };
  check("fma.rn.f32x2", "dddd", pairs, each([](float a, float b, float c) { return std::fma(a, b, c); }));
  auto two = pairs;
  for (auto& row : two) row.pop_back();
  const auto each2 = [&](auto op) {
    return [=](auto& v) {
      return u64{canonical(op(f(v[0] >> 32), f(v[1] >> 32)))} << 32 | canonical(op(f(v[0]), f(v[1])));
    };
  };
  std::vector<std::vector<u64>> mixed;
  for (int i = 0; i < 1000; ++i) mixed.push_back({any() >> 16, any() >> 16, any()});
  check("fma.rn.f32.bf16", "rhhr", mixed,
        [&](auto& v) { return u64{canonical(std::fma(f(v[0] << 16), f(v[1] << 16), f(v[2])))}; });
  check("add.f32x2", "ddd", two, each2([](float a, float b) { return a + b; }));
  check("sub.rn.f32x2", "ddd", two, each2([](float a, float b) { return a - b; }));
  check("mul.rn.f32x2", "ddd", two, each2([](float a, float b) { return a * b; }));
  check("max.f32", "rrrr", triples, [&](auto& v) {
    const float x = std::fmax(std::fmax(f(v[0]), f(v[1])), f(v[2]));
    // fmax may give either zero; the larger one is +0.
    bool zero = false;
    for (const u64 each : v) zero |= each == 0;
    return u64{x == 0 && zero ? 0u : canonical(x)};
  });
  check("min.NaN.f32", "rrrr", triples, [&](auto& v) {
    float x = std::numeric_limits<float>::infinity();
    for (const u64 each : v)
      x = std::isnan(f(each)) || std::isnan(x)                     ? NAN
          : f(each) < x || (f(each) == x && std::signbit(f(each))) ? f(each)
                                                                   : x;
    return u64{canonical(x)};
  });
}

TEST(LaneOps, PackingIntegersSaturates) {
  auto s = [](u64 x) { return static_cast<s32>(x); };
  check("cvt.pack.sat.s8.s32.b32", "rrrr", tuples(kInts, 3, 0xffffffff), [&](auto& v) {
    auto byte = [&](u64 x) { return static_cast<u32>(std::clamp(s(x), -128, 127)) & 255; };
    return u64{static_cast<u32>(v[2]) << 16 | byte(v[0]) << 8 | byte(v[1])};
  });
  check("cvt.pack.sat.u8.s32.b32", "rrrr", tuples(kInts, 3, 0xffffffff), [&](auto& v) {
    auto byte = [&](u64 x) { return static_cast<u32>(std::clamp(s(x), 0, 255)); };
    return u64{static_cast<u32>(v[2]) << 16 | byte(v[0]) << 8 | byte(v[1])};
  });
  check("cvt.pack.sat.s16.s32", "rrr", tuples(kInts, 2, 0xffffffff), [&](auto& v) {
    auto half = [&](u64 x) { return static_cast<u32>(std::clamp(s(x), -32768, 32767)) & 0xffff; };
    return u64{half(v[0]) << 16 | half(v[1])};
  });
  check("cvt.rni.sat.s8.f32", "hr", tuples(float_bits(), 1, ~0u), [&](auto& v) {
    const float x = std::bit_cast<float>(static_cast<u32>(v[0]));
    return u64{
        static_cast<uint16_t>(std::isnan(x) ? 0 : static_cast<s32>(std::clamp(std::nearbyint(x), -128.0f, 127.0f)))};
  });
}

TEST(LaneOps, ComparisonsWithCombination) {
  // setp writes p and its complement q, each combined with a predicate; both are converted to numbers.
  std::string body =
      "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mul.wide.u32 %rd2,%r1,8; add.s64 %rd3,%rd1,%rd2;\n"
      "setp.gt.u32 %p3, %r1, 20;\nsetp.lt.and.s32 %p1|%p2, %r1, 10, !%p3;\nselp.u32 %r2, 1, 0, "
      "%p1;\nselp.u32 %r3, 1, 0, %p2;\n"
      "st.global.v2.u32 [%rd3], {%r2, %r3};";
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(1, body)), "");
  DevicePtr out = bench.poisoned(256);
  RunResult r = bench.arg(out).run({1, 1, 1}, {32, 1, 1});
  ASSERT_TRUE(r.findings.empty()) << r.findings[0].message;
  auto v = bench.read<u32>(out, 64);
  for (u32 i = 0; i < 32; ++i) {
    EXPECT_EQ(v[2 * i], (i < 10 && i <= 20) ? 1u : 0u) << i;
    EXPECT_EQ(v[2 * i + 1], (!(i < 10) && i <= 20) ? 1u : 0u) << i;
  }
  for (const char* cmp : {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) {
    std::string name = cmp;
    check("set." + name + ".u32.f32", "rrr", tuples(float_bits(), 2, ~0u), [&](auto& v2) {
      float a = std::bit_cast<float>(static_cast<u32>(v2[0])), b = std::bit_cast<float>(static_cast<u32>(v2[1]));
      bool unordered = std::isnan(a) || std::isnan(b), result = false;
      std::string base = name.substr(0, 2);
      if (name == "num")
        result = !unordered;
      else if (name == "nan")
        result = unordered;
      else if (unordered)
        result = name.size() == 3;
      else
        result = base == "eq"   ? a == b
                 : base == "ne" ? a != b
                 : base == "lt" ? a < b
                 : base == "le" ? a <= b
                 : base == "gt" ? a > b
                                : a >= b;
      return result ? ~0u : 0u;
    });
  }
  const auto f = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  const auto two_floats = tuples(float_bits(), 2, ~0u), two_words = tuples(kInts, 2, 0xffff);
  check("set.lt.f16.f32", "hrr", two_floats, [&](auto& v) { return f(v[0]) < f(v[1]) ? 0x3c00u : 0u; });
  check("set.hi.f32.u16", "rhh", two_words, [](auto& v) { return v[0] > v[1] ? 0x3f800000u : 0u; });
  check("set.ne.s32.b64", "rdd", tuples(kInts, 2, ~u64{0}), [](auto& v) { return v[0] != v[1] ? ~0u : 0u; });
}

TEST(LaneOps, ChoicesAndDistances) {
  const auto f = [](u64 x) { return std::bit_cast<float>(static_cast<u32>(x)); };
  const auto is_subnormal = [&](u64 x) { return std::fpclassify(f(x)) == FP_SUBNORMAL; };
  const auto three = tuples(float_bits(), 3, ~0u);
  check("slct.u64.f32", "dddr", three, [&](auto& v) { return f(v[2]) >= 0 ? v[0] : v[1]; });
  check("slct.ftz.s32.f32", "rrrr", three, [&](auto& v) { return f(v[2]) >= 0 || is_subnormal(v[2]) ? v[0] : v[1]; });
  // 1 + 2^-10, -(1 + 5 * 2^-10), infinity, 2^-24, 65504, NaN
  auto narrowed = run_op("cvt.rn.bf16.f16", "hh", {{0x3c01}, {0xbc05}, {0x7c00}, {0x0001}, {0x7bff}, {0x7e00}});
  EXPECT_EQ(narrowed, (std::vector<u64>{0x3f80, 0xbf81, 0x7f80, 0x3380, 0x4780, 0x7fff}));
}

/// Every function of every table that this machine can run, on the same random and edge inputs.
TEST(LaneOps, AllHostInstructionSetsAgree) {
  auto tables = sim::all_host_lanes();
  std::mt19937_64 rng(21);
  std::vector<u64> floats = float_bits();
  for (u32 entry = 0; entry < tables[0]->count; ++entry) {
    for (int round = 0; round < 8; ++round) {
      alignas(64) u32 start[32 * 32];
      u32 preds[4] = {~0u, static_cast<u32>(rng()), static_cast<u32>(rng()), static_cast<u32>(rng())};
      for (u32& x : start) {
        switch (round % 4) {
          case 0: x = static_cast<u32>(rng()); break;
          case 1: x = static_cast<u32>(floats[rng() % floats.size()]); break;
          case 2: x = static_cast<u32>(kInts[rng() % kInts.size()]); break;
          default: x = static_cast<u32>(rng()) & 0x80ff80ff; break;
        }
      }
      u32 lists[14];
      for (u32 i = 0; i < 14; ++i) lists[i] = i + 2;
      sim::Inst in;
      in.d = tables[0]->entries[entry].signature.dst == sim::Slot::kPred ? 1 : 0;
      in.a = tables[0]->entries[entry].signature.src[0] == sim::Slot::kPred ? 1 : 2;
      in.b = tables[0]->entries[entry].signature.src[1] == sim::Slot::kPred ? 2 : 4;
      in.c = tables[0]->entries[entry].signature.src[2] == sim::Slot::kPred ? 3 : 6;
      in.e = tables[0]->entries[entry].signature.src[3] == sim::Slot::kNone ? 0 : 8;
      u32 mask = round < 4 ? ~0u : static_cast<u32>(rng());
      u32 expected[32 * 32], expected_preds[4];
      for (size_t t = 0; t < tables.size(); ++t) {
        alignas(64) u32 rows[32 * 32];
        u32 p[4];
        std::memcpy(rows, start, sizeof rows);
        std::memcpy(p, preds, sizeof p);
        sim::WarpRegs regs{rows, p};
        tables[t]->entries[entry].fn(regs, in, lists, tables[t]->entries[entry].cls == sim::Class::kMma ? ~0u : mask);
        if (t == 0) {
          std::memcpy(expected, rows, sizeof rows);
          std::memcpy(expected_preds, p, sizeof p);
        } else {
          ASSERT_EQ(std::memcmp(expected, rows, sizeof rows), 0)
              << tables[t]->isa << ": " << tables[t]->entries[entry].pattern;
          ASSERT_EQ(std::memcmp(expected_preds, p, sizeof p), 0)
              << tables[t]->isa << ": " << tables[t]->entries[entry].pattern;
        }
      }
    }
  }
}

/// Address patterns of a warp: every table against a plain implementation.
TEST(LaneOps, RowsAreSeenAsTheyAre) {
  std::mt19937 rng(5);
  for (const sim::LaneTable* table : sim::all_host_lanes())
    for (int round = 0; round < 2000; ++round) {
      const u32 shift = 2 + rng() % 3, step = rng() % 2 ? 1u << shift : static_cast<u32>(rng() % 300) - 150,
                odd = rng() % 64;
      u64 wide[32];
      u32 narrow[32], offset[32], offset_wide[32], highest = 0, bits = 0;
      const u64 begin = u64{1} << 20 | rng() % 4096;
      for (u32 l = 0; l < 32; ++l)
        wide[l] = begin + l * static_cast<u64>(static_cast<int32_t>(step)) + (l == odd ? 1u << rng() % 12 : 0);
      for (u32 l = 0; l < 32; ++l)
        narrow[l] = static_cast<u32>(wide[l]), highest = std::max(highest, narrow[l] - 8), bits |= narrow[l] - 8;
      bool climbs = true, by_step = true;
      for (u32 l = 1; l < 32; ++l)
        climbs &= wide[l] == wide[0] + (u64{l} << shift), by_step &= narrow[l] - narrow[l - 1] == narrow[1] - narrow[0];
      ASSERT_EQ(table->rows.climbs(wide, shift), climbs) << table->isa;
      const sim::SharedRow a = table->rows.shared(narrow, ~7u, offset),
                           b = table->rows.shared_wide(wide, ~u64{7}, offset_wide);
      ASSERT_TRUE(a.highest == highest && a.bits == bits && a.climbs == by_step &&
                  (!by_step || a.step == narrow[1] - narrow[0]))
          << table->isa;
      ASSERT_TRUE(b.highest == highest && b.bits == bits && b.climbs == by_step && b.step == a.step) << table->isa;
      ASSERT_EQ(std::memcmp(offset, offset_wide, sizeof offset), 0) << table->isa;
      wide[rng() % 32] += u64{1} << (32 + rng() % 32);
      ASSERT_EQ(table->rows.shared_wide(wide, ~u64{7}, offset_wide).highest, ~0u) << table->isa;
    }
}

}  // namespace
}  // namespace roofgen::sim_test::lane_ops_test

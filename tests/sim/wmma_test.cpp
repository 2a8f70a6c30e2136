// Every shape, type and layout of wmma against a plain product, from device and from shared memory.
#include "runtime/sim/wmma.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "support.h"

namespace roofgen::sim_test::wmma_test {
namespace {

struct Shape {
  uint32_t m, n, k;
};
constexpr Shape kShapes[] = {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}, {16, 16, 8}};

uint32_t bytes_of(const std::string& type) {
  return type == "s8" || type == "u8" ? 1 : type == "f16" || type == "bf16" ? 2 : 4;
}

uint16_t to_half(int x) {  // small integers
  if (x == 0) return 0;
  const int magnitude = x < 0 ? -x : x, exponent = 31 - __builtin_clz(static_cast<unsigned>(magnitude));
  return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | (exponent + 15) << 10 | ((magnitude << (10 - exponent)) & 1023));
}
void put(std::vector<uint8_t>& to, size_t index, const std::string& type, int value) {
  uint32_t bits = static_cast<uint32_t>(value);
  if (type == "f16") bits = to_half(value);
  if (type == "bf16") bits = to_bf16(static_cast<float>(value));
  if (type == "tf32" || type == "f32") {
    const auto f = static_cast<float>(value);
    std::memcpy(&bits, &f, 4);
  }
  std::memcpy(to.data() + index * bytes_of(type), &bits, bytes_of(type));
}

std::string list(const char* prefix, uint32_t first, uint32_t n) {
  std::string out;
  for (uint32_t i = 0; i < n; ++i) out += fmt::format("{}{}{}", i ? ", " : "{", prefix, first + i);
  return out + "}";
}

struct Product {
  Shape s;
  std::string type, sum;
  bool a_columns, b_columns, d_columns, shared;

  uint32_t registers(sim::WmmaFragment::Matrix matrix) const {
    const bool accumulator = matrix == sim::WmmaFragment::Matrix::kAccumulator;
    if (!accumulator && type == "f16") return 8;
    return sim::WmmaFragment{{s.m, s.n, s.k}, matrix, bytes_of(accumulator ? sum : type)}.distinct_registers();
  }

  void run() const {
    using Matrix = sim::WmmaFragment::Matrix;
    const std::string shape = fmt::format("m{}n{}k{}", s.m, s.n, s.k);
    const uint32_t pad = 16 / bytes_of(type), pad_d = 16 / bytes_of(sum);
    const uint32_t lda = (a_columns ? s.m : s.k) + pad, ldb = (b_columns ? s.k : s.n) + pad,
                   ldd = (d_columns ? s.m : s.n) + pad_d;
    const uint32_t a_lines = a_columns ? s.k : s.m, b_lines = b_columns ? s.n : s.k, d_lines = d_columns ? s.n : s.m;
    std::mt19937 random(s.m * 7 + s.n + lda);
    std::vector<uint8_t> a(a_lines * lda * bytes_of(type)), b(b_lines * ldb * bytes_of(type)),
        c(d_lines * ldd * bytes_of(sum)), wanted;
    std::vector<int> av(s.m * s.k), bv(s.k * s.n);
    const int low = type == "u8" ? 0 : -4;
    for (uint32_t i = 0; i < s.m; ++i)
      for (uint32_t j = 0; j < s.k; ++j)
        put(a, a_columns ? j * lda + i : i * lda + j, type, av[i * s.k + j] = low + static_cast<int>(random() % 8));
    for (uint32_t i = 0; i < s.k; ++i)
      for (uint32_t j = 0; j < s.n; ++j)
        put(b, b_columns ? j * ldb + i : i * ldb + j, type, bv[i * s.n + j] = low + static_cast<int>(random() % 8));
    wanted = c;
    for (uint32_t i = 0; i < s.m; ++i)
      for (uint32_t j = 0; j < s.n; ++j) {
        const int start = static_cast<int>(random() % 100) - 50;
        int total = start;
        for (uint32_t k = 0; k < s.k; ++k) total += av[i * s.k + k] * bv[k * s.n + j];
        const size_t at = d_columns ? j * ldd + i : i * ldd + j;
        put(c, at, sum, start);
        put(wanted, at, sum, total);
      }

    // Copies to shared memory byte by byte, so that no alignment is required.
    std::string body =
        "ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nld.param.u64 %rd3, [p2];\nmov.u32 %r1, %tid.x;\n";
    std::string from_a = "%rd1", from_b = "%rd2", space = ".global";
    if (shared) {
      const auto copy = [&](const char* from, size_t bytes, size_t to) {
        for (size_t i = 0; i < bytes; i += 128)
          body += fmt::format(
              "shl.b32 %r2, %r1, 2;\nadd.u32 %r2, %r2, {0};\nsetp.lt.u32 %p1, %r2, {1};\ncvt.u64.u32 %rd5, "
              "%r2;\nadd.u64 %rd5, {2}, %rd5;\n@%p1 ld.global.u32 %r3, [%rd5];\nadd.u32 %r2, %r2, {3};\nmov.u32 %r4, "
              "smem;\nadd.u32 %r2, %r2, %r4;\n@%p1 st.shared.u32 [%r2], %r3;\n",
              i, bytes, from, to);
      };
      copy("%rd1", a.size(), 0);
      copy("%rd2", b.size(), (a.size() + 31) / 32 * 32);
      body += fmt::format("bar.sync 0;\nmov.u32 %r5, smem;\nadd.u32 %r6, %r5, {};\n", (a.size() + 31) / 32 * 32);
      from_a = "%r5", from_b = "%r6", space = ".shared";
    }
    const char* sum_prefix = sum == "f32" ? "%f" : "%r";
    const std::string d = list(sum_prefix, 50, registers(Matrix::kAccumulator)),
                      la = list("%r", 20, registers(Matrix::kA)), lb = list("%r", 30, registers(Matrix::kB)),
                      lc = list(sum_prefix, 40, registers(Matrix::kAccumulator));
    const char *al = a_columns ? "col" : "row", *bl = b_columns ? "col" : "row", *dl = d_columns ? "col" : "row";
    body += fmt::format("wmma.load.a.sync.aligned.{}.{}{}.{} {}, [{}], {};\n", al, shape, space, type, la, from_a, lda);
    body += fmt::format("wmma.load.b.sync.aligned.{}.{}{}.{} {}, [{}], {};\n", bl, shape, space, type, lb, from_b, ldb);
    body += fmt::format("wmma.load.c.sync.aligned.{}.{}.{} {}, [%rd3], {};\n", dl, shape, sum, lc, ldd);
    const std::string types = type == "f16" ? sum + "." + sum : fmt::format("{0}.{1}.{1}.{0}", sum, type);
    body += fmt::format("wmma.mma.sync.aligned.{}.{}.{}.{} {}, {}, {}, {};\n", al, bl, shape, types, d, la, lb, lc);
    body += fmt::format("wmma.store.d.sync.aligned.{}.{}.global.{} [%rd3], {}, {};\n", dl, shape, sum, d, ldd);

    Bench bench;
    ASSERT_EQ(bench.load(kernel_text(3, body, ".shared .align 32 .b8 smem[8192];")), "");
    const DevicePtr at_a = bench.buffer(a), at_b = bench.buffer(b), at_c = bench.buffer(c);
    const RunResult r = bench.arg(at_a).arg(at_b).arg(at_c).run({1, 1, 1}, {32, 1, 1});
    ASSERT_TRUE(r.findings.empty()) << r.findings[0].kind << ": " << r.findings[0].message << "\n" << body;
    EXPECT_EQ(bench.read<uint8_t>(at_c, c.size()), wanted);
    EXPECT_EQ(r.counts->mma, 1u);
    EXPECT_EQ(r.counts->mma_flops, uint64_t{2} * s.m * s.n * s.k);
    EXPECT_TRUE(shared || r.counts->unique_read_sectors == r.counts->l2_read_sectors);
  }
};

TEST(Wmma, EveryShapeTypeAndLayout) {
  int tried = 0;
  for (const Shape& s : kShapes)
    for (const auto& [type, sum] : std::vector<std::pair<std::string, std::string>>{
             {"f16", "f32"}, {"f16", "f16"}, {"bf16", "f32"}, {"tf32", "f32"}, {"s8", "s32"}, {"u8", "s32"}}) {
      if ((type == "tf32") != (s.k == 8)) continue;
      for (int way = 0; way < 16; ++way) {
        SCOPED_TRACE(fmt::format("m{}n{}k{} {} {} way {}", s.m, s.n, s.k, type, sum, way));
        Product{s, type, sum, (way & 1) != 0, (way & 2) != 0, (way & 4) != 0, (way & 8) != 0}.run();
        ++tried;
      }
    }
  EXPECT_EQ(tried, 16 * 16);
}

/// Elements with the same index lie at the same place in fragments of both widths, so that one fragment can be
/// converted into the other.
TEST(Wmma, EveryElementOnce) {
  using F = sim::WmmaFragment;
  for (const Shape& s : kShapes)
    for (const F::Matrix matrix : {F::Matrix::kA, F::Matrix::kB, F::Matrix::kAccumulator})
      for (const uint32_t bytes : {1u, 2u, 4u}) {
        if (matrix == F::Matrix::kAccumulator ? bytes == 1 : (bytes == 4) != (s.k == 8)) continue;
        const F f{{s.m, s.n, s.k}, matrix, bytes};
        std::vector<int> times(f.rows() * f.columns());
        for (uint32_t l = 0; l < 32; ++l)
          for (uint32_t r = 0; r < f.distinct_registers(); ++r)
            for (uint32_t j = 0; j < f.per_register(); ++j) {
              const F::At at = f.at(l, r, j);
              ASSERT_TRUE(at.row < f.rows() && at.column < f.columns());
              ++times[at.row * f.columns() + at.column];
              if (matrix == F::Matrix::kAccumulator && bytes == 2) {
                const F::At wide = F{f.shape, matrix, 4}.at(l, 2 * r + j, 0);
                EXPECT_TRUE(wide.row == at.row && wide.column == at.column);
              }
            }
        EXPECT_EQ(times, std::vector<int>(times.size(), 1)) << s.m << " " << s.n << " " << s.k << " " << bytes;
      }
}

std::string finding(const std::string& load, uint32_t bytes = 1024, uint32_t threads = 32) {
  Bench b;
  EXPECT_EQ(
      b.load(kernel_text(
          1, "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, 16;\nsetp.gt.u32 %p1, %r1, 30;\n" + load)),
      "");
  const DevicePtr p = b.buffer(std::vector<uint8_t>(bytes));
  return b.arg(p).kind({1, 1, 1}, {threads, 1, 1});
}

TEST(Wmma, Findings) {
  const std::string to =
      "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%rd1], "
      "%r2;";
  EXPECT_EQ(finding(to), "");
  EXPECT_EQ(finding(to, 512), "");
  EXPECT_EQ(finding(to, 511), "out-of-bounds");
  EXPECT_EQ(finding("add.u64 %rd1, %rd1, 16;" + to), "misaligned");
  EXPECT_EQ(finding("add.u32 %r2, %r2, 4;" + to), "misaligned");
  EXPECT_EQ(finding("add.u32 %r2, %r2, 8;" + to), "");
  EXPECT_EQ(finding("@%p1 add.u32 %r2, %r2, 8;" + to), "partial-warp");
  EXPECT_EQ(finding(to, 1024, 31), "partial-warp");
  EXPECT_EQ(finding("@%p1 exit;" + to), "partial-warp");
}

TEST(Wmma, RefusalsByName) {
  Bench b;
  const auto refused = [&](const std::string& text) {
    return b.load(kernel_text(1, "ld.param.u64 %rd1, [p0];\n" + text));
  };
  EXPECT_NE(refused("wmma.load.a.sync.aligned.row.m8n8k4.f64 {%fd1}, [%rd1];").find("m8n8k4"), std::string::npos);
  EXPECT_NE(refused("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1, %r2}, [%rd1];").find("8 registers"),
            std::string::npos);
  EXPECT_NE(refused("wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r1, %r2}, [%rd1];").find("elements of f16"),
            std::string::npos);
  EXPECT_NE(refused("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32.satfinite {%r1}, {%r1}, {%r1}, {%r1};")
                .find("satfinite"),
            std::string::npos);
}

}  // namespace
}  // namespace roofgen::sim_test::wmma_test

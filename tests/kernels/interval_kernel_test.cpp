// The interval analysis in kernels must agree with the analysis on the host: random conditions over random boxes.
#include <gtest/gtest.h>

#include <cstring>

#include "generator/generate.h"
#include "generator/pointwise/interval.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "tests/generator/random_condition.h"
#include "tests/kernels/run_kernel.h"
#include "tests/support/compile_cache.h"

namespace roofgen::test::interval_kernel_test {
namespace {

constexpr int kConditions = 60, kBoxes = 64;

struct Box {
  int q0, q1, k0, k1;
};

TEST(IntervalKernel, AgreesWithTheHost) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  RandomCondition random(7);
  std::vector<pointwise::Condition> conditions;
  std::string calls;
  for (int i = 0; i < kConditions; ++i) {
    conditions.push_back(pointwise::Condition::parse(random.condition(), "--mask"));
    const std::string code =
        conditions.back().cuda([](const std::string& name) { return std::optional(name == "h" ? "at(h)" : name); });
    calls += fmt::format("  {{ const Truth t = {}; out[{} * {} + i] = t.some + t.all; }}\n", code, i, kBoxes);
  }
  std::vector<Box> boxes;
  for (int i = 0; i < kBoxes; ++i) {
    Box b{random.between(-50, 200), 0, random.between(0, 200), 0};
    b.q1 = b.q0 + random.below(i % 2 ? 3 : 60);
    b.k1 = b.k0 + random.below(i % 2 ? 3 : 60);
    boxes.push_back(b);
  }
  const DataFiles files;
  Program program{{"test", "", {}},
                  *files.read("templates/lib/math.cuh") + *files.read("templates/lib/bounds.cuh") +
                      "extern \"C\" __global__ void judge(const int4* boxes, int* out, int h) {\n"
                      "  const int i = threadIdx.x;\n"
                      "  const int4 box = boxes[i];\n"
                      "  const Bounds<int> q{box.x, box.y}, k{box.z, box.w};\n" +
                      calls + "}\n",
                  "judge",
                  {}};
  auto compiler = make_nvrtc_compiler({}, shared_compile_cache(), [](const std::string&) {});
  ASSERT_TRUE(compiler) << to_string(compiler.error());
  Binary binary;
  (*compiler)->compile_all({&program}, [&](CompileOutcome outcome) {
    EXPECT_TRUE(outcome.binary) << to_string(outcome.binary.error());
    if (outcome.binary) binary = std::move(*outcome.binary);
    return true;
  });
  auto executor = make_sim_executor();
  ASSERT_TRUE(executor);
  const auto in = (*executor)->allocate(sizeof(Box) * kBoxes, "boxes", [&](uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(boxes.data()) + offset, out.size());
  });
  const auto out = (*executor)->allocate(sizeof(int) * kBoxes * kConditions, "out", {});
  ASSERT_TRUE(in && out);
  const auto module = (*executor)->load(binary);
  ASSERT_TRUE(module) << to_string(module.error());
  Launch launch;
  launch.block.x = kBoxes;
  launch.args = {{"boxes", true, in->address, 8}, {"out", true, out->address, 8}, {"h", false, 1, 4}};
  const auto result = (*executor)->run(*module, launch, {});
  ASSERT_TRUE(result) << to_string(result.error());
  ASSERT_TRUE(result->findings.empty()) << result->findings[0].message;
  std::vector<int> got(kBoxes * kConditions);
  ASSERT_TRUE((*executor)->read(*out, std::as_writable_bytes(std::span(got)), nullptr));
  int seen[3] = {};
  for (int c = 0; c < kConditions; ++c)
    for (int i = 0; i < kBoxes; ++i) {
      const Box& b = boxes[static_cast<size_t>(i)];
      const pointwise::Truth expected =
          conditions[static_cast<size_t>(c)].judge([&](const std::string& name) -> std::optional<pointwise::Range> {
            if (name == "q") return pointwise::Range{double(b.q0), double(b.q1)};
            if (name == "k") return pointwise::Range{double(b.k0), double(b.k1)};
            return pointwise::Range{1, 1};
          });
      ++seen[static_cast<int>(expected)];
      ASSERT_EQ(got[static_cast<size_t>(c * kBoxes + i)], static_cast<int>(expected))
          << "condition " << c << ", box " << i;
    }
  for (int n : seen) EXPECT_GT(n, kConditions * kBoxes / 20);
}

}  // namespace
}  // namespace roofgen::test::interval_kernel_test

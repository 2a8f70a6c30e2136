// roofgen's own templates by the time models: schedules that differ in one lever, in the order that hardware gives
// them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generator/ops/op.h"
#include "kernels.h"
#include "runtime/sass/code.h"
#include "tests/profile/generated.h"

namespace roofgen::profile::templates_test {
namespace {

using test::Edit;

Result<Problem> gemm(int64_t m, int64_t n, int64_t k) {
  Problem p{"gemm", {{"M", m}, {"N", n}, {"K", k}}, DType::kBf16, {}, {{"scale", 0.25}}};
  p.texts = {{"epilogue", "acc"}, {"a_layout", "row"}, {"b_layout", "col"}, {"gated", ""}};
  return (*find_op("gemm"))->complete(std::move(p));
}

Result<Problem> attention(int64_t length, int64_t d) {
  return (*find_op("attention"))
      ->complete({"attention", {{"L", length}, {"d", d}, {"batch", 4}, {"heads", 16}}, DType::kBf16, {}, {}});
}

Result<timing::LaunchTime> time_of(const Generated& kernel) {
  ROOFGEN_TRY(const Compiled compiled, compile(kernel));
  const std::vector<Result<sass::Code>> code =
      sass::read_code({{compiled.binary.cubin, compiled.binary.entry, compiled.binary.arch}});
  if (!code[0]) return code[0].error();
  ROOFGEN_TRY(const timing::Machine machine, timing::machine_of(compiled.device));
  timing::LaunchRequest request = launch_request(compiled);
  request.code = &*code[0];
  ROOFGEN_TRY(timing::LaunchTime time, timing::launch_time(compiled.device, machine, std::move(request)));
  if (!time.doubts.empty() || !code[0]->unknown.empty())
    return Error{Exit::kFailed,
                 fmt::format("{} doubts, {} unknown mnemonics", time.doubts.size(), code[0]->unknown.size())};
  return time;
}

class Templates : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  }
  /// Time by both models; the launch is included.
  static timing::LaunchTime time(const Result<Problem>& problem, const Pins& pins,
                                 const std::vector<Edit>& edits = {}) {
    if (!problem) {
      ADD_FAILURE() << to_string(problem.error());
      return {};
    }
    Result<timing::LaunchTime> out = time_of({*problem, GetParam(), pins, edits});
    if (!out) ADD_FAILURE() << to_string(out.error());
    return out ? *out : timing::LaunchTime{};
  }
  static void expect_gain(const timing::LaunchTime& slow, const timing::LaunchTime& fast, double least) {
    EXPECT_GE(slow.event_s / fast.event_s, least) << 1e6 * slow.event_s << " and " << 1e6 * fast.event_s << " us";
    EXPECT_GE(slow.interval_s / fast.interval_s, 1 + (least - 1) / 3)
        << 1e6 * slow.interval_s << " and " << 1e6 * fast.interval_s << " us";
  }
};

Pins gemm_pins(int64_t stages) {
  return {{"BM", int64_t{128}}, {"BN", int64_t{128}},    {"BK", int64_t{32}},
          {"stages", stages},   {"warps_m", int64_t{2}}, {"warps_n", int64_t{2}}};
}

// Conflict-free rows are what swizzling is for: with the permutation taken out, eight rows of a matrix lie in one bank.
const Edit kNoPermutation{"lib/smem_tile.cuh", "return kSwizzle ? (row / (8 / kDivisor)) & (kDivisor - 1) : 0;",
                          "return 0;"};

TEST_P(Templates, StagesOfAGemm) {
  const Result<Problem> problem = gemm(4096, 4096, 4096);
  const timing::LaunchTime two = time(problem, gemm_pins(2)), four = time(problem, gemm_pins(4));
  expect_gain(two, four, 1.02);  // most tiles come from L2
}

TEST_P(Templates, ThreeStagesOfAttentionAreHardlySlowerThanOne) {
  const Result<Problem> problem = attention(2048, 64);
  const Pins common{
      {"BM", int64_t{128}}, {"BN", int64_t{64}}, {"warps", int64_t{4}}, {"rescale", std::string("always")}};
  Pins one = common, three = common;
  one["stages"] = int64_t{1}, three["stages"] = int64_t{3};
  expect_gain(time(problem, one), time(problem, three), 0.99);
}

TEST_P(Templates, SwizzleOfAttention) {
  const Result<Problem> problem = attention(2048, 64);
  const Pins pins{{"BM", int64_t{128}},
                  {"BN", int64_t{64}},
                  {"warps", int64_t{4}},
                  {"rescale", std::string("always")},
                  {"stages", int64_t{2}}};
  const timing::LaunchTime without = time(problem, pins, {kNoPermutation}), with = time(problem, pins);
  expect_gain(without, with, 1.5);
  // Padded rows are free of conflicts, too.
  Pins padded = pins;
  padded["swizzle"] = false;
  EXPECT_NEAR(time(problem, padded).event_s / with.event_s, 1, 0.15);
}

TEST_P(Templates, ALargerTileOfAGemmIsFaster) {
  const Result<Problem> problem = gemm(4096, 4096, 4096);
  Pins small = gemm_pins(3), large = gemm_pins(3);
  small["BM"] = small["BN"] = int64_t{64};
  expect_gain(time(problem, small), time(problem, large), 1.1);
}

TEST_P(Templates, AGemmIsBelowItsPeak) {
  const Result<Problem> problem = gemm(4096, 4096, 4096);
  const timing::LaunchTime t = time(problem, gemm_pins(3));
  const Result<Device> device = load_device(data_files(), GetParam());
  ASSERT_TRUE(device);
  const double peak =
      device->at("sms") * device->at("mma_sync_flops_per_clk_bf16") * 1e6 * device->at("clock_sustained_mhz");
  const double share = 2.0 * 4096 * 4096 * 4096 / t.event_s / peak;
  EXPECT_LE(share, 1);
  EXPECT_GE(share, 0.4);
  EXPECT_LE(t.roofline_s, t.event_s * 1.001);
}

INSTANTIATE_TEST_SUITE_P(Slow, Templates, testing::Values("a100-sxm-80", "h100-sxm"),
                         [](const auto& test) { return test.param.substr(0, test.param.find('-')); });

}  // namespace
}  // namespace roofgen::profile::templates_test

// Scores of the warpgroup variants by the event model: good schedules on h200-sxm, timed directly. A score is the time
// of the sustained roofline over the modelled one. The floors are goals of the project, not values of today's model.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generator/ops/op.h"
#include "kernels.h"
#include "runtime/sass/code.h"
#include "tests/profile/generated.h"
#include "tuner/model.h"
#include "tuner/work.h"

namespace roofgen::profile::warpgroup_scores_test {
namespace {

constexpr const char* kDevice = "h200-sxm";

/// The score of a schedule; the pins leave nothing else to the defaults that matters.
Result<double> score_of(Problem problem, const Pins& pins, const std::string& variant = "warpgroup") {
  ROOFGEN_TRY(const Op* op, find_op(problem.op));
  ROOFGEN_TRY(problem, op->complete(std::move(problem)));
  ROOFGEN_TRY(const Compiled compiled, compile({problem, kDevice, pins, {}, variant}));
  std::vector<Result<sass::Code>> code =
      sass::read_code({{compiled.binary.cubin, compiled.binary.entry, compiled.binary.arch}});
  if (!code[0]) return code[0].error();
  ROOFGEN_TRY(const timing::Machine machine, timing::machine_of(compiled.device));
  timing::LaunchRequest request = launch_request(compiled);
  request.code = &*code[0];
  ROOFGEN_TRY(const timing::LaunchTime time, timing::launch_time(compiled.device, machine, std::move(request)));
  if (!time.doubts.empty() || time.sm.broken_waits)
    return Error{Exit::kFailed, fmt::format("{} doubts, {} waits that nothing ends", time.doubts.size(),
                                            static_cast<int64_t>(time.sm.broken_waits))};
  ROOFGEN_TRY(const WorkFormula formula, WorkFormula::load(data_files(), problem.op));
  ROOFGEN_TRY(const RequiredWork work, required_work(*op, &formula, problem));
  return problem_floor(compiled.device, work, problem.dtype, RoofSet::kSustained).seconds / time.event_s;
}

class WarpgroupScores : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  }
  static void expect_at_least(double floor, const Result<double>& score) {
    ASSERT_TRUE(score) << to_string(score.error());
    RecordProperty("score", fmt::format("{:.3f}", *score));
    EXPECT_GE(*score, floor);
    EXPECT_LE(*score, 1);
  }
};
using SlowWarpgroupScores = WarpgroupScores;

Result<double> gemm(int64_t size, int64_t cluster = 1, int64_t cluster_n = 1) {
  Problem p{"gemm", {{"M", size}, {"N", size}, {"K", size}}, DType::kBf16, {}, {}};
  p.texts = {{"epilogue", "acc"}, {"a_layout", "row"}, {"b_layout", "col"}, {"gated", ""}};
  return score_of(std::move(p), {{"BM", int64_t{128}},
                                 {"BN", int64_t{256}},
                                 {"groups", int64_t{2}},
                                 {"stages", int64_t{3}},
                                 {"group", int64_t{8}},
                                 {"wide", int64_t{4}},
                                 {"cluster", cluster},
                                 {"cluster_n", cluster_n},
                                 {"store", std::string("staged")}});
}

Result<double> attention(int64_t d, int64_t batch, int64_t heads, int64_t kv_heads, int64_t groups, int64_t keys,
                         int64_t cluster = 1) {
  return score_of({"attention",
                   {{"L", 4096}, {"d", d}, {"batch", batch}, {"heads", heads}, {"kv_heads", kv_heads}},
                   DType::kBf16,
                   {},
                   {}},
                  {{"groups", groups},
                   {"BN", keys},
                   {"k_stages", int64_t{2}},
                   {"v_stages", int64_t{2}},
                   {"pingpong", true},
                   {"cluster", cluster}});
}

Result<double> rmsnorm(int64_t rows, int64_t cols, int64_t cluster) {
  return score_of({"rmsnorm", {{"rows", rows}, {"cols", cols}}, DType::kBf16, {}, {}}, {{"cluster", cluster}}, "fused");
}

TEST_F(WarpgroupScores, Gemm4096) { expect_at_least(0.75, gemm(4096)); }
TEST_F(SlowWarpgroupScores, Gemm8192) { expect_at_least(0.75, gemm(8192)); }
TEST_F(WarpgroupScores, AttentionOf128) { expect_at_least(0.65, attention(128, 1, 64, 8, 2, 176)); }
TEST_F(SlowWarpgroupScores, AttentionOf64) { expect_at_least(0.48, attention(64, 4, 32, 32, 3, 128)); }

// CTAs of a cluster wait for each other: a wait that nothing ends is an error here.
TEST_F(WarpgroupScores, GemmOfClusters) { expect_at_least(0.75, gemm(4096, 2, 1)); }
TEST_F(SlowWarpgroupScores, GemmOfClusters) {
  expect_at_least(0.75, gemm(4096, 1, 2));
  // 16 clusters of 8 CTAs, of which 15 find places at a time.
  expect_at_least(0.4, gemm(4096, 4, 2));
}
TEST_F(SlowWarpgroupScores, AttentionOfClusters) { expect_at_least(0.65, attention(128, 1, 64, 8, 2, 176, 2)); }
TEST_F(WarpgroupScores, RowsOfClusters) { expect_at_least(0.6, rmsnorm(1024, 65536, 4)); }
TEST_F(SlowWarpgroupScores, RowsOfClusters) {
  for (const int64_t cluster : {2, 8}) expect_at_least(0.6, rmsnorm(1024, 65536, cluster));
}

}  // namespace
}  // namespace roofgen::profile::warpgroup_scores_test

// Rows that the CTAs of a cluster share: random problems and schedules against the reference, common totals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "tests/kernels/rows_case.h"

namespace roofgen::test::rows_cluster_test {
namespace {

constexpr const char *kRows = "rows/rows.cu.jinja", *kExchange = "lib/cluster_reduce.cuh",
                     *kCluster = "lib/cluster.cuh";

Pins pins(int64_t cluster, int64_t row_threads, const char* residency = "registers", int64_t rows_each = 1) {
  return {{"cluster", n(cluster)},
          {"row_threads", n(row_threads)},
          {"residency", text(residency)},
          {"rows_each", n(rows_each)},
          {"batch", n(1)}};
}

// ---- Results ---------------------------------------------------------------------------------------

class RowsCluster : public testing::TestWithParam<RowsCase> {};

TEST_P(RowsCluster, IsRight) { expect_right(GetParam()); }

/// Lengths from less than one group for each CTA to several groups a thread, most of them at no multiple of a group.
std::vector<RowsCase> random_cases() {
  std::mt19937 random(20260127);
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  std::vector<RowsCase> out;
  for (int k = 0; k < 24; ++k) {
    RowsCase c{any("rmsnorm", "layernorm", "softmax"), 1 + static_cast<int64_t>(random() % 6), 0};
    c.dtype = any(DType::kBf16, DType::kFp16, DType::kFp32);
    const bool is_softmax = c.op == "softmax";
    if (!is_softmax && random() % 2) c.flags["residual"] = true;
    if (c.op == "layernorm" && random() % 2) c.flags["bias"] = true;
    if (!is_softmax && random() % 2) c.texts = any(kFp8, kInt8);
    const int64_t cluster = any(2, 4, 8), row_threads = any(8, 32, 64, 128);
    c.cols = 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(4 * 8 * cluster * row_threads / any(1, 8, 64)));
    if (random() % 3 == 0) c.cols += 16 - c.cols % 16;
    const bool packs = c.dtype != DType::kFp32 && !c.flags.count("residual");
    c.pins = pins(cluster, row_threads, any("registers", packs ? "packed" : "registers", "shared", "memory"),
                  row_threads < 128 ? 1 : any(1, 2));
    out.push_back(std::move(c));
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(Random, RowsCluster, testing::ValuesIn(random_cases()),
                         [](const auto& test) { return std::to_string(test.index) + "_" + label(test.param); });

const RowsCase kEnds[] = {
    // Most CTAs have no column.
    {"softmax", 5, 1, DType::kBf16, {}, {}, {}, "fused", pins(8, 32)},
    {"rmsnorm", 5, 9, DType::kBf16, kResidual, kInt8, {}, "fused", pins(8, 32)},
    {"layernorm", 3, 35, DType::kFp32, kBoth, {}, {}, "fused", pins(4, 8)},
    // A segment that contains only -infinity, and rows with NaN and infinities.
    {"softmax", 6, 4097, DType::kFp32, {}, {}, {}, "fused", pins(8, 64), InputPattern::kSpecial},
    {"softmax", 6, 4096, DType::kBf16, {}, {}, {}, "fused", pins(4, 64, "memory"), InputPattern::kSpecial},
    {"rmsnorm", 6, 4096, DType::kBf16, {}, kFp8, {}, "fused", pins(2, 128), InputPattern::kSpecial},
    // The default schedule of a long row.
    {"layernorm", 2, 40000, DType::kBf16, kBoth},
};
INSTANTIATE_TEST_SUITE_P(Ends, RowsCluster, testing::ValuesIn(kEnds),
                         [](const auto& test) { return label(test.param); });

/// y is the sum of the row in each of its columns.
const RowsCase kTotals{"map", 3, 3000, DType::kFp32, {}, {{"expr", "sum(x * 1.1)"}}, {}, "fused", pins(8, 64)};
/// Whether each row of y has one value.
bool totals_are_common(const StageRun& r) {
  const std::vector<std::byte>& y = r.bytes.at("y");
  const size_t row = static_cast<size_t>(kTotals.cols) * sizeof(float);
  for (size_t at = 0; at < y.size(); at += sizeof(float))
    if (std::memcmp(&y[at], &y[at / row * row], sizeof(float)) != 0) return false;
  return y.size() == static_cast<size_t>(kTotals.rows) * row;
}

TEST(RowsClusterTotals, AreBitwiseTheSameInAllCtasAndRuns) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto request = request_of(kTotals);
  ASSERT_TRUE(request) << to_string(request.error());
  request->keep_bytes = true;
  auto first = run(*request);
  request->order = 7;
  auto second = run(*request);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(what_is_wrong(*first), "");
  EXPECT_TRUE(totals_are_common(first->front()));
  EXPECT_EQ(first->front().bytes, second->front().bytes);
}

TEST(RowsClusterTotals, WouldDifferInAnOrderThatDependsOnTheCta) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto request = request_of(kTotals);
  ASSERT_TRUE(request) << to_string(request.error());
  request->keep_bytes = true;
  request->edits = {{kExchange, "float total = part[row][0];", "float total = part[row][cluster_rank()];"},
                    {kExchange, "total = R::combine(total, part[row][rank]);",
                     "total = R::combine(total, part[row][(rank + cluster_rank()) % kCluster]);"}};
  auto runs = run(*request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_FALSE(totals_are_common(runs->front()));
}

// ---- Rules -----------------------------------------------------------------------------------------

/// Why a device of this architecture has no such schedule; empty: it has it.
std::string broken_rule(const RowsCase& c, int64_t arch) {
  const auto request = request_of(c);
  if (!request) return to_string(request.error());
  const Op& op = **find_op(c.op);
  const auto variants = op.variants(DataFiles(), request->problem);
  if (!variants) return to_string(variants.error());
  expr::Map scope = op.scope(request->problem);
  scope["device"] = expr::Value(expr::Map{{"smem_per_block", 101376},
                                          {"smem_per_sm", 102400},
                                          {"regs_per_sm", 65536},
                                          {"sms", 128},
                                          {"max_threads_per_sm", 1536},
                                          {"arch", arch}});
  const auto legal = legal_schedule(variants->front(), variants->front().stages[0], scope, c.pins);
  return legal ? "" : legal.error().message;
}

TEST(RowsClusterRules, ADeviceWithoutClustersRejectsThem) {
  const RowsCase c{"rmsnorm", 4, 8192, DType::kBf16, {}, {}, {}, "fused", pins(4, 256)};
  for (const int64_t arch : {80, 89}) EXPECT_THAT(broken_rule(c, arch), testing::HasSubstr("device.arch >= 90"));
  for (const int64_t arch : {90, 100}) EXPECT_EQ(broken_rule(c, arch), "");
}

TEST(RowsClusterRules, RowsWithoutReductionsAreNotShared) {
  const RowsCase c{"map", 4, 8192, DType::kBf16, {}, {{"expr", "x * 2"}}, {}, "fused", {{"cluster", n(2)}}};
  EXPECT_THAT(broken_rule(c, 90), testing::HasSubstr("reduces > 0"));
}

}  // namespace
}  // namespace roofgen::test::rows_cluster_test

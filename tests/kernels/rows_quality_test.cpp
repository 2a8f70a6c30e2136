// Kernel quality by exact counts, with the default schedules: reads, writes and the instructions between them.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/rows_case.h"

namespace roofgen::test::rows_quality_test {
namespace {

class RowsQuality : public testing::TestWithParam<RowsCase> {};

TEST_P(RowsQuality, Counts) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  auto request = request_of(GetParam());
  ASSERT_TRUE(request) << to_string(request.error());
  auto runs = run(*request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  ASSERT_EQ(what_is_wrong(*runs), "");
  ASSERT_EQ(runs->size(), 1u);
  const StageRun& r = runs->front();
  SCOPED_TRACE(to_string(r.schedule));
  const Counts& c = r.counts;
  const auto& dims = request->problem.dims;
  EXPECT_EQ(r.binary.spill_bytes, 0);
  EXPECT_EQ(c.local, 0u);
  if (dims.at("cols") % 8 == 0) {
    EXPECT_EQ(c.narrow_load, 0u);
  }
  EXPECT_LE(static_cast<double>(c.smem_wavefronts), 1.02 * static_cast<double>(c.smem_ideal_wavefronts));

  double reads = 0, columns = 0, writes = 0;
  for (const Buffer& b : (*find_op(request->problem.op))->buffers(request->problem)) {
    const bool streamed = b.name == "x" || b.name == "residual";
    (b.role == Buffer::Role::kOutput ? writes : streamed ? reads : columns) += static_cast<double>(b.bytes);
  }
  // Lower bound of DRAM traffic: every sector once.
  EXPECT_LE(32.0 * static_cast<double>(c.unique_read_sectors), 1.02 * (reads + columns));
  EXPECT_LE(32.0 * static_cast<double>(c.unique_write_sectors), 1.02 * writes);
  // Requests: in a row that does not start at a multiple of the group size, the first and last group are accessed
  // element by element, up to 8 each.
  const double ends = dims.at("cols") % 8 == 0 ? 0 : 32.0 * 16 * static_cast<double>(dims.at("rows"));
  EXPECT_LE(32.0 * static_cast<double>(c.l2_write_sectors), 1.02 * writes + ends);
  // L2 reads: each row once, and shared operands once per row (without L1 hits).
  const auto is_kept = [](const auto& p) { return p.first == "residency" && p.second != text("memory"); };
  const bool again = std::none_of(r.schedule.params.begin(), r.schedule.params.end(), is_kept);
  EXPECT_LE(32.0 * static_cast<double>(c.l2_read_sectors),
            1.02 * ((again ? 2 : 1) * reads + columns * static_cast<double>(dims.at("rows"))) + ends);
  const double elements = static_cast<double>(dims.at("rows") * dims.at("cols"));
  RecordProperty("warp instructions per 32 elements",
                 std::to_string(32.0 * static_cast<double>(c.warp_instructions) / elements));
  RecordProperty("registers", r.binary.registers);
}

const RowsCase kCases[] = {
    {"rmsnorm", 16, 4096},
    {"rmsnorm", 8, 8192, DType::kBf16, kResidual},
    {"rmsnorm", 8, 4096, DType::kBf16, kResidual, kFp8},
    {"rmsnorm", 128, 128, DType::kBf16, kResidual},
    {"layernorm", 4, 12288, DType::kBf16, kBoth},
    {"layernorm", 4, 16384, DType::kFp32, kBoth},
    {"layernorm", 2, 32768, DType::kBf16, kBoth},
    {"softmax", 16, 1024},
    {"softmax", 4, 16384},
    {"softmax", 2, 32768},
    {"softmax", 2, 100000},
    {"softmax", 2, 50000, DType::kFp32},
    {"softmax", 2, 131072},
    {"softmax", 8, 4099},
    {"map", 4, 8192, DType::kBf16, {}, {{"expr", "gelu(x + bias[n]) + residual[m,n]"}}},
};
INSTANTIATE_TEST_SUITE_P(Slow, RowsQuality, testing::ValuesIn(kCases),
                         [](const auto& test) { return label(test.param); });

}  // namespace
}  // namespace roofgen::test::rows_quality_test

#include "tuner/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "tuner/code_time.h"

namespace roofgen::model_test {

namespace {

Device device(const char* name) { return *load_device(DataFiles(), name); }

double seconds(const std::vector<RoofTime>& roofs, const std::string& name) {
  const auto it = std::find_if(roofs.begin(), roofs.end(), [&](const RoofTime& r) { return r.name == name; });
  return it == roofs.end() ? -1 : it->seconds;
}

Work tensor_work(double flops, double ctas, const char* math = "bf16") {
  Work w;
  w.math = math;
  w.mma_flops = flops;
  w.ctas = ctas;
  w.warps_per_cta = 4;
  return w;
}

}  // namespace

TEST(Estimate, TensorCopiesCountLessOfTheL2Roof) {
  // The same bytes by loads and by tensor copies; the machine code says nothing slower.
  const Device d = device("h100-sxm");
  Work w = tensor_work(1e9, 132 * 4);
  w.l2_bytes = 1e9;
  CodeTime loads, copies;
  copies.counts.tile_sectors = 1e9 / 32;
  const KernelTime slow = estimate(d, w, {1, 4, 0.06, ""}, loads), fast = estimate(d, w, {1, 4, 0.06, ""}, copies);
  EXPECT_EQ(slow.bound_by, "L2");
  const double launch = 1e-6 * d.at("launch_us");
  const double rate = d.at("shared_copy_l2_bytes_per_clk") * 1e6 * d.at("clock_sustained_mhz");
  EXPECT_NEAR(fast.work_seconds - launch, 1e9 / rate, 1e-9);
  EXPECT_LT(fast.work_seconds, slow.work_seconds);
  // A device without the cell has one rate.
  EXPECT_EQ(estimate(device("a100-sxm-80"), w, {1, 4, 0.06, ""}, copies).work_seconds,
            estimate(device("a100-sxm-80"), w, {1, 4, 0.06, ""}, loads).work_seconds);
}

TEST(Estimate, ADependentLaunchSavesAPartOfTheLaunch) {
  const Device d = device("h100-sxm");
  Work normal = tensor_work(1e9, 132), dependent = normal;
  dependent.dependent = true;
  CodeTime code;
  code.seconds = 50e-6;
  const double saved = 1e-6 * d.at(kDependentSaving);
  EXPECT_NEAR(estimate(d, normal, {1, 4, 0.06, ""}).seconds - estimate(d, dependent, {1, 4, 0.06, ""}).seconds, saved,
              1e-12);
  EXPECT_NEAR(estimate(d, dependent, {1, 4, 0.06, ""}, code).seconds, 50e-6 - saved, 1e-12);
  // Nothing is known about other devices.
  EXPECT_EQ(launch_seconds(device("a100-sxm-80"), true), launch_seconds(device("a100-sxm-80"), false));
}

// Attention, B*H = 256 heads of L = 2048, d = 64: 2.75e11 FLOP, 1.07e9 exps.
TEST(Roofline, FloorOfAttentionOnH200) {
  const RequiredWork floor{2.748779e11, 1.073742e9, 2.684355e8};
  const ProblemFloor f = problem_floor(device("h200-sxm"), floor, DType::kBf16, RoofSet::kDatasheet);
  // 2.748779e11 / 989.4e12 = 277.8 us, and one launch of 1.27 us.
  EXPECT_NEAR(f.seconds * 1e6, 279.1, 0.2);
  EXPECT_EQ(f.bound_by, "tensor");
}

TEST(Roofline, FloorOfACopyIsItsBytes) {
  const ProblemFloor f = problem_floor(device("h200-sxm"), {0, 0, 4.621e9}, DType::kBf16, RoofSet::kSustained);
  EXPECT_NEAR(f.seconds, 1e-3 + 1.27e-6, 1e-9);
  EXPECT_EQ(f.bound_by, "DRAM");
}

TEST(Roofline, MmaSyncHasACeilingOfItsOwnOnHopper) {
  Work w = tensor_work(989.4e12, 132);
  EXPECT_NEAR(seconds(roof_times(device("h200-sxm"), w, RoofSet::kDatasheet), "tensor (mma.sync)"), 1.5, 0.01);
  w.mma_flops = 312e12;
  EXPECT_NEAR(seconds(roof_times(device("a100-sxm-80"), w, RoofSet::kDatasheet), "tensor (mma.sync)"), 1.0, 0.01);
}

TEST(Roofline, TheTensorRoofFollowsTheMatrixInstruction) {
  Work w = tensor_work(989.4e12, 132);
  w.matrix = matrix_instruction("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16");
  EXPECT_NEAR(seconds(roof_times(device("h200-sxm"), w, RoofSet::kDatasheet), "tensor (wgmma)"), 1.0, 0.01);
  EXPECT_TRUE(known_rates(device("h200-sxm"), w.matrix, DType::kBf16, 1));
  w.matrix = matrix_instruction("tcgen05.mma.cta_group::1.kind::f16");
  w.mma_flops = 2250e12;
  EXPECT_NEAR(seconds(roof_times(device("b200"), w, RoofSet::kDatasheet), "tensor (tcgen05)"), 1.0, 0.01);
  EXPECT_FALSE(known_rates(device("h200-sxm"), w.matrix, DType::kBf16, 1));
  EXPECT_EQ(matrix_instruction("mma.sync.aligned.m16n8k16"), MatrixInstruction::kMmaSync);
  EXPECT_EQ(estimate(device("b200"), w, {1, 4, 0.06, ""}).roof, "tensor (tcgen05)");
}

TEST(Roofline, DatasheetCeilingsScaleWithTheClockOfASample) {
  const RequiredWork floor{989.4e12, 0, 0};
  const Device slow = at_clock(device("h200-sxm"), 915);
  EXPECT_NEAR(problem_floor(slow, floor, DType::kBf16, RoofSet::kSustained).seconds, 2, 0.01);
  EXPECT_NEAR(problem_floor(slow, {0, 0, 4.8e9}, DType::kBf16, RoofSet::kSustained).seconds, 1e-3 + 1.27e-6, 1e-9);
}

TEST(Roofline, EveryFormatHasItsOwnTensorRate) {
  Work w = tensor_work(624e12, 132);
  const auto tensor = [&](const char* name, DType dtype) {
    w.math = matrix_math(dtype);
    return seconds(roof_times(device(name), w, RoofSet::kDatasheet), "tensor (mma.sync)");
  };
  EXPECT_NEAR(tensor("a100-sxm-80", DType::kInt8), 1.0, 0.01);
  EXPECT_NEAR(tensor("a100-sxm-80", DType::kTf32), 4.0, 0.02);
  w.mma_flops = 724.1e12;
  EXPECT_NEAR(tensor("l40s", DType::kFp8), 1.0, 0.01);
  EXPECT_NEAR(problem_floor(device("h100-sxm"), {1978.9e12, 0, 0}, DType::kFp8, RoofSet::kDatasheet).seconds, 1.0,
              0.01);
}

TEST(Roofline, AMissingRateIsRefusedByNameAndNeverZero) {
  const Device a100 = device("a100-sxm-80");
  EXPECT_EQ(known_rates(a100, MatrixInstruction::kMmaSync, DType::kFp8, 1).error().message,
            "a100-sxm-80 has no mma_sync_flops_per_clk_fp8: the rate of fp8 matrix work there is not known");
  EXPECT_EQ(known_rates(a100, MatrixInstruction::kMmaSync, DType::kFp8, 1).error().exit, Exit::kUnavailable);
  EXPECT_TRUE(known_rates(a100, MatrixInstruction::kMmaSync, DType::kFp8, 0));  // quantised rows: no matrix work
  EXPECT_TRUE(known_rates(a100, MatrixInstruction::kMmaSync, DType::kFp32, 0));
  EXPECT_TRUE(known_rates(a100, MatrixInstruction::kMmaSync, DType::kInt8, 1));
  EXPECT_TRUE(
      std::isinf(seconds(roof_times(a100, tensor_work(1, 1, "fp8"), RoofSet::kDatasheet), "tensor (mma.sync)")));
  EXPECT_EQ(seconds(roof_times(a100, tensor_work(0, 1, "fp32"), RoofSet::kDatasheet), "tensor (mma.sync)"), 0);
}

TEST(Estimate, TooFewCtasIsIdleNotWaste) {
  const Device d = device("h200-sxm");
  const Occupancy two{2, 8, 0.125, "registers"};
  const KernelTime full = estimate(d, tensor_work(1e12, 132 * 20), two);
  const KernelTime few = estimate(d, tensor_work(1e12, 16), two);
  EXPECT_DOUBLE_EQ(full.work_seconds, few.work_seconds);
  EXPECT_GT(few.kernel_seconds, 8 * full.kernel_seconds);
  EXPECT_EQ(few.bound_by, "parallelism");
}

TEST(Estimate, MoreWarpsOverlapMore) {
  const Device d = device("h200-sxm");
  Work w = tensor_work(1e12, 13200);
  w.mufu_ops = 1e9;
  w.fp32_ops = 4e9;
  const KernelTime one = estimate(d, w, {1, 4, 0.06, ""});
  const KernelTime four = estimate(d, w, {4, 16, 0.25, ""});
  EXPECT_GT(one.seconds, four.seconds);
  EXPECT_GE(four.seconds, four.kernel_seconds);
}

TEST(Estimate, HalvingBandwidthDoublesAMemoryBoundTime) {
  Device d = device("h200-sxm");
  Work w;
  w.dram_bytes = w.l2_bytes = 1e10;
  w.ctas = 13200;
  w.warps_per_cta = 4;
  const Occupancy occ{8, 32, 0.5, ""};
  const double before = estimate(d, w, occ).seconds;
  d.cells["dram_sustained_gb_s"].value /= 2;
  EXPECT_NEAR(estimate(d, w, occ).seconds / before, 2, 0.05);
}

// The bands of docs/internals/model.md are those that decide.
TEST(ErrorBand, TheDocumentStatesThem) {
  std::ifstream file(ROOFGEN_SOURCE_DIR "/docs/internals/model.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto row = [&](const std::string& kind, const char* roof) {
    const std::string wanted =
        fmt::format("{} | {:.0f} % | {:.0f} % |", kind, 100 * error_band(TimeModel::kInterval, roof),
                    100 * error_band(TimeModel::kEvent, roof));
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  };
  row("| tensor", "tensor (mma.sync)");
  row("| memory (DRAM, L2)", "DRAM");
  row("| memory (DRAM, L2)", "L2");
  row("| pipes (all others)", "issue");
  row("| launch, parallelism", "launch");
  row("| launch, parallelism", "parallelism");
  EXPECT_EQ(error_band(TimeModel::kClosedForm, "DRAM"), 0.30);
}

}  // namespace roofgen::model_test

#include "roofline/analyses/explain.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "roofline/analyses/figures.h"

namespace roofgen::explain_test {

namespace {

Explanation explained(const char* op, const WorkRequest& request, const char* device = "h200-sxm",
                      RoofSet set = RoofSet::kDatasheet) {
  const DataFiles files;
  const auto formula = WorkFormula::load(files, op);
  auto e = explain(*load_device(files, device), *formula->evaluate(request), set);
  EXPECT_TRUE(e) << to_string(e.error());
  return *e;
}

bool warns(const Explanation& e, const std::string& rule) {
  return std::any_of(e.warnings.begin(), e.warnings.end(), [&](const Warning& w) { return w.rule == rule; });
}

const WorkRequest kOneHead{.dims = {{"L", 2048}, {"d", 64}, {"batch", 1}, {"heads", 1}, {"passes", 4}}};

}  // namespace

TEST(Explain, RidgesOfTheCatalogue) {
  EXPECT_NEAR(explained("gemm", {.dims = {{"M", 1}, {"N", 1}, {"K", 1}}}, "h100-sxm").ridge, 295.2, 0.1);
  EXPECT_NEAR(explained("gemm", {.dims = {{"M", 1}, {"N", 1}, {"K", 1}}}, "h200-sxm").ridge, 206.1, 0.1);
  EXPECT_NEAR(explained("gemm", {.dims = {{"M", 1}, {"N", 1}, {"K", 1}}}, "a100-sxm-80").ridge, 153.0, 0.1);
  EXPECT_NEAR(explained("gemm", {.dims = {{"M", 1}, {"N", 1}, {"K", 1}}, .dtypes = {{"", "fp8"}}}, "h100-sxm").ridge,
              590.4, 0.1);
}

// Elementwise work runs on the CUDA cores, so their ridge applies, not that of the tensor cores.
TEST(Explain, VectorWorkIsHeldAgainstTheCudaCores) {
  const Explanation e = explained("scale", {.dims = {{"elements", 1 << 28}}, .dtypes = {{"", "fp32"}}}, "a100-sxm-80");
  EXPECT_EQ(e.compute.name, "FP32 CUDA cores");
  EXPECT_NEAR(e.ridge, 9.56, 0.01);
  EXPECT_EQ(e.regime, Regime::kMemory);
  EXPECT_NEAR(e.attainable_flops_per_s, 2039e9 / 8, 1e6);
}

TEST(Explain, MatmulTableOfMemoryAndCompute) {
  const double expected[] = {0.50, 1.00, 31.51, 227.6, 682.7, 1365.3};
  const struct {
    int64_t m, n, k;
  } shapes[] = {{1, 1, 1024},      {1, 4096, 4096},    {32, 4096, 4096},
                {256, 4096, 4096}, {1024, 4096, 4096}, {4096, 4096, 4096}};
  for (size_t i = 0; i < 6; ++i) {
    const Explanation e =
        explained("gemm", {.dims = {{"M", shapes[i].m}, {"N", shapes[i].n}, {"K", shapes[i].k}}}, "h100-sxm");
    EXPECT_NEAR(e.arithmetic_intensity, expected[i], 0.05);
    EXPECT_EQ(e.below_ridge(), i < 4);
  }
}

TEST(Explain, OneHeadFitsL2AndLeavesSmsIdle) {
  const Explanation e = explained("attention", kOneHead);
  EXPECT_NEAR(e.dram_bytes, 34.6e6, 0.01e6);
  EXPECT_NEAR(e.arithmetic_intensity, 31.0, 0.05);
  EXPECT_TRUE(warns(e, "R09"));
  EXPECT_TRUE(warns(e, "R10"));
  EXPECT_EQ(e.binding_roof, "DRAM");
  EXPECT_EQ(e.kernels.back().regime, Regime::kParallelism);  // 16 CTAs for 132 SMs
}

TEST(Explain, ManyHeadsFlashIsComputeBoundAndQuiet) {
  const Explanation e = explained("attention", {.dims = {{"L", 2048}, {"d", 128}}});
  EXPECT_EQ(e.regime, Regime::kCompute);
  EXPECT_EQ(e.binding_roof, "BF16 tensor, FP32 accumulate");
  EXPECT_FALSE(warns(e, "R09"));
  EXPECT_FALSE(warns(e, "R10"));
}

TEST(Explain, DecodeNamesTheCache) {
  const std::map<std::string, int64_t> decode{{"L", 1},      {"kv_len", 8192}, {"d", 128},
                                              {"heads", 64}, {"kv_heads", 8},  {"batch", 32}};
  const Explanation e = explained("attention", {.dims = decode});
  EXPECT_EQ(e.regime, Regime::kMemory);
  EXPECT_EQ(
      e.next_lever,
      "fewer bytes of the cache: K and V are 99.9 % of all bytes, each key is read once for 8 query rows; a narrower "
      "cache (--kv-dtype), or more queries for each key (L, heads / kv_heads); a larger batch raises no intensity");
  // As many queries as keys: the cache is half of the bytes.
  EXPECT_EQ(explained("attention", {.dims = {{"L", 64}, {"kv_len", 64}, {"d", 128}, {"batch", 4096}}}).next_lever,
            "fewer bytes: narrower operands, or fusion with a neighbour");
}

TEST(Explain, ATinyKernelIsALaunch) {
  const Explanation e = explained("rmsnorm", {.dims = {{"rows", 132}, {"cols", 4096}}});
  EXPECT_EQ(e.regime, Regime::kLaunch);
  EXPECT_TRUE(warns(e, "R17"));
}

TEST(Explain, NarrowOperandsAreWidenedWhereThereAreNoUnits) {
  const Explanation e =
      explained("gemm", {.dims = {{"M", 4096}, {"N", 4096}, {"K", 4096}}, .dtypes = {{"", "nvfp4"}}}, "h100-sxm");
  EXPECT_EQ(e.compute.math, "fp8");
  EXPECT_NE(e.compute_note.find("no fp4 matrix units"), std::string::npos);
  const DataFiles files;
  const auto a100 = *load_device(files, "a100-sxm-80");
  EXPECT_EQ(matrix_roof(a100, "fp8", "fp32", RoofSet::kDatasheet)->math, "fp16");
  const auto v100 = *load_device(files, "v100-sxm2");
  EXPECT_EQ(matrix_roof(v100, "bf16", "fp32", RoofSet::kDatasheet)->name, "FP32 CUDA cores");
  EXPECT_EQ(matrix_roof(a100, "int3", "fp32", RoofSet::kDatasheet).error().exit, Exit::kUsage);
}

TEST(Explain, SustainedCeilingsAreLower) {
  const WorkRequest big{.dims = {{"M", 8192}, {"N", 8192}, {"K", 8192}}};
  EXPECT_NEAR(explained("gemm", big, "h200-sxm", RoofSet::kSustained).compute.rate / 1e12, 989.4 * 1600 / 1830, 0.1);
  EXPECT_GT(explained("gemm", big, "h200-sxm", RoofSet::kSustained).seconds, explained("gemm", big).seconds);
}

TEST(Explain, CollectivesAreBoundByTheLink) {
  const DataFiles files;
  const auto formula = WorkFormula::load(files, "all_reduce");
  const OpWork work = *formula->evaluate({.dims = {{"elements", 1 << 26}, {"gpus", 8}}});
  EXPECT_EQ(work.kernels[0].link_bytes, 2.0 * 7 / 8 * (1 << 26) * 2);
  Device device = *load_device(files, "h100-sxm");
  const auto e = explain(device, work);
  ASSERT_TRUE(e);
  EXPECT_EQ(e->regime, Regime::kNvlink);
  EXPECT_NEAR(e->seconds, 3e-6 + 2.0 * 7 / 8 * (1 << 26) * 2 / 450e9, 1e-9);
  device.cells.erase("nvlink_gb_s");
  EXPECT_EQ(explain(device, work).error().message, "h100-sxm has no NVLink; a device with nvlink_gb_s was expected");
}

TEST(Explain, CrossingIsTheFirstBatchAtTheRidge) {
  const DataFiles files;
  const auto formula = WorkFormula::load(files, "gemm");
  const WorkRequest request{.dims = {{"M", 1}, {"N", 4096}, {"K", 4096}}};
  const auto crossing = [&](const char* device) {
    return ridge_crossing(*formula, request, explained("gemm", request, device));
  };
  EXPECT_EQ(crossing("h100-sxm"), 345);
  EXPECT_EQ(crossing("a100-sxm-80"), 166);
  // kv_b of DeepSeek-R1 in FP4 on FP8 units: its limit is below the ridge.
  const WorkRequest kv_b{.dims = {{"M", 1}, {"N", 32768}, {"K", 512}}, .dtypes = {{"", "fp8"}}};
  EXPECT_EQ(ridge_crossing(*formula, kv_b, explained("gemm", kv_b, "h100-sxm")), std::nullopt);
}

// The peaks of CUDA cores and tensor cores are stated at different clocks.
TEST(Explain, SustainedRatesScaleFromTheClockTheyAreStatedAt) {
  const Device d = *load_device(DataFiles(), "h200-sxm");
  EXPECT_NEAR(vector_roof(d, RoofSet::kSustained).rate / 1e12, 66.9 * 1600 / 1980, 0.05);
  EXPECT_NEAR(matrix_roof(d, "bf16", "fp32", RoofSet::kSustained)->rate / 1e12, 989.4 * 1600 / 1830, 0.05);
}

TEST(Explain, AnAccumulatorThatIsNotStatedIsSaid) {
  std::string note;
  EXPECT_TRUE(matrix_roof(*load_device(DataFiles(), "h200-sxm"), "bf16", "fp16", RoofSet::kDatasheet, &note));
  EXPECT_NE(note.find("no bf16 rate with fp16 accumulation"), std::string::npos) << note;
  note.clear();
  EXPECT_EQ(matrix_roof(*load_device(DataFiles(), "rtx-4090"), "fp16", "fp16", RoofSet::kDatasheet, &note)->accumulate,
            "fp16");
  EXPECT_EQ(note, "");
}

// Wide tcgen05 tiles need half the shared-memory reads of wgmma: a large GEMM is compute-bound.
TEST(Explain, LargeGemmsAreComputeBoundOnEveryTensorGeneration) {
  for (const char* device : {"a100-sxm-80", "h100-sxm", "b200", "rtx-4090"}) {
    const Explanation e = explained("gemm", {.dims = {{"M", 8192}, {"N", 8192}, {"K", 8192}}}, device);
    EXPECT_GT(e.attainable_flops_per_s, 0.98 * e.compute.rate) << device << " " << e.binding_roof;
  }
}

// AI of four passes tends to d/2 with the length: (4d + 5) / 8 with five FLOPs per softmax element.
TEST(Figures, IntensityAgainstLengthTendsToItsLimit) {
  const WorkRequest request{.dims = {{"L", 4096}, {"d", 128}, {"batch", 1}, {"heads", 1}, {"passes", 4}},
                            .softmax_flops = 5};
  const auto formula = WorkFormula::load(DataFiles(), "attention");
  const auto lines = intensity_lines(*formula, request, explained("attention", request));
  ASSERT_TRUE(lines);
  std::map<double, double> ai(lines->series[0].points.begin(), lines->series[0].points.end());
  const double expected[] = {43.1, 51.7, 57.4, 60.8, 62.7, 63.6, 64.1, 64.4, 64.5};
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(ai.at(256 << i), expected[i], 0.05) << (256 << i);
  // The intensity of RMSNorm does not depend on the number of rows.
  const WorkRequest rows{.dims = {{"rows", 64}, {"cols", 4096}}};
  EXPECT_FALSE(intensity_lines(*WorkFormula::load(DataFiles(), "softmax"), rows, explained("softmax", rows)));
}

}  // namespace roofgen::explain_test

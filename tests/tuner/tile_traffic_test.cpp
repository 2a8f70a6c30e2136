// DRAM bytes of tiled kernels for different CTA orders.
#include <gtest/gtest.h>

#include "tuner/verify/l2_model.h"

namespace roofgen::tile_traffic_test {

namespace {

constexpr double kMiB = 1 << 20;

/// C = A x B of M x N x K in bf16 by 128 x 128 tiles; `group` rows of tiles are processed before the next column.
struct Gemm {
  int64_t m, n, k, group = 1;
  double l2 = 50 * kMiB;
  uint64_t wave = 132;

  std::vector<GridAxis> axes() const {
    const int64_t rows = (m + 127) / 128, cols = (n + 127) / 128;
    return {{"row", 0, group, 128}, {"col", 0, cols, 128}, {"row", 0, (rows + group - 1) / group, 128 * group}};
  }
  TileTraffic traffic() const {
    const double panel = 128.0 * static_cast<double>(k) * 2;
    return tile_traffic(axes(), {{"row", m}, {"col", n}},
                        {{"A", {"row"}, panel}, {"B", {"col"}, panel}, {"C", {"row", "col"}, 128 * 128 * 2, false}},
                        wave, l2);
  }
  double compulsory() const { return 2.0 * static_cast<double>(m * k + k * n + m * n); }
};

TEST(TileTraffic, FittingDataIsFetchedOnce) {
  const Gemm gemm{2048, 2048, 2048};
  EXPECT_DOUBLE_EQ(gemm.traffic().dram_bytes, gemm.compulsory());
  EXPECT_DOUBLE_EQ(gemm.traffic().miss_ratio(gemm.compulsory()), 1);
}

TEST(TileTraffic, TailsAndCtasBeyondTheMatrixCountTheirAccesses) {
  const Gemm gemm{300, 1000, 512, 4};  // three rows of tiles in groups of four: a quarter of the CTAs exit at once
  EXPECT_NEAR(gemm.traffic().compulsory_bytes, gemm.compulsory(), 1e-6);
  EXPECT_NEAR(gemm.traffic().dram_bytes, gemm.compulsory(), 1e-6);
}

// Row by row: B does not fit in L2 and is read at least once per wave.
TEST(TileTraffic, RowByRowReadsTheOtherOperandAgainAndGroupsReadLess) {
  Gemm gemm{16384, 16384, 16384};
  const double one = gemm.traffic().dram_bytes;
  gemm.group = 8;
  const double eight = gemm.traffic().dram_bytes;
  gemm.group = 12;  // 132 CTAs as 12 x 11
  const double square = gemm.traffic().dram_bytes;
  // By hand: a wave of 132 tiles covers 1 (or 2) rows and about 128 columns, then reads about 130 panels of 4 MiB; as
  // 12 x 11 it reads 23. 16384 tiles make 125 waves.
  const double panel = 4 * kMiB, c = 2.0 * 16384 * 16384, waves = 16384 / 132.0;
  EXPECT_NEAR((one - c) / (waves * panel), 130, 5);
  EXPECT_NEAR((square - c) / (waves * panel), 23, 3);
  EXPECT_LT(square, eight * 1.05);
  EXPECT_LT(eight, one / 4);
}

TEST(TileTraffic, ALargerCacheNeverReadsMore) {
  Gemm gemm{8192, 8192, 8192, 8};
  double last = 1e300;
  for (double mib : {1, 4, 16, 40, 96, 400, 1000}) {
    gemm.l2 = mib * kMiB;
    const double bytes = gemm.traffic().dram_bytes;
    EXPECT_LE(bytes, last * (1 + 1e-9)) << mib;
    EXPECT_GE(bytes, gemm.compulsory() * (1 - 1e-9)) << mib;
    last = bytes;
  }
  EXPECT_NEAR(last, gemm.compulsory(), 1);
}

// A fused epilogue's operands are read once, however often the product's operands are read.
TEST(TileTraffic, OnlyPanelsComeAgain) {
  const Gemm gemm{16384, 16384, 8192, 1};
  const TileTraffic t = gemm.traffic();
  ASSERT_GT(t.dram_bytes, 2 * t.compulsory_bytes);
  const double residual = 2.0 * 16384 * 16384, plain = gemm.compulsory() * t.miss_ratio(gemm.compulsory()),
               fused = (gemm.compulsory() + residual) * t.miss_ratio(gemm.compulsory() + residual);
  EXPECT_NEAR(fused - plain, residual, 1e-6 * residual);
}

// Even with almost no cache, the CTAs of a wave share the panels that they read at the same time.
TEST(TileTraffic, CtasInStepShareTheirPanels) {
  Gemm gemm{1024, 1024, 4096};
  gemm.l2 = 2 * kMiB;
  gemm.wave = 64;  // the whole grid at once
  EXPECT_DOUBLE_EQ(gemm.traffic().miss_ratio(gemm.compulsory()), 1);
}

TEST(TileTraffic, SlicesOfKHavePanelsOfTheirOwn) {
  const double panel = 128.0 * 4096 * 2 / 4;
  const std::vector<GridAxis> axes = {{"row", 0, 8, 128}, {"col", 1, 8, 128}, {"split", 2, 4, 1}};
  const TileTraffic t = tile_traffic(axes, {},
                                     {{"A", {"row", "split"}, panel},
                                      {"B", {"col", "split"}, panel},
                                      {"sums", {"row", "col", "split"}, 128 * 128 * 4, false}},
                                     132, 50 * kMiB);
  EXPECT_DOUBLE_EQ(t.dram_bytes, 2.0 * 1024 * 4096 * 2 + 4.0 * 1024 * 1024 * 4);
}

TEST(TileTraffic, TheFirstDimensionRunsFastest) {
  const auto bytes = [](bool reverse) {
    const std::vector<GridAxis> axes = {{"row", 1, 2, 1}, {"col", 0, 100, 1, reverse}};
    return tile_traffic(axes, {}, {{"B", {"col"}, kMiB, false}}, 1, 50 * kMiB / kL2Usable).dram_bytes;
  };
  // A cycle through 100 units with room for 50 always misses, in either direction.
  EXPECT_DOUBLE_EQ(bytes(false), 200 * kMiB);
  EXPECT_DOUBLE_EQ(bytes(true), 200 * kMiB);
  const std::vector<GridAxis> slow_columns = {{"row", 0, 2, 1}, {"col", 1, 100, 1}};
  EXPECT_DOUBLE_EQ(tile_traffic(slow_columns, {}, {{"B", {"col"}, kMiB, false}}, 1, 50 * kMiB).dram_bytes, 100 * kMiB);
}

/// Two row tiles of one group share its B, a third of another group reads another.
TEST(TileTraffic, EachGroupHasAnOperandOfItsOwn) {
  const std::vector<GridAxis> axes = {{"row", 0, 4, 64, false, true}, {"col", 1, 5, 128}};
  const TileTraffic t =
      tile_traffic(axes, {{"row", 100}}, {{"B", {"col", "group"}, kMiB}}, 132, 50 * kMiB, {0, 99, 100});
  EXPECT_DOUBLE_EQ(t.compulsory_bytes, 2 * 5 * kMiB);
  EXPECT_DOUBLE_EQ(t.dram_bytes, 2 * 5 * kMiB);
}

}  // namespace

}  // namespace roofgen::tile_traffic_test

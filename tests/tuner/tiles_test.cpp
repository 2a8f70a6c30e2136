// The CTAs that cover given output elements.
#include "tuner/verify/tiles.h"

#include <gtest/gtest.h>

namespace roofgen::tiles_test {
namespace {

/// Row tiles of 128 in groups of 4, all columns of a group before the next group: an output of 1000 x 300.
Launch rasterised() {
  Launch l;
  l.axes = {{"row", 0, 4, 128, false}, {"col", 0, 3, 128, false}, {"row", 0, 2, 512, false}, {"split", 2, 2, 1, false}};
  l.grid = {24, 1, 2};
  return l;
}

TEST(Tiles, FinestStepOfNestedAxes) {
  EXPECT_EQ(finest_step(rasterised(), "row"), 128);
  EXPECT_EQ(finest_step(rasterised(), "col"), 128);
  EXPECT_EQ(finest_step(rasterised(), "head"), 1);
}

TEST(Tiles, ARegionTakesTheTilesItTouchesAndEverySplit) {
  // Rows 600 .. 700 lie in row tiles 4 and 5: inner 0 and 1 of group 1; columns 250 .. 260 in column tiles 1 and 2.
  const std::vector<uint64_t> ids = select_ctas(rasterised(), {{0, 0, 600, 700, 250, 260}});
  const auto id = [](uint64_t inner, uint64_t col, uint64_t group, uint64_t split) {
    return inner + 4 * col + 12 * group + 24 * split;
  };
  const std::vector<uint64_t> expected{id(0, 1, 1, 0), id(1, 1, 1, 0), id(0, 2, 1, 0), id(1, 2, 1, 0),
                                       id(0, 1, 1, 1), id(1, 1, 1, 1), id(0, 2, 1, 1), id(1, 2, 1, 1)};
  EXPECT_EQ(ids, expected);
}

TEST(Tiles, RegionsWithoutColumnsTakeAllOfThem) {
  EXPECT_EQ(select_ctas(rasterised(), {{0, 0, 0, 1}}).size(), 3u * 2);
  EXPECT_EQ(select_ctas(rasterised(), {{0, 0, 0, 1}, {0, 0, 1, 2}}).size(), 3u * 2) << "each CTA once";
}

TEST(Tiles, HeadsAndReversedRows) {
  Launch l;
  l.axes = {{"row", 0, 8, 64, true}, {"head", 1, 4, 1, false}, {"batch", 2, 2, 1, false}};
  l.grid = {8, 4, 2};
  EXPECT_EQ(select_ctas(l, {{1, 2, 0, 64}}), (std::vector<uint64_t>{7 + 8 * 2 + 32}))
      << "the first rows belong to the last CTA";
}

TEST(Tiles, HeadsOfSections) {
  Launch l;
  l.axes = {{"head", 0, 2, 1, false}, {"row", 0, 3, 64, true}, {"head", 1, 2, 2, false}};
  l.grid = {6, 2, 1};
  EXPECT_EQ(select_ctas(l, {{0, 3, 0, 64}}), (std::vector<uint64_t>{1 + 2 * 2 + 6}));
}

TEST(Tiles, WithoutRowTilesEachRegionTakesAllCtasOfItsHead) {
  Launch l;
  l.axes = {{"token", 0, 3, 16, false}, {"head", 1, 2, 4, false}};
  l.grid = {3, 2, 1};
  EXPECT_EQ(select_ctas(l, {{0, 5, 768, 1024}}), (std::vector<uint64_t>{3, 4, 5}));
}

TEST(Tiles, ClustersAreTakenWhole) {
  Launch l;
  l.axes = {{"row", 0, 8, 64, false}, {"head", 1, 4, 1, false}};
  l.grid = {8, 4, 1};
  l.cluster = {2, 2, 1};
  EXPECT_EQ(select_ctas(l, {{0, 2, 192, 256}}), (std::vector<uint64_t>{2 + 16, 3 + 16, 2 + 24, 3 + 24}));
}

/// 300 rows in groups of 130, 0, 1, 169 and tiles of 64: three, none, one and three of them, and a bound of eight.
Launch grouped() {
  Launch l;
  l.axes = {{"row", 0, 2, 64, false, true}, {"col", 0, 3, 128, false}, {"row", 0, 4, 128, false, true}};
  l.grid = {24, 1, 1};
  return l;
}
const Extent kGroups{1, 1, 300, 384, {}, {0, 130, 130, 131, 300}};

TEST(Tiles, RowTilesBeginAnewAtEachGroup) {
  const auto of_tile = [](uint64_t tile) {
    std::vector<uint64_t> out;
    for (uint64_t col = 0; col < 3; ++col) out.push_back(tile % 2 + 2 * col + 6 * (tile / 2));
    return out;
  };
  EXPECT_EQ(select_ctas(grouped(), {{0, 0, 129, 130}}, kGroups), of_tile(2)) << "rows 128 and 129";
  EXPECT_EQ(select_ctas(grouped(), {{0, 0, 130, 131}}, kGroups), of_tile(3)) << "the group of one row";
  EXPECT_EQ(select_ctas(grouped(), {{0, 0, 131, 195}}, kGroups), of_tile(4));
  EXPECT_EQ(select_ctas(grouped(), {{0, 0, 299, 300}}, kGroups), of_tile(6));
  EXPECT_EQ(select_ctas(grouped(), {{0, 0, 0, 300}}, kGroups).size(), 7u * 3) << "the tile beyond the last is nobody's";
  EXPECT_EQ(busy_ctas(grouped(), kGroups), 7u * 3);
}

TEST(Tiles, WithoutGroupsTheirAxesAreThoseOfAMatrix) {
  EXPECT_EQ(select_ctas(grouped(), {{0, 0, 128, 129}}), (std::vector<uint64_t>{6, 8, 10}));
}

TEST(Tiles, PersistentCtasHaveEveryNthTileInsideTheMatrix) {
  Launch l;
  l.axes = {{"row", 0, 4, 128}, {"col", 0, 3, 128}, {"row", 0, 2, 512}};
  l.grid = {4, 1, 1};
  const Extent extent{1, 1, 600, 300};  // five by three tiles; of the second group of rows only one
  EXPECT_TRUE(numbers_tiles(l));
  EXPECT_EQ(tile_count(l, extent), 15u);
  EXPECT_EQ(select_ctas(l, {{0, 0, 0, 1, 0, 1}}, extent), (std::vector<uint64_t>{0}));
  EXPECT_EQ(select_ctas(l, {{0, 0, 0, 1, 129, 300}}, extent), (std::vector<uint64_t>{0})) << "tiles 4 and 8";
  EXPECT_EQ(select_ctas(l, {{0, 0, 300, 301, 0, 1}}, extent), (std::vector<uint64_t>{2}));
  EXPECT_EQ(select_ctas(l, {{0, 0, 599, 600, 0, 300}}, extent), (std::vector<uint64_t>{0, 1, 2})) << "12, 13 and 14";
  uint64_t elements = 0;
  for (uint64_t cta = 0; cta < l.grid.x; ++cta)
    for (const Region& r : tiles_of(l, extent, cta)) {
      elements += static_cast<uint64_t>((r.row_end - r.row_begin) * (r.col_end - r.col_begin));
      EXPECT_EQ(select_ctas(l, {r}, extent), (std::vector<uint64_t>{cta})) << r.row_begin << " " << r.col_begin;
    }
  EXPECT_EQ(elements, 600u * 300u) << "the tiles of all CTAs are the whole matrix";
  l.grid = {24, 1, 1};
  EXPECT_FALSE(numbers_tiles(l));
  EXPECT_EQ(select_ctas(l, {{0, 0, 599, 600, 0, 300}}, extent), (std::vector<uint64_t>{12, 16, 20}));
}

TEST(Tiles, NumberedTilesOfSeveralPartsOfTheSum) {
  Launch l;
  l.axes = {{"row", 0, 4, 128}, {"col", 0, 3, 128}, {"row", 0, 2, 512}, {"batch", 1, 1, 1}, {"split", 2, 2, 1}};
  l.grid = {15, 1, 2};
  const Extent extent{1, 1, 600, 300};
  EXPECT_EQ(tile_count(l, extent), 15u);
  EXPECT_EQ(select_ctas(l, {{0, 0, 599, 600, 129, 300}}, extent), (std::vector<uint64_t>{13, 14, 28, 29}));
}

TEST(Tiles, PersistentClustersStayTogether) {
  Launch l;
  l.axes = {{"row", 0, 2, 128}, {"col", 0, 2, 128}, {"row", 0, 2, 256}};
  l.grid = {4, 1, 1};
  l.cluster = {2, 1, 1};
  const Extent extent{1, 1, 300, 256};  // the last cluster of each column has one row tile
  EXPECT_EQ(tile_count(l, extent), 8u);
  EXPECT_EQ(select_ctas(l, {{0, 0, 256, 257, 128, 129}}, extent), (std::vector<uint64_t>{2, 3})) << "tiles 6 and 7";
}

TEST(Tiles, CtasOutsideTheMatrixAreNotBusy) {
  EXPECT_EQ(busy_ctas(rasterised(), {1, 1, 1000, 300}), 8 * 3 * 2);
  EXPECT_EQ(busy_ctas(rasterised(), {1, 1, 600, 300}), 5 * 3 * 2);
  EXPECT_EQ(busy_ctas(rasterised(), {1, 1, 600, 128}), 5 * 1 * 2);
}

TEST(Tiles, TheCtasOfAClusterDoAsMuchAsItsFirst) {
  Launch l;  // clusters of 2 x 2 CTAs, strips of 2 tiles
  l.axes = {{"row", 0, 2, 128}, {"col", 0, 2, 256, false, false, 128}, {"row", 0, 2, 256}, {"col", 0, 2, 512}};
  l.grid = {16, 1, 1};
  l.cluster = {4, 1, 1};
  EXPECT_EQ(busy_ctas(l, {1, 1, 512, 1024}), 16);
  EXPECT_EQ(busy_ctas(l, {1, 1, 128, 512}), 4);
  EXPECT_EQ(busy_ctas(l, {1, 1, 128, 128}), 4 / 2.0);
}

TEST(Tiles, OfAStripTheTilesInsideTheMatrixCount) {
  Launch l;
  l.axes = {{"row", 0, 2, 128}, {"col", 1, 3, 512, false, false, 128}};
  l.grid = {2, 3, 1};
  EXPECT_EQ(busy_ctas(l, {1, 1, 256, 1536}), 6);
  EXPECT_EQ(busy_ctas(l, {1, 1, 256, 256}), 2 * 2 / 4.0);
  EXPECT_EQ(busy_ctas(l, {1, 1, 128, 640 + 1}), 6 / 4.0);
}

}  // namespace
}  // namespace roofgen::tiles_test

#include "tuner/strategy/point_space.h"

#include <gtest/gtest.h>

#include "tests/search/spaces.h"

namespace roofgen::point_space_test {

TEST(PointSpace, FindsEachPointByItsRowAndNoOther) {
  const PointSpace points = tile_space().space.points;
  for (size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points.find(points.row(i)), i);
  EXPECT_FALSE(points.find(std::vector<uint16_t>{7, 7, 0, 0}));  // 128 x 128 is illegal
}

TEST(PointSpace, NeighboursDifferInOneAxisAndAreAllLegalOnes) {
  const PointSpace points = tile_space().space.points;
  for (const size_t point : {size_t{0}, points.size() / 2, points.size() - 1}) {
    size_t expected = 0;
    for (size_t other = 0; other < points.size(); ++other) {
      size_t different = 0;
      for (size_t axis = 0; axis < points.axes().size(); ++axis)
        different += points.row(other)[axis] != points.row(point)[axis];
      expected += different == 1;
    }
    const std::vector<size_t> found = points.neighbours(point);
    EXPECT_EQ(found.size(), expected);
    EXPECT_EQ(std::set<size_t>(found.begin(), found.end()).size(), expected);
  }
}

TEST(PointSpace, WithoutAxesIsEmpty) { EXPECT_EQ(PointSpace({}, {}).size(), 0u); }

}  // namespace roofgen::point_space_test

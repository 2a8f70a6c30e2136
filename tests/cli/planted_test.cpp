// Planted bugs by kind (tests/cli/planted.h).
#include "tests/cli/planted.h"

namespace roofgen::test::planted_test {
namespace {

class PlantedBugs : public testing::TestWithParam<Planted> {};

TEST_P(PlantedBugs, AreRejected) { expect_as_planted(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Kinds, PlantedBugs, testing::ValuesIn(planted(true)), testing::PrintToStringParamName());
INSTANTIATE_TEST_SUITE_P(Slow, PlantedBugs, testing::ValuesIn(planted(false)), testing::PrintToStringParamName());

}  // namespace
}  // namespace roofgen::test::planted_test

// The distance of problems by the texts that the store keeps.
#include "tuner/search/warm_start.h"

#include <gtest/gtest.h>

namespace roofgen::test::warm_start_test {
namespace {

Problem gemm(int64_t m, int64_t n) {
  return {.op = "gemm",
          .dims = {{"K", 64}, {"M", m}, {"N", n}},
          .flags = {{"a_t", false}},
          .reals = {{"scale", 0.125}},
          .texts = {{"epilogue", "acc + b[n] N=8"}}};
}

}  // namespace

TEST(WarmStart, TheDistanceIsThatOfTheSizes) {
  const Problem here = gemm(1024, 96);
  EXPECT_EQ(problem_distance(here, to_string(here)), 0);
  EXPECT_EQ(problem_distance(here, to_string(gemm(256, 96))), 2);
  EXPECT_EQ(problem_distance(here, to_string(gemm(2048, 24))), 3);
  Problem other = gemm(1024, 96);
  other.reals["scale"] = 3e-05;
  EXPECT_EQ(problem_distance(here, to_string(other)), 0) << "a real number is no size";
}

TEST(WarmStart, OtherSettingsAreNoNeighbours) {
  const Problem here = gemm(1024, 96);
  std::vector<Problem> others(7, here);
  others[0].dtype = DType::kFp16;
  others[1].flags["a_t"] = true;
  others[2].texts["epilogue"] = "acc";
  others[3].dims["batch"] = 2;
  others[4].dims.erase("K");
  others[5].args.push_back({"b", DType::kFp32, {"n"}});
  others[6].dtypes["out"] = DType::kFp32;
  for (const Problem& p : others) {
    EXPECT_EQ(problem_distance(here, to_string(p)), std::nullopt) << to_string(p);
    EXPECT_EQ(problem_distance(p, to_string(here)), std::nullopt) << to_string(p);
  }
  Problem empty = gemm(0, 96);
  EXPECT_EQ(problem_distance(here, to_string(empty)), std::nullopt) << "no ratio";
  EXPECT_EQ(problem_distance(empty, to_string(empty)), 0);
  for (const char* text : {"", "gemm", "gemm bf16", "gemm bf16 K=", "[4096,4096]"})
    EXPECT_EQ(problem_distance(here, text), std::nullopt) << text;
  EXPECT_EQ(problem_distance(here, to_string(here) + " x"), std::nullopt);
}

}  // namespace roofgen::test::warm_start_test

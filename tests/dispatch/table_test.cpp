// The rule of selection, and the table as JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "tuner/dispatch/dispatch.h"
#include "tuner/dispatch/family.h"

namespace roofgen::test::table_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Problem gemm(int64_t m, int64_t k = 64) {
  return {.op = "gemm",
          .dims = {{"K", k}, {"M", m}, {"N", 128}},
          .flags = {{"a_t", false}},
          .reals = {{"scale", 1.0}},
          .texts = {{"epilogue", "acc + b[n]"}},
          .dtypes = {{"out", DType::kFp32}},
          .args = {{"b", DType::kFp32, {"n"}}}};
}

DispatchTable table_of(const std::vector<int64_t>& rows, const std::vector<size_t>& kernels) {
  DispatchTable out;
  out.device = "h200-sxm";
  out.executor = "h200-sxm, simulated";
  out.arch = "sm_90a";
  out.compiler = "NVRTC 13.0";
  out.release = "0.1.0";
  out.time_model = "event model";
  out.within = 0.02;
  for (size_t s = 0; s < rows.size(); ++s) {
    out.shapes.push_back({gemm(rows[s]), 1e-5, kernels[s], 1.01e-5});
    while (out.kernels.size() <= kernels[s])
      out.kernels.push_back({"fused",
                             s,
                             {{"gemm",
                               {{"BM", int64_t{64}}, {"store", std::string("tma")}, {"swizzle", true}},
                               "0123abcd",
                               {"M % 64 == 0"},
                               128,
                               4096}}});
  }
  return out;
}

Result<Selection> select_rows(const DispatchTable& table, int64_t m, const std::vector<bool>& serves) {
  return select(table, gemm(m).dims, [&](size_t k) -> Result<bool> { return bool(serves[k]); });
}

std::string refusal(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  const auto read = read_dispatch(text, "t.json");
  EXPECT_FALSE(read) << to;
  return read ? "" : to_string(read.error());
}

}  // namespace

TEST(Distance, IsTheSumOfTheLogarithms) {
  EXPECT_EQ(distance(gemm(64).dims, gemm(64).dims), 1);
  EXPECT_EQ(distance(gemm(64).dims, gemm(512).dims), 8);
  EXPECT_EQ(distance(gemm(64, 64).dims, gemm(32, 256).dims), 8);
  EXPECT_TRUE(std::isinf(distance({{"M", 1}}, {{"N", 1}})));
  EXPECT_TRUE(std::isinf(distance({{"M", 1}}, {{"M", 1}, {"N", 1}})));
  EXPECT_TRUE(std::isinf(distance({{"M", 0}}, {{"M", 4}})));
  EXPECT_EQ(distance({{"page", 0}}, {{"page", 0}}), 1);
}

TEST(Select, TheNearestShapeWhoseKernelServes) {
  const DispatchTable table = table_of({64, 256, 4096}, {0, 1, 2});
  const auto kernel = [&](int64_t m, const std::vector<bool>& serves) { return select_rows(table, m, serves)->kernel; };
  EXPECT_EQ(kernel(64, {true, true, true}), 0u);
  EXPECT_EQ(kernel(200, {true, true, true}), 1u);
  EXPECT_EQ(kernel(100000, {true, true, true}), 2u);
  EXPECT_EQ(kernel(200, {true, false, true}), 0u) << "the next one";
  EXPECT_EQ(kernel(64, {false, false, true}), 2u);
  EXPECT_EQ(kernel(128, {true, true, true}), 0u) << "equally near: the first";
  EXPECT_EQ(select_rows(table, 300, {true, true, true})->shape, 1u);
}

TEST(Select, WithoutAKernelItIsAnError) {
  const DispatchTable table = table_of({64, 256}, {0, 1});
  const auto none = select_rows(table, 100, {false, false});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().exit, Exit::kFailed);
  EXPECT_EQ(none.error().message, "no kernel of the table serves K=64 M=100 N=128");
  const auto other = select(table, {{"rows", 4}}, [](size_t) -> Result<bool> { return true; });
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().exit, Exit::kUsage);
  EXPECT_EQ(other.error().message, "sizes rows=4: positive sizes K M N were expected");
  const auto broken = select(table, gemm(64).dims, [](size_t) -> Result<bool> {
    return Error{Exit::kFailed, "no such variant"};
  });
  EXPECT_EQ(broken.error().message, "no such variant");
}

TEST(Select, AsksEachKernelOnce) {
  const DispatchTable table = table_of({64, 128, 256, 512}, {0, 1, 0, 1});
  std::vector<size_t> asked;
  EXPECT_FALSE(select(table, gemm(64).dims, [&](size_t k) -> Result<bool> {
    asked.push_back(k);
    return false;
  }));
  EXPECT_THAT(asked, ElementsAre(0, 1));
}

TEST(TuningOrder, BeginsInTheMiddleAndGoesToTheNearest) {
  std::vector<Problem> problems;
  for (const int64_t m : {4096, 16, 1024, 64, 256}) problems.push_back(gemm(m));
  EXPECT_THAT(tuning_order(problems), ElementsAre(4, 2, 0, 3, 1));
  EXPECT_THAT(tuning_order({gemm(8)}), ElementsAre(0));
}

TEST(DispatchJson, SurvivesWritingAndReading) {
  const std::string text = json_document(dispatch_json(table_of({64, 256, 4096}, {0, 1, 1})));
  const auto read = read_dispatch(text, "t.json");
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(json_document(dispatch_json(*read)), text);
  EXPECT_EQ(to_string(read->shapes[2].problem), to_string(gemm(4096)));
  EXPECT_EQ(read->kernels[1].stages[0].params[1].second, ParamValue(std::string("tma")));
  EXPECT_EQ(read->varied(), std::vector<std::string>{"M"});
  DispatchTable measured = table_of({64}, {0});
  measured.origin = Origin::kMeasured;
  measured.time_model.clear();
  const std::string of_gpu = json_document(dispatch_json(measured));
  ASSERT_TRUE(read_dispatch(of_gpu, "t.json"));
  EXPECT_EQ(json_document(dispatch_json(*read_dispatch(of_gpu, "t.json"))), of_gpu);
}

TEST(DispatchJson, ErrorsNameThePlace) {
  const std::string text = json_document(dispatch_json(table_of({64, 256}, {0, 1})));
  EXPECT_THAT(refusal(text, "roofgen.dispatch.1", "roofgen.dispatch.9"), HasSubstr("t.json:2:"));
  EXPECT_THAT(refusal(text, "\"within\": 0.02", "\"within\": 2"), HasSubstr("a number from 0 to 1 was expected"));
  EXPECT_THAT(refusal(text, "\"kernel\": 1", "\"kernel\": 2"), HasSubstr("\"kernel\": a number from 0 to 1"));
  EXPECT_THAT(refusal(text, "\"kernel\": 1", "\"kernel\": -1"), HasSubstr("\"kernel\": a number from 0 to 1"));
  EXPECT_THAT(refusal(text, "\"tuned_for\": 1", "\"tuned_for\": 1.5"), HasSubstr("an integer was expected"));
  EXPECT_THAT(refusal(text, "\"M\": 256", "\"M\": 64"), HasSubstr("a shape occurs twice"));
  EXPECT_THAT(refusal(text, "\"a_t\": false", "\"a_t\": true"), HasSubstr("differ in more than sizes"));
  EXPECT_THAT(refusal(text, "\"model\": \"event model\"", "\"modell\": 1"), HasSubstr("did you mean"));
  EXPECT_THAT(refusal(text, "\"origin\": \"model\"", "\"origin\": \"measured\""), HasSubstr("of no others"));
  EXPECT_THAT(refusal(text, "\"origin\": \"model\"", "\"origin\": \"guessed\""), HasSubstr("was expected"));
  EXPECT_THAT(refusal(text, "\"BM\": 64", "\"BM\": null"), HasSubstr("a parameter is"));
  EXPECT_THAT(refusal(text, "\"shapes\": [", "\"shapes\": 1, \"x\": ["), HasSubstr("t.json:"));
  EXPECT_THAT(refusal(text, "}", ""), HasSubstr("t.json:"));
  EXPECT_FALSE(read_dispatch("{}", "t.json"));
  EXPECT_FALSE(read_dispatch("", "t.json"));
}

}  // namespace roofgen::test::table_test

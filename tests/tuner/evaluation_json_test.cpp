#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tuner/verify/verify.h"

namespace roofgen::evaluation_json_test {

TEST(EvaluationJson, RoundTrip) {
  Evaluation e;
  e.counts.mma = 262144;
  e.counts.unique_write_sectors = 77;
  e.counted_ctas = 16;
  e.scale = 256;
  e.exact = false;
  e.unique_bytes = 1.5e9;
  e.l2_miss_ratio = 1.25;
  e.measured_ns = 1234.5;
  Verification& v = e.verification;
  v.ctas_run = v.ctas_total = 16, v.rows_checked = 2048, v.failure = "row 3", v.inputs = "normal";
  v.error_over_tolerance = std::numeric_limits<double>::infinity();
  v.launch_ctas_run = 4, v.launch_ctas_total = 960, v.launch_in_tiles = true, v.not_run = {"grid"};
  v.findings.push_back({"race", "two warps", "k", {"k.ptx", 12, 0}, {"a.jinja", 7, 0}, 3, 64});
  const auto back = from_payload(to_payload(e));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_payload(*back), to_payload(e));
  EXPECT_EQ(back->counts.mma, 262144u);
  EXPECT_EQ(back->verification.launch_ctas_total, 960u);
  EXPECT_EQ(back->verification.not_run, std::vector<std::string>{"grid"});
  EXPECT_EQ(back->verification.findings[0].source.line, 7);
  EXPECT_TRUE(std::isinf(back->verification.error_over_tolerance));
}

TEST(EvaluationJson, AnythingElseIsNoPayload) {
  for (const char* text : {"", "{", "[]", "{\"counts\": {}}", "null", "{\"counts\": 3, \"scale\": \"x\"}"})
    EXPECT_FALSE(from_payload(text)) << text;
}

}  // namespace roofgen::evaluation_json_test

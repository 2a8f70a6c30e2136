// Text and JSON of a finished check, from a hand-made report.
#include <gtest/gtest.h>

#include "base/json.h"
#include "check/check.h"

namespace roofgen::check::views_test {
namespace {

Report sample() {
  Report r;
  r.file = "k.cu";
  r.kernel = "sum<float>";
  r.arch = "sm_90";
  r.compiler = "NVRTC";
  r.registers = 24;
  r.grid.x = 4, r.ctas = 4;
  r.block.x = 64;
  r.counts.ctas = 4;
  Finding f;
  f.kind = "race";
  f.message = "warps 0 and 1";
  f.source = {"k.cu", 7, 3};
  f.ptx = {"k.ptx", 90, 0};
  f.cta = 2;
  f.thread = 33;
  f.count = 24;
  f.ctas = 2;
  r.findings.push_back(f);
  r.buffers.push_back({"y", 10, 0, 2, "y[3] is 1, 2 was expected", true, 1.5, 0.75});
  LineCounts bad{{"k.cu", 9, 0}, {}}, good{{"k.cu", 10, 0}, {}};
  bad.sum.sectors = 32;
  bad.sum.ideal_sectors = 4;
  good.sum.sectors = good.sum.ideal_sectors = 4;
  r.lines = {bad, good};
  return r;
}

TEST(CheckViews, TextNamesPlacesAndTheWorstLines) {
  const std::string text = check_text(sample(), 5);
  for (const char* part :
       {"k.cu:7: race: warps 0 and 1\n  CTA 2, thread 33, k.ptx:90; 24 times in 2 CTAs\n",
        "\ny[3] is 1, 2 was expected; 2 of 10 elements are wrong, by at most 1.5 (relatively 0.75); likely a "
        "consequence of the finding\n",
        "k.cu:9 ", "28 of 32 ", "8.0 x", "verdict   1 finding, and 1 wrong output, likely a consequence ("})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(text.find("k.cu:10"), std::string::npos) << text;
  Report wrong = sample();
  wrong.findings.clear();
  EXPECT_NE(check_text(wrong, 0).find("by at most 1.5 (relatively 0.75)\n\nverdict   1 wrong output ("),
            std::string::npos)
      << check_text(wrong, 0);
  Report clean = sample();
  clean.findings.clear();
  clean.buffers.clear();
  EXPECT_NE(check_text(clean, 0).find("verdict   clean\n"), std::string::npos);
}

TEST(CheckViews, Json) {
  const auto j = parse_json(check_json(sample()));
  EXPECT_EQ(j["schema"], "roofgen.check.1");
  EXPECT_EQ(j["clean"], false);
  EXPECT_EQ(j["findings"][0]["source"]["line"], 7);
  EXPECT_EQ(j["outputs"][0]["mismatches"], 2);
  EXPECT_EQ(j["outputs"][0]["largest_error"], 1.5);
  EXPECT_EQ(j["outputs"][0]["likely_consequence"], true);
  EXPECT_EQ(j["lines"][0]["sectors"], 32);
}

TEST(CheckViews, SarifHasARuleForEachResult) {
  const auto j = parse_json(check_sarif(sample()));
  EXPECT_EQ(j["version"], "2.1.0");
  const auto& run = j["runs"][0];
  ASSERT_EQ(run["results"].size(), 2u);
  for (const auto& result : run["results"]) {
    bool known = false;
    for (const auto& rule : run["tool"]["driver"]["rules"]) known |= rule["id"] == result["ruleId"];
    EXPECT_TRUE(known) << result["ruleId"];
    EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "k.cu");
  }
  EXPECT_EQ(run["results"][0]["level"], "error");
  EXPECT_EQ(run["results"][1]["level"], "warning");  // because there is a finding
  EXPECT_EQ(run["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
}

}  // namespace
}  // namespace roofgen::check::views_test

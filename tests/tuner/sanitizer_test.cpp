#include "base/json.h"
#include "tests/tuner/counters_fixture.h"
#include "tuner/views/counters.h"

namespace roofgen::sanitizer_test {
namespace {

using State = SanitizerRow::State;
using testing::script;
using testing::Tools;

TEST(Sanitizer, CleanAndFaultyReports) {
  EXPECT_EQ(
      parse_sanitizer("memcheck", "========= COMPUTE-SANITIZER\nfill 1.0 us\n========= ERROR SUMMARY: 0 errors\n", 0)
          .state,
      State::kClean);
  const SanitizerRow faulty = parse_sanitizer("memcheck",
                                              "========= COMPUTE-SANITIZER\n"
                                              "========= Invalid __global__ read of size 16 bytes\n"
                                              "=========     at flash+0x1a0\n"
                                              "=========     by thread (3,0,0) in block (7,0,0)\n"
                                              "========= \n"
                                              "========= ERROR SUMMARY: 769 errors\n"
                                              "========= ERROR SUMMARY: 669 errors were not printed. Use --print-limit "
                                              "option to adjust the number of printed errors\n",
                                              1);
  EXPECT_EQ(faulty.state, State::kErrors);
  EXPECT_EQ(faulty.errors, 769u);
  EXPECT_EQ(faulty.lines, std::vector<std::string>{"Invalid __global__ read of size 16 bytes"});
  const SanitizerRow race = parse_sanitizer("racecheck",
                                            "========= COMPUTE-SANITIZER\n"
                                            "========= Error: Race reported between Write access at flash+0x580\n"
                                            "=========     and Read access at flash+0x890 [4080 hazards]\n"
                                            "========= RACECHECK SUMMARY: 5 hazards displayed (4 errors, 1 warning)\n",
                                            0);
  EXPECT_EQ(race.errors, 4u);
  EXPECT_EQ(race.warnings, 1u);
  EXPECT_EQ(parse_sanitizer("racecheck", "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0)
                .state,
            State::kClean);
  EXPECT_EQ(parse_sanitizer("initcheck", "========= INITCHECK SUMMARY: 1 error\n", 0).errors, 1u);
  EXPECT_EQ(
      parse_sanitizer("memcheck",
                      "========= LEAK SUMMARY: 9 bytes leaked in 1 allocations\n========= ERROR SUMMARY: 0 errors\n", 0)
          .state,
      State::kClean);
}

TEST(Sanitizer, NoSummaryIsNotClean) {
  const SanitizerRow no_device = parse_sanitizer("memcheck",
                                                 "========= COMPUTE-SANITIZER\n========= Error: Device not supported. "
                                                 "Please refer to the \"Supported Devices\" section\n",
                                                 0);
  EXPECT_EQ(no_device.state, State::kNotRun);
  EXPECT_NE(no_device.why.find("Device not supported"), std::string::npos);
  EXPECT_EQ(parse_sanitizer("memcheck", "", 139).why, "it ended with status 139 and no summary");
  const SanitizerRow failed = parse_sanitizer("memcheck",
                                              "roofgen: error: no CUDA driver\n========= Target application returned "
                                              "an error\n========= ERROR SUMMARY: 0 errors\n",
                                              3);
  EXPECT_EQ(failed.state, State::kNotRun) << "clean of nothing";
  EXPECT_NE(failed.why.find("no CUDA driver"), std::string::npos);
}

TEST_F(Tools, SanitizerStandsBesideTheSimulator) {
  SanitizerRequest r;
  r.replay = testing::replay_of_two();
  r.timeout_s = 20;
  // $2 is the tool; the program begins after --print-limit 10.
  r.sanitizer = script(
      dir_ / "compute-sanitizer",
      "if [ \"$1\" = --version ]; then echo 'NVIDIA (R) Compute Sanitizer'; echo 'Version 2025.3.0'; exit 0; fi\n"
      "tool=$2; shift 4; echo '========= COMPUTE-SANITIZER'; \"$@\" || exit 9\n"
      "case $tool in memcheck) echo '========= ERROR SUMMARY: 0 errors';;\n"
      "racecheck) echo '========= Error: Race reported between Write access'; echo '========= RACECHECK SUMMARY: 1 "
      "hazard displayed (1 error, 0 warnings)';;\n"
      "initcheck) [ \"$ROOFGEN_POISON\" = 0 ] && echo '========= ERROR SUMMARY: 0 errors';;\n"
      "*) echo '========= Internal Sanitizer Error'; exit 1;; esac\n");
  r.findings = {{"uninitialised", "", "", {}, {}, 0, 0}};
  const SanitizerReport report = sanitize(r);
  ASSERT_EQ(report.rows.size(), 4u);
  EXPECT_EQ(report.version, "Version 2025.3.0");
  EXPECT_EQ(report.rows[0].agreement(), "confirmed") << report.rows[0].why;
  EXPECT_EQ(report.rows[1].agreement(), "contradicted");
  EXPECT_EQ(report.rows[2].agreement(), "contradicted") << "the simulator saw what initcheck did not";
  EXPECT_EQ(report.rows[3].agreement(), "unchecked");
  EXPECT_EQ(report.rows[3].why, "Internal Sanitizer Error");
  const std::string text = sanitizer_text(report);
  EXPECT_NE(text.find("racecheck  1 error"), std::string::npos) << text;
  EXPECT_NE(text.find("not run: Internal Sanitizer Error"), std::string::npos);
  const auto json = sanitizer_json(report);
  EXPECT_EQ(json["tools"][2]["simulator"][0], "uninitialised");
}

TEST_F(Tools, SanitizerThatHangsOrIsAbsentIsNotRun) {
  SanitizerRequest r;
  r.replay = testing::replay_of_two();
  r.sanitizer = script(dir_ / "slow", "[ \"$1\" = --version ] && exit 0\nsleep 60\n");
  r.timeout_s = 0.1;
  for (const SanitizerRow& row : sanitize(r).rows) EXPECT_EQ(row.why, "it did not end within 0.1 s");
  r.sanitizer = dir_ / "absent";
  const SanitizerReport report = sanitize(r);
  ASSERT_EQ(report.rows.size(), 4u);
  for (const SanitizerRow& row : report.rows) EXPECT_EQ(row.agreement(), "unchecked");
}

}  // namespace
}  // namespace roofgen::sanitizer_test

// Kernels whose CTAs synchronise, wrongly and rightly, in several schedules: the findings and outputs of all must be
// the same.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>

#include "check/check.h"
#include "kernel_files.h"
#include "runtime/compiler.h"

namespace roofgen::check::grid_order_test {
namespace {

constexpr int kSchedules = 4;

class Grids : public testing::TestWithParam<Kernel> {};

TEST_P(Grids, AreJudgedAlikeInEverySchedule) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  const Kernel& k = GetParam();
  auto says = k.says;
  auto r = request_of(k);
  ASSERT_TRUE(r) << to_string(r.error());
  r->jobs = 3;
  r->worth_jobs = 0;
  r->schedules = kSchedules;
  r->max_instructions = 20'000'000;
  auto report = run(*r);
  ASSERT_TRUE(report) << to_string(report.error());
  std::map<std::string, int> found;  // place -> schedules, where one place may have several instructions
  for (size_t i = 0; i < report->findings.size(); ++i) {
    const Finding& f = report->findings[i];
    found[fmt::format("{} at {}", f.kind, f.source.line)] += report->in_schedules[i];
  }
  for (const BufferReport& b : report->buffers)
    if (b.mismatches && report->findings.empty()) found["wrong " + b.first] = kSchedules;
  const std::string wanted = says["finds"], text = check_text(*report, 0);
  if (wanted == "nothing") {
    EXPECT_TRUE(found.empty()) << text;
    EXPECT_EQ(report->differences.empty(), says["differs"] != "rounding") << text;
    EXPECT_NE(report->verdict(), Verdict::kFindings) << text;
    return;
  }
  EXPECT_NE(report->verdict(), Verdict::kClean);
  // Where the place depends on the schedule, the file states only the kind.
  int schedules = 0;
  for (const auto& [place, n] : found) {
    bool is_wanted = false;  // "a at 3 or b"
    for (size_t at = 0, end; at <= wanted.size(); at = end + 4) {
      end = std::min(wanted.find(" or ", at), wanted.size());
      const std::string one = wanted.substr(at, end - at);
      is_wanted |= place == one || place.starts_with(one + " at ");
    }
    EXPECT_TRUE(is_wanted) << place << "; wanted " << wanted << "\n" << text;
    schedules += n;
  }
  EXPECT_GE(schedules, says["shown-by"] == "some" ? 1 : kSchedules) << "some schedule shows nothing:\n" << text;
}

/// Right ones, some with an edit that makes them wrong.
std::vector<Kernel> right() { return kernels_in(ROOFGEN_CHECK_FOLDER "/right", "grid_"); }
std::vector<Kernel> wrong() { return kernels_in(ROOFGEN_CHECK_FOLDER "/wrong", "grid_"); }

TEST(GridKernels, AreManyOfBothKinds) {
  int clean = 0, faulty = 0;
  for (const std::vector<Kernel>& all : {right(), wrong()})
    for (const Kernel& k : all) (k.says.at("finds") == "nothing" ? clean : faulty)++;
  EXPECT_EQ(clean, 58);
  EXPECT_EQ(faulty, 40);
}

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Wrong, Grids, testing::ValuesIn(wrong()), kName);
INSTANTIATE_TEST_SUITE_P(Right, Grids, testing::ValuesIn(right()), kName);

}  // namespace
}  // namespace roofgen::check::grid_order_test

// roofgen profile names what limits kernels of which that is known, and the line. The first lines of each file state
// the launch, the device and the limiter ("a|b": one of them); "<- here" marks the line (or several, of which it is
// one).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels.h"
#include "profile/profile.h"
#include "runtime/compiler.h"
#include "runtime/sass/disassembler.h"

namespace roofgen::profile::profile_kernels_test {
namespace {

using check::Kernel;

class ProfileKernels : public testing::TestWithParam<Kernel> {};

bool names(const std::string& text, const std::string& alternatives) {
  std::istringstream words(alternatives);
  for (std::string one; std::getline(words, one, '|');)
    if (text.find(one) != std::string::npos) return true;
  return false;
}

TEST_P(ProfileKernels, NamesTheLimiterAndItsLine) {
  if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  Kernel k = GetParam();
  ASSERT_TRUE(k.says.count("limiter")) << "the first lines must state the limiter";
  const std::set<int> lines = marked_lines(k.text);
  ASSERT_FALSE(lines.empty()) << "no line is marked";
  const Result<Request> request = profile_request_of(k);
  ASSERT_TRUE(request) << to_string(request.error());
  const Result<Report> report = run(*request);
  ASSERT_TRUE(report) << to_string(report.error());

  EXPECT_TRUE(names(report->limiter, k.says["limiter"]))
      << "limiter: " << report->limiter << "; expected: " << k.says["limiter"] << "\n"
      << profile_text(*report, 5);
  ASSERT_FALSE(report->lines.empty());
  EXPECT_EQ(report->lines.front().source.file, k.file);
  EXPECT_TRUE(lines.count(report->lines.front().source.line)) << "line " << *lines.begin() << " was expected\n"
                                                              << profile_text(*report, 5);

  EXPECT_EQ(report->confidence, "high") << profile_text(*report, 0);
  EXPECT_TRUE(report->unknown_opcodes.empty());
  EXPECT_FALSE(report->next.empty());
  const auto is_share = [](double x) { return x >= 0 && x <= 1 + 1e-9; };
  for (const Utilisation& u : report->units) EXPECT_TRUE(is_share(u.share)) << u.unit << " " << u.share;
  double stalls = 0;
  for (size_t i = 0; i < report->stalls.size(); ++i) {
    EXPECT_TRUE(is_share(report->stalls[i])) << timing::to_string(static_cast<timing::Stall>(i));
    stalls += report->stalls[i];
  }
  EXPECT_TRUE(is_share(stalls)) << "stalls of all causes: " << stalls;
  EXPECT_TRUE(is_share(report->issuing)) << report->issuing;
  double waiting = 0, stalled = 0;
  for (const LineTime& l : report->lines) waiting += l.waiting, stalled += l.stalled;
  EXPECT_TRUE(is_share(waiting)) << waiting;
  EXPECT_TRUE(is_share(stalled)) << stalled;
  EXPECT_LE(report->achieved_warps, report->time.occupancy.warps_per_sm * (1 + 1e-9));
  EXPECT_GT(report->time.roofline_s, 0);
  EXPECT_LE(report->time.roofline_s, report->time.event_s * 1.001) << "a roof is " << report->time.roof;
  EXPECT_GT(report->time.interval_s, 0);
}

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Known, ProfileKernels, testing::ValuesIn(kernels()), kName);

TEST(ProfileKernels, AreOfManyKinds) { EXPECT_GE(kernels().size(), 20u); }

TEST(ProfileKernels, HaveTheSameReportTwice) {
  if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  for (const char* name : {"histogram", "pointer_chase", "spilled", "tail"}) {
    const Result<Request> request = profile_request_of(kernel(name));
    ASSERT_TRUE(request) << to_string(request.error());
    const Result<Report> first = run(*request), second = run(*request);
    ASSERT_TRUE(first && second) << name;
    EXPECT_EQ(profile_json(*first), profile_json(*second));
  }
}

/// The report says that it lacks them.
TEST(ProfileKernels, TexturesAreNotModelled) {
  if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  Kernel k;
  k.name = k.file = "texture.cu";
  k.text =
      "// grid: 4  block: 64\n__global__ void k(cudaTextureObject_t x, float* y) {\n"
      "  y[threadIdx.x] = tex1Dfetch<float>(x, threadIdx.x);\n}\n";
  k.says = {{"grid", "4"},
            {"block", "64"},
            {"device", "h200-sxm"},
            {"args", R"([{"type": "f32", "size": 64, "fill": 1, "texture": {}}, {"type": "f32", "size": 64}])"}};
  const Result<Request> request = profile_request_of(k);
  ASSERT_TRUE(request) << to_string(request.error());
  const Result<Report> report = run(*request);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->confidence, "low");
  ASSERT_FALSE(report->doubts.empty());
  EXPECT_EQ(report->doubts.back(), "1 instruction on textures or surfaces: their traffic and latency are not modelled");
}

}  // namespace
}  // namespace roofgen::profile::profile_kernels_test

// Two kernels that differ in one lever, in the order that hardware gives them. Each file of levers/, and each of
// kernels/ with a gain, states flags ("slow", "fast"), or blocks or shared memory ("slow block"), of the two, and how
// much faster the second one is at least by the event model. The interval model must see half of that. "device: a|b":
// both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels.h"

namespace roofgen::profile::levers_test {
namespace {

using check::Kernel;

class Levers : public testing::TestWithParam<Kernel> {};

/// One for each device.
std::vector<Kernel> levers() {
  std::vector<Kernel> files = check::kernels_in(ROOFGEN_PROFILE_KERNELS "/../levers"), out;
  for (Kernel& k : kernels())
    if (k.says.count("gain")) files.push_back(std::move(k));
  for (const Kernel& k : files) {
    std::istringstream devices(k.says.at("device"));
    for (std::string device; std::getline(devices, device, '|');) {
      Kernel& one = out.emplace_back(k);
      one.says["device"] = device;
      one.name += "_" + device.substr(0, device.find('-'));
    }
  }
  return out;
}

Result<Report> profile_of(const Kernel& k, const std::string& flag) {
  ROOFGEN_TRY(Request r, profile_request_of(k));
  r.options.by_line = false;
  if (!flag.empty()) r.kernel.compiler_flags.push_back(flag);
  return run(r);
}

TEST_P(Levers, AreOrderedAsOnHardware) {
  if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  const Kernel& k = GetParam();
  std::map<std::string, timing::LaunchTime> times;
  for (const char* which : {"slow", "fast"}) {
    Kernel one = k;
    for (const char* what : {"block", "smem"})
      if (const auto it = k.says.find(fmt::format("{} {}", which, what)); it != k.says.end())
        one.says[what] = it->second;
    const auto flag = k.says.find(which);
    const Result<Report> report = profile_of(one, flag == k.says.end() ? "" : flag->second);
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_EQ(report->confidence, "high");
    times[which] = report->time;
  }
  const double gain = std::stod(k.says.at("gain"));
  // The launch itself takes as long for both.
  const auto ratio = [&](double timing::LaunchTime::*model) {
    const double launch = 3e-6;
    return (times["slow"].*model - launch) / (times["fast"].*model - launch);
  };
  EXPECT_GE(ratio(&timing::LaunchTime::event_s), gain)
      << fmt::format("{:.2f} and {:.2f} us", 1e6 * times["slow"].event_s, 1e6 * times["fast"].event_s);
  EXPECT_GE(ratio(&timing::LaunchTime::interval_s), 1 + (gain - 1) / 2)
      << fmt::format("{:.2f} and {:.2f} us", 1e6 * times["slow"].interval_s, 1e6 * times["fast"].interval_s);
}

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Pairs, Levers, testing::ValuesIn(levers()), kName);

}  // namespace
}  // namespace roofgen::profile::levers_test

// What a command line that lacks something is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/program.h"

namespace roofgen::test::usage_test {

using testing::HasSubstr;

TEST(Usage, AnErrorNamesWhatIsMeant) {
  const Home home;
  home.write("k.cu", "__global__ void k() {}\n");
  const std::string ops = "attention, gemm, grouped_gemm, rmsnorm, layernorm, softmax, map";
  const std::string tune = "tune softmax --rows 8 --cols 64 --device ";
  for (const auto& [arguments, words] : std::vector<std::pair<std::string, std::string>>{
           {"tune", "an op was expected: " + ops},
           {"emit -o out", "an op was expected: " + ops},
           {"generate", "an op was expected: " + ops},
           {tune + "h200", "unknown device \"h200\"; did you mean \"h200-sxm\"?"},
           {tune + "h100", "did you mean h100-nvl, h100-pcie, h100-sxm?"},
           {tune + "a100", "did you mean a100-pcie-40, a100-pcie-80, a100-sxm-40, a100-sxm-80?"},
           {tune + "4090", "did you mean \"rtx-4090\"?"},
           {tune + "RTX4090", "did you mean \"rtx-4090\"?"},
           {tune + "l40", "did you mean \"l40s\"?"},
           {tune + "v100",
            "did you mean \"v100-sxm2\"? (the kernels need sm_80 or newer; v100-sxm2 is sm_70: analysis only)"},
           {"check", "file is required, as in roofgen check scale.cu --emit-args scale.json"},
           {"check k.cu", "`roofgen check k.cu --emit-args FILE.json` prints the launch"},
           {"profile", "file is required, as in roofgen profile scale.cu --grid"}}) {
    const Outcome o = home.run(arguments);
    EXPECT_EQ(o.exit, 2) << arguments;
    EXPECT_EQ(o.out, "") << arguments;
    EXPECT_THAT(o.err, HasSubstr(words)) << arguments;
  }
  EXPECT_THAT(home.run("tune --help").out, HasSubstr("what to compute: " + ops));
}

// One problem's text may begin another's.
TEST(Usage, EachProblemOfTheStoreCanBeChosen) {
  const Home home;
  const auto space = [](const std::string& problem) {
    return R"({"schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds", "device": "A", "kernel": "k", "problem": ")" +
           problem + R"("}, "results": [{"configuration": {"x": 1}, "objectives": ["time"], "times": {"runtimes": [1]},
"invalidity": "correct", "correctness": 1, "measurements": [{"name": "time", "value": 1, "unit": "ms"}]}]})";
  };
  home.write("a.json", space("M=8"));
  home.write("b.json", space("M=8 text='q'"));
  ASSERT_EQ(home.run("db import a.json b.json").exit, 0);
  const Outcome both = home.run("db show 8");
  EXPECT_EQ(both.exit, 2);
  std::vector<std::string> commands;
  std::istringstream lines(both.err);
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find("  roofgen "); at == 0) commands.push_back(line.substr(10));
  ASSERT_EQ(commands.size(), 2u) << both.err;
  for (const std::string& command : commands) {
    const Outcome one = home.run(command);
    EXPECT_EQ(one.exit, 0) << command << one.err;
    EXPECT_EQ(home.run("db export" + command.substr(std::string("db show").size())).exit, 0) << command;
  }
}

}  // namespace roofgen::test::usage_test

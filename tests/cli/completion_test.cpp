// The flag table as completion scripts and as a manual page. bash is there everywhere; zsh and fish where installed.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::completion_test {

namespace {

/// What bash offers for the last of these words.
std::string offered(const Home& home, const std::string& words) {
  home.write("complete.sh", "source <(" ROOFGEN_PROGRAM " completion bash)\nCOMP_WORDS=(" + words +
                                ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_roofgen\necho \"${COMPREPLY[*]}\"\n");
  std::system(("cd '" + home.dir().string() + "' && bash complete.sh >offered.txt 2>&1").c_str());
  return home.read("offered.txt");
}

bool installed(const std::string& shell) { return std::system(("command -v " + shell + " >/dev/null").c_str()) == 0; }

}  // namespace

TEST(Completion, OfBash) {
  const Home home;
  home.write("folder/x", "");
  home.write("file", "");
  EXPECT_EQ(offered(home, "roofgen tu"), "tune\n");
  EXPECT_EQ(offered(home, "roofgen tune att"), "attention\n");
  EXPECT_EQ(offered(home, "roofgen tune attention --cau"), "--causal\n");
  EXPECT_EQ(offered(home, "roofgen tune attention --color al"), "always\n");
  EXPECT_EQ(offered(home, "roofgen lint --device h200-s"), "h200-sxm\n");
  EXPECT_EQ(offered(home, "roofgen explain topk"), "topk_softmax\n");
  EXPECT_EQ(offered(home, "roofgen tune --jobs f"), "\n") << "a number";
  EXPECT_EQ(offered(home, "roofgen explain --ca"), "\n") << "a flag of another command";
  EXPECT_EQ(offered(home, "roofgen tune --data-dir f"), "folder\n");
  EXPECT_EQ(offered(home, "roofgen report f"), "file folder\n");
}

TEST(Completion, ParsesInEachShell) {
  const Home home;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Outcome o = home.run("completion " + shell);
    ASSERT_EQ(o.exit, 0) << o.err;
    EXPECT_NE(o.out.find("causal"), std::string::npos) << shell;
    if (!installed(shell)) continue;
    EXPECT_EQ(std::system((shell + " -n '" + home.dir().string() + "/out.txt'").c_str()), 0) << shell;
  }
}

TEST(Completion, AnUnknownShellIsAUsageError) {
  const Outcome o = Home().run("completion fsh");
  EXPECT_EQ(o.exit, 2);
  EXPECT_EQ(o.err, "roofgen: error: unknown shell \"fsh\"; did you mean \"zsh\"?\n");
}

TEST(Manual, HasEveryCommandAndFlag) {
  const Home home;
  const std::string manual = home.run("__manual").out;
  std::string plain;
  for (const char c : manual)
    if (c != '\\') plain += c;
  const std::string usage = home.run("tune --help").out;
  size_t flags = 0;
  for (size_t at = 0; (at = usage.find("\n  --", at)) != std::string::npos; ++at, ++flags) {
    const std::string flag = usage.substr(at + 3, usage.find_first_of(" ,\n", at + 3) - at - 3);
    EXPECT_NE(plain.find("fB" + flag + "fR"), std::string::npos) << flag;
  }
  EXPECT_GT(flags, 50u);
  for (const char* command : {"tune", "whatif", "check", "completion"})
    EXPECT_NE(plain.find(std::string("\n.SH COMMAND: ") + command + "\n"), std::string::npos) << command;
}

}  // namespace roofgen::test::completion_test

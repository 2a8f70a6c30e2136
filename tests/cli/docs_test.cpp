// The commands of README.md and of docs/: the program knows their options, and has kernels for their problems.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/patterns.h"

namespace roofgen::test::docs_test {
namespace {

struct Command {
  std::string page, text;  ///< text: "tune gemm --M 4096 ..."
};

/// Indented lines that begin with the program, without comments and without what a page says beside them.
std::vector<Command> commands() {
  std::vector<fs::path> pages{ROOFGEN_SOURCE_DIR "/README.md"};
  for (const auto& entry : fs::recursive_directory_iterator(ROOFGEN_SOURCE_DIR "/docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  std::sort(pages.begin(), pages.end());
  const std::string command = R"( {4}(?:\./)?roofgen ((?:[^ ']| (?! )|'[^']*')+).*)";
  std::vector<Command> out;
  for (const fs::path& page : pages) {
    std::ifstream in(page);
    for (std::string line; std::getline(in, line);) {
      for (std::string more; line.ends_with('\\') && std::getline(in, more);)
        line = line.substr(0, line.size() - 1) + more.substr(more.find_first_not_of(' '));
      if (const test::Match parts = test::whole_match(line, command);
          !parts.empty() && line.find("...") == std::string::npos)
        out.push_back({page.filename(), parts[1]});
    }
  }
  return out;
}

bool begins(const Command& c, const std::string& word) { return c.text.starts_with(word + " "); }
bool has(const Command& c, const std::string& word) { return c.text.find(word) != std::string::npos; }

TEST(DocsCommands, HaveOptionsThatTheProgramKnows) {
  const Home home;
  size_t checked = 0;
  for (const Command& c : commands()) {
    if (begins(c, "explain") || c.text == "test") continue;  // below, and of the script
    // A program and its options follow "--" or "run".
    std::string text = c.text + " --no-such-option";
    if (begins(c, "run")) text = "run --no-such-option" + c.text.substr(3);
    const Outcome o = home.run(text);
    EXPECT_EQ(o.exit, 2) << c.page << ": " << c.text;
    EXPECT_NE(o.err.find("unknown option --no-such-option"), std::string::npos) << c.page << ": " << c.text << "\n"
                                                                                << o.err;
    ++checked;
  }
  EXPECT_GT(checked, 60u);
}

TEST(DocsCommands, AreForProblemsThatHaveKernels) {
  const Home home;
  size_t checked = 0;
  for (const Command& c : commands()) {
    const bool tunes = (begins(c, "tune") || begins(c, "emit")) && c.text[5] != '-';
    if (!tunes || has(c, "--variant") || has(c, "--manifest")) continue;
    const Outcome o = home.run(c.text + " --variant none");
    EXPECT_NE(o.err.find("unknown variant \"none\"; known: "), std::string::npos) << c.page << ": " << c.text << "\n"
                                                                                  << o.err;
    ++checked;
  }
  EXPECT_GT(checked, 25u);
}

TEST(DocsCommands, OfFormulasRun) {
  const Home home;
  size_t checked = 0;
  for (const Command& c : commands()) {
    if (!(begins(c, "explain") || begins(c, "model")) || has(c, "--device gpu") || has(c, "mine.json")) continue;
    const Outcome o = home.run(c.text);
    EXPECT_EQ(o.exit, 0) << c.page << ": " << c.text << "\n" << o.err;
    EXPECT_FALSE(o.out.empty()) << c.page << ": " << c.text;
    ++checked;
  }
  EXPECT_GT(checked, 5u);
}

}  // namespace
}  // namespace roofgen::test::docs_test

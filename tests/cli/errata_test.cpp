// docs/evidence/errata.md: it has a row for each artifact, and every command in a row runs and prints the stated text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/patterns.h"

namespace roofgen::test::errata_test {

namespace {

constexpr int kArtifacts = 80;

/// Text that the output of a command must or must not contain.
struct Expectation {
  std::string text;
  bool absent = false;
};

struct Command {
  std::string line;  ///< the words after `roofgen `
  std::vector<Expectation> expected;
};

struct Row {
  int number = 0;
  std::string says, right;
  std::vector<Command> commands;
  std::string fault;  ///< the reason why the row could not be read
};

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> out;
  size_t at = 0;
  for (size_t next; (next = text.find(by, at)) != std::string::npos; at = next + by.size())
    out.push_back(text.substr(at, next - at));
  out.push_back(text.substr(at));
  return out;
}

/// `roofgen ...` → `text`, no `text`
bool read_command(const std::string& cell, Command& out) {
  const test::Match m = test::whole_match(cell, "`roofgen ?([^`]*)` → ((no )?`[^`]+`(, (no )?`[^`]+`)*)");
  if (m.empty()) return false;
  out.line = m[1];
  for (const test::Match& one : test::matches(m[2], "(no )?`([^`]+)`"))
    out.expected.push_back({one[2], !one[1].empty()});
  return true;
}

Row read_row(const std::string& line) {
  Row row;
  const std::vector<std::string> cells = split(line.substr(2, line.size() - 4), " | ");
  row.number = std::atoi(cells[0].c_str());
  if (cells.size() != 4) {
    row.fault = "four cells were expected: " + line;
    return row;
  }
  row.says = cells[1];
  row.right = cells[2];
  for (const std::string& part : split(cells[3], "<br>")) {
    Command command;
    if (read_command(part, command))
      row.commands.push_back(command);
    else
      row.fault = "`roofgen ...` → `text` was expected: " + part;
  }
  return row;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> out;
    std::ifstream in(fs::path(ROOFGEN_SOURCE_DIR) / "docs/evidence/errata.md");
    for (std::string line; std::getline(in, line);)
      if (line.size() > 8 && line.starts_with("| ") && std::isdigit(static_cast<unsigned char>(line[2])))
        out.push_back(read_row(line));
    return out;
  }();
  return all;
}

std::string squeezed(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string word; in >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// Whether `text` contains `part`, not as a piece of a longer number or word.
bool has(const std::string& text, const std::string& part) {
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '.'; };
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    const size_t end = at + part.size();
    const bool begins = at == 0 || !word(part.front()) || !word(text[at - 1]);
    const bool ends = end == text.size() || !word(part.back()) || !word(text[end]) ||
                      (text[end] == '.' && (end + 1 == text.size() || !word(text[end + 1])));
    if (begins && ends) return true;
  }
  return false;
}

/// The numbers in a text, as written.
std::vector<std::string> numbers(const std::string& text) {
  std::vector<std::string> out;
  for (const test::Match& number : test::matches(text, "[0-9]+(\\.[0-9]+)?")) out.push_back(number[0]);
  return out;
}

/// Whether `shown` rounds to `named`, which has at most as many digits.
bool rounds_to(const std::string& shown, const std::string& named) {
  const auto decimals = [](const std::string& n) {
    return n.find('.') == std::string::npos ? size_t{0} : n.size() - n.find('.') - 1;
  };
  return decimals(shown) >= decimals(named) && std::fabs(std::stod(shown) - std::stod(named)) <=
                                                   0.5001 * std::pow(10.0, -static_cast<double>(decimals(named)));
}

class Artifact : public testing::TestWithParam<int> {};

}  // namespace

TEST(ErrataPage, HasOneRowForEachArtifact) {
  std::vector<int> numbers, expected;
  for (const Row& row : rows()) numbers.push_back(row.number);
  for (int i = 1; i <= kArtifacts; ++i) expected.push_back(i);
  EXPECT_EQ(numbers, expected);
}

TEST(ErrataPage, MatchesWholeNumbersAndWords) {
  EXPECT_TRUE(has("AI 31.03 FLOP", "AI 31.03"));
  EXPECT_TRUE(has("to 8.0.", "8.0"));
  EXPECT_FALSE(has("AI 31.035", "AI 31.03"));
  EXPECT_FALSE(has("AI 131.03", "31.03"));
  EXPECT_FALSE(has("AI 31.03", "AI 31"));
}

TEST_P(Artifact, IsShownByItsCommands) {
  for (const Row& row : rows()) {
    if (row.number != GetParam()) continue;
    ASSERT_EQ(row.fault, "") << "artifact " << row.number;
    for (const Command& c : row.commands) {
      const Home home;
      fs::create_directory_symlink(fs::path(ROOFGEN_SOURCE_DIR) / "docs", home.dir() / "docs");
      const Outcome result = home.run(c.line);
      // A linted file with findings is a failed check, not a failed command.
      EXPECT_EQ(result.exit, c.line.starts_with("lint ") ? 1 : 0)
          << "artifact " << row.number << ": roofgen " << c.line << "\n"
          << result.err;
      const std::string out = squeezed(result.out);
      for (const Expectation& e : c.expected)
        EXPECT_EQ(has(out, squeezed(e.text)), !e.absent)
            << "artifact " << row.number << ": roofgen " << c.line << (e.absent ? "\nprints " : "\ndoes not print ")
            << e.text << "\n"
            << result.out;
    }
  }
}

// A row that states a value but shows another is out of date.
TEST_P(Artifact, NamesAValueThatIsShown) {
  for (const Row& row : rows()) {
    const std::vector<std::string> named = numbers(row.right);
    if (row.number != GetParam() || named.empty()) continue;
    std::vector<std::string> shown;
    for (const Command& c : row.commands)
      for (const Expectation& e : c.expected)
        for (std::string& n : numbers(e.text)) shown.push_back(std::move(n));
    EXPECT_TRUE(std::any_of(named.begin(), named.end(),
                            [&](const std::string& n) {
                              return std::any_of(shown.begin(), shown.end(),
                                                 [&](const std::string& s) { return rounds_to(s, n); });
                            }))
        << "artifact " << row.number << " names no value that its commands show: " << row.right;
  }
}

INSTANTIATE_TEST_SUITE_P(Errata, Artifact, testing::Range(1, kArtifacts + 1),
                         [](const auto& number) { return std::to_string(number.param); });

}  // namespace roofgen::test::errata_test

// docs/evidence/errata.md: it has a row for each artifact, and the commands of errata/commands.txt compute what it
// says.
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
  std::string right;  ///< what is right
  std::vector<Command> commands;
  std::string fault;  ///< the reason why the row could not be read
};

fs::path evidence(const char* name) { return fs::path(ROOFGEN_SOURCE_DIR) / "docs/evidence" / name; }

/// A row of the page: "12. **What the document says.** What is right.", in any number of lines.
Row read_row(const std::string& text) {
  Row row;
  row.number = std::atoi(text.c_str());
  if (const test::Match m = test::whole_match(text, R"(\d+\. \*\*(.*[^*])\*\* (.+))"); !m.empty())
    row.right = m[2];
  else
    row.fault = "`1. **what the document says** what is right` was expected: " + text;
  return row;
}

std::vector<Row> rows_of_page() {
  std::vector<Row> out;
  std::ifstream in(evidence("errata.md"));
  std::string item;
  const auto end = [&] {
    if (!item.empty()) out.push_back(read_row(item));
    item.clear();
  };
  for (std::string line; std::getline(in, line);) {
    const bool begins = test::contains(line, R"(^\d+\. )");
    const size_t text = line.find_first_not_of(' ');
    if (begins || text == std::string::npos) end();
    if (begins)
      item = line;
    else if (!item.empty() && text != std::string::npos)
      item += " " + line.substr(text);
  }
  end();
  return out;
}

/// A line of commands.txt: the number of a row, "  a command", "    = text", or "    ! text" that must be absent.
void read_line(const std::string& line, std::vector<Row>& rows, Row*& row) {
  if (line.empty() || line[0] == '#') return;
  const bool expects = line.starts_with("    = ") || line.starts_with("    ! ");
  if (line[0] != ' ') {
    const auto of_number = [&](const Row& r) { return r.number == std::atoi(line.c_str()); };
    const auto found = std::find_if(rows.begin(), rows.end(), of_number);
    ASSERT_NE(found, rows.end()) << "commands.txt: no such row: " << line;
    row = &*found;
  } else if (!row || (expects && row->commands.empty())) {
    ADD_FAILURE() << "commands.txt: the number of a row, or a command, was expected before: " << line;
  } else if (expects) {
    row->commands.back().expected.push_back({line.substr(6), line[4] == '!'});
  } else {
    row->commands.push_back({line.substr(2), {}});
  }
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> out = rows_of_page();
    std::ifstream in(evidence("errata/commands.txt"));
    Row* row = nullptr;
    for (std::string line; std::getline(in, line);) read_line(line, out, row);
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
    EXPECT_FALSE(row.commands.empty()) << "artifact " << row.number;
    for (const Command& c : row.commands) {
      EXPECT_FALSE(c.expected.empty()) << "artifact " << row.number << ": roofgen " << c.line;
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

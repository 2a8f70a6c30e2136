// The form of README.md, docs/ and the pages of lab/: lines wrap, cells of tables are short, links and paths resolve,
// and the pages of docs/ together stay short.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/support/patterns.h"

namespace roofgen::docs_test {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = ROOFGEN_SOURCE_DIR;
constexpr size_t kMaxWidth = 120, kMaxWordsOfCell = 40;
constexpr size_t kMaxWords = 60'500;

struct Line {
  std::string page, text;
  size_t number = 0;
  bool is_code = false;  ///< indented by four, or between lines of ```

  std::string place() const { return page + ":" + std::to_string(number) + ": " + text; }
};

std::vector<Line> lines_of(const fs::path& page) {
  std::vector<Line> out;
  std::ifstream in(page);
  bool fenced = false;
  for (std::string text; std::getline(in, text);) {
    const bool fence = text.starts_with("```");
    fenced ^= fence;
    out.push_back({fs::relative(page, kRoot), text, out.size() + 1, fenced || fence || text.starts_with("    ")});
  }
  return out;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found{kRoot / "README.md"};
  for (const char* folder : {"docs", "lab"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.path().extension() == ".md" && entry.path().filename() != "readme_golden.md")
        found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

const std::vector<Line>& lines() {
  static const std::vector<Line> kLines = [] {
    std::vector<Line> all;
    for (const fs::path& page : pages())
      for (Line& line : lines_of(page)) all.push_back(std::move(line));
    return all;
  }();
  return kLines;
}

/// Characters, not bytes, of UTF-8.
size_t width(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

size_t words(const std::string& text) {
  std::istringstream in(text);
  return std::distance(std::istream_iterator<std::string>(in), {});
}

TEST(Docs, LinesWrap) {
  for (const Line& line : lines()) {
    const bool one_word = words(line.text) == 1;  // as the form of an instruction
    if (line.is_code || one_word || line.text.find("://") != std::string::npos) continue;
    EXPECT_LE(width(line.text), kMaxWidth) << line.place();
  }
}

TEST(Docs, CellsOfTablesAreShort) {
  for (const Line& line : lines()) {
    if (line.is_code || !line.text.starts_with("|")) continue;
    std::istringstream cells(line.text);
    for (std::string cell; std::getline(cells, cell, '|');) EXPECT_LE(words(cell), kMaxWordsOfCell) << line.place();
  }
}

TEST(Docs, LinksAndPathsResolve) {
  size_t checked = 0;
  const auto exists = [&](const fs::path& path, const Line& line) {
    EXPECT_TRUE(fs::exists(path)) << line.place() << "\nnames " << path;
    ++checked;
  };
  for (const Line& line : lines()) {
    for (const test::Match& link : test::matches(line.text, R"(\]\(([^)#:]+)(#[^)]*)?\))"))
      if (!line.is_code) exists((kRoot / line.page).parent_path() / link[1], line);
    for (const test::Match& path : test::matches(line.text, R"(\b(docs/[\w/.-]+\.(md|json))\b)"))
      exists(kRoot / path[1], line);
  }
  EXPECT_GT(checked, 300u);
}

TEST(Docs, AreShort) {
  size_t total = 0, of_readme = 0;
  for (const Line& line : lines())
    if (!line.page.starts_with("lab/")) (line.page == "README.md" ? of_readme : total) += words(line.text);
  EXPECT_LE(total, kMaxWords);
  EXPECT_LE(of_readme, 1200u);
}

}  // namespace
}  // namespace roofgen::docs_test

// The roofline as text: structure at several widths, and positions computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "plot_sample.h"
#include "roofline/plot/plot.h"
#include "roofline/plot/scene.h"
#include "roofline/plot/text.h"

namespace roofgen::plot::plot_terminal_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The characters of a line, each of one or more bytes.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (char c : line)
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80)
      cells.back() += c;
    else
      cells.push_back(std::string(1, c));
  return cells;
}

/// Code point of a character of up to three bytes.
int code_point(const std::string& cell) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(cell[i]); };
  if (cell.size() == 1) return byte(0);
  if (cell.size() == 2) return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
  return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
}

/// The rows of the plot without the axis, padded with blanks.
std::vector<std::vector<std::string>> plot_rows(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : lines_of(text)) {
    std::vector<std::string> cells = cells_of(line);
    const auto axis =
        std::find_if(cells.begin(), cells.end(), [](const std::string& c) { return c == "\u2502" || c == "\u2524"; });
    if (axis != cells.end()) rows.emplace_back(axis + 1, cells.end());
  }
  for (auto& row : rows) row.resize(200, " ");
  return rows;
}

class TerminalWidth : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Plot, TerminalWidth, testing::Values(40, 60, 80, 120, 200));

TEST_P(TerminalWidth, IsNeverExceededAndHasOnlyPlainAndBoxCharacters) {
  const std::string text = terminal_text(sample_page(), GetParam(), false);
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(columns(line), GetParam()) << line;
    for (const std::string& cell : cells_of(line)) {
      const int code = code_point(cell);
      EXPECT_TRUE((code >= 0x20 && code < 0x7f) || (code >= 0x2500 && code <= 0x257F)) << code << " in " << line;
    }
  }
}

TEST_P(TerminalWidth, EveryRoofIsNamedWithItsValue) {
  const std::string text = terminal_text(sample_roofline(), GetParam(), false);
  for (const char* name : {"FP64", "FP32", "TF32 tensor", "BF16 tensor", "INT8 tensor", "DRAM", "L2", "shared memory"})
    EXPECT_THAT(text, HasSubstr(name));
  for (const char* value : {"9.7 TFLOP/s", "19.5 TFLOP/s", "156 TFLOP/s", "312 TFLOP/s", "624 TFLOP/s", "2039 GB/s",
                            "1800 GB/s", "7219 GB/s", "19.5 TB/s"})
    EXPECT_THAT(text, HasSubstr(value));
}

TEST_P(TerminalWidth, EveryPointHasItsLetterOnThePlot) {
  std::string plot;
  for (const auto& row : plot_rows(terminal_text(sample_roofline(), GetParam(), false)))
    for (const std::string& cell : row) plot += cell;
  // Measured points and points from counters have capital letters, modelled and simulated points small letters.
  for (char mark : {'A', 'B', 'C', 'D', 'e', 'f', 'g', 'h', 'i'}) EXPECT_NE(plot.find(mark), std::string::npos) << mark;
}

TEST(Terminal, CeilingsAreLabelledOnThePlot) {
  std::string plot;
  for (const auto& row : plot_rows(terminal_text(sample_roofline(), 80, false))) {
    for (const std::string& cell : row) plot += cell;
    plot += "\n";
  }
  for (const char* label : {"FP64 9.7 TFLOP/s", "FP32 19.5 TFLOP/s", "TF32 tensor 156 TFLOP/s",
                            "BF16 tensor 312 TFLOP/s", "INT8 tensor 624 TFLOP/s"})
    EXPECT_THAT(plot, HasSubstr(label));
}

TEST(Terminal, TheTableComesBeforeThePlotAndKeepsFullNames) {
  const std::string text = terminal_text(sample_roofline(), 160, false);
  const size_t name = text.find("decode attention GQA group 4, KV cache 16384");
  ASSERT_NE(name, std::string::npos);
  EXPECT_LT(name, text.find("TFLOP/s\n"));
  EXPECT_LT(text.find("attention flash BM=128 BN=64 stages=2"), text.find("Arithmetic intensity ["));
}

// With a slope of 1 TB/s and a ceiling of 10 TFLOP/s, the elbow is at 10 FLOP/byte. A kernel at 10 FLOP/byte and 10
// TFLOP/s lies on the elbow, with the ceiling to its right and the slope to its lower left.
TEST(Terminal, APointAtTheRidgeStandsOnTheElbow) {
  Roofline r;
  r.slopes = {{"DRAM", 1000, Origin::kMeasured}};
  r.ceilings = {{"FP32", 10, Origin::kMeasured, "DRAM"}};
  const auto elbow = [](const std::vector<std::vector<std::string>>& rows, const std::string& glyph) {
    for (size_t y = 0; y < rows.size(); ++y)
      for (size_t x = 0; x < rows[y].size(); ++x)
        if (rows[y][x] == glyph) return std::pair(x, y);
    return std::pair(size_t{0}, size_t{0});
  };
  const auto before = plot_rows(terminal_text(r, 80, false));
  r.points = {{.name = "k", .ai = 10, .tflops = 10, .roof_tflops = 10, .origin = Origin::kMeasured}};
  const auto after = plot_rows(terminal_text(r, 80, false));
  const auto [x, y] = elbow(before, "\u256d");
  ASSERT_GT(x, 1u);
  EXPECT_EQ(elbow(after, "A"), std::pair(x, y));
  EXPECT_EQ(after[y][x + 1], "\u2500");
  ASSERT_LT(y + 1, after.size());
  EXPECT_TRUE(after[y + 1][x - 1] == "\u2571" || after[y + 1][x - 2] == "\u2571");
}

TEST(Terminal, DashedIsDatasheetAndSolidIsMeasured) {
  Roofline r;
  r.slopes = {{"DRAM", 1000, Origin::kDatasheet}};
  r.ceilings = {{"FP32", 10, Origin::kDatasheet, "DRAM"}};
  const std::string dashed = terminal_text(r, 80, false);
  EXPECT_THAT(dashed.substr(0, dashed.find("Arithmetic")),
              testing::AllOf(HasSubstr("\u2504\u2504"), Not(HasSubstr("\u2571"))));
  r.slopes[0].origin = r.ceilings[0].origin = Origin::kMeasured;
  const std::string solid = terminal_text(r, 80, false);
  EXPECT_THAT(solid.substr(0, solid.find("Arithmetic")), testing::AllOf(HasSubstr("\u2571"), Not(HasSubstr("\u2504"))));
}

TEST(Terminal, ColourOnlyWhereAskedFor) {
  EXPECT_THAT(terminal_text(sample_page(), 80, false), Not(HasSubstr("\x1b")));
  EXPECT_THAT(terminal_text(sample_page(), 80, true), HasSubstr("\x1b["));
}

TEST(Terminal, NamesCannotSteerTheTerminal) {
  Roofline r = sample_roofline();
  r.points[0].name = "evil\x1b[2J\x07\xff name";
  r.title = "t\x1b]0;x\x07";
  r.ceilings[0].name = "\x1b[31mred";
  r.arrows[0].label = "a\rb";
  const std::string text = terminal_text(r, 80, false);
  EXPECT_THAT(text, testing::AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")), Not(HasSubstr("\r")),
                                   HasSubstr("evil?[2J??")));
}

TEST(Terminal, UndrawablePointsAreListed) {
  Roofline r = sample_roofline();
  r.points.push_back({.name = "int copy", .ai = 0, .tflops = 0, .bound_by = "DRAM"});
  const std::string text = terminal_text(r, 80, false);
  EXPECT_THAT(text, HasSubstr("int copy"));
  EXPECT_THAT(text, HasSubstr("J is not on the plot: no FLOPs"));
}

TEST(Terminal, NothingToDrawIsStillAFrame) {
  EXPECT_THAT(terminal_text(Roofline{}, 80, false), HasSubstr("TFLOP/s"));
  EXPECT_EQ(terminal_text(Roofline{}, 0, false), terminal_text(Roofline{}, 40, false));
}

TEST(Terminal, HeatmapSaysMemOrCompInEachCell) {
  const Heatmap map{.title = "m",
                    .x_title = "kv",
                    .y_title = "batch",
                    .value_title = "FLOP/byte",
                    .x_labels = {"256", "512"},
                    .y_labels = {"1", "2"},
                    .values = {{1, 152.9}, {153, 1000}},
                    .threshold = 153,
                    .below = "MEM",
                    .above = "COMP"};
  EXPECT_THAT(terminal_text(map, 80, false), HasSubstr("batch  256  512\n"
                                                       "    1    1  153\n"
                                                       "       MEM  MEM\n"
                                                       "    2  153 1000\n"
                                                       "      COMP COMP\n"));
}

TEST(Terminal, ABandStandsBehindItsValue) {
  const Lines lines{"t", "x", "y", true, false, {{"a", {{1, 0.5}, {2, 0.7}}, {{0.4, 0.6}, {0.5, 0.9}}}}, {}};
  const std::string text = terminal_text(lines, 80);
  EXPECT_NE(text.find("0.5 (0.4 to 0.6)"), std::string::npos) << text;
  EXPECT_NE(text.find("0.7 (0.5 to 0.9)"), std::string::npos) << text;
}

TEST(Scene, CeilingsBeginAtTheElbowOfTheirOwnSlope) {
  Roofline r;
  r.slopes = {{"DRAM", 2000, Origin::kDatasheet}, {"DRAM", 1600, Origin::kMeasured}, {"L2", 8000, Origin::kDatasheet}};
  r.ceilings = {{"spec", 320, Origin::kDatasheet, "DRAM"},
                {"measured", 240, Origin::kMeasured, "DRAM"},
                {"cached", 80, Origin::kDatasheet, "L2"}};
  const Scene scene = make_scene(r);
  ASSERT_EQ(scene.roofs.size(), 6u);
  EXPECT_DOUBLE_EQ(scene.roofs[3].ai0, 160);      // 320 / 2.0
  EXPECT_DOUBLE_EQ(scene.roofs[4].ai0, 150);      // 240 / 1.6
  EXPECT_DOUBLE_EQ(scene.roofs[5].ai0, 10);       // 80 / 8.0
  EXPECT_DOUBLE_EQ(scene.roofs[3].reach_ai, 40);  // 320 / 8.0, where only the L2 bandwidth reaches the ceiling
  EXPECT_DOUBLE_EQ(scene.roofs[5].reach_ai, 0);
  EXPECT_DOUBLE_EQ(scene.roofs[0].tflops1, 320);  // slopes end at the highest ceiling
}

TEST(Scene, ExplainsBothOrdersOfTheLevels) {
  Roofline r;
  r.points = {{.name = "k", .level = "DRAM", .ai = 40, .tflops = 1},
              {.name = "k", .level = "L2", .ai = 10, .tflops = 1},
              {.name = "g", .level = "DRAM", .ai = 10, .tflops = 1},
              {.name = "g", .level = "L2", .ai = 20, .tflops = 1}};
  const Scene scene = make_scene(r);
  ASSERT_EQ(scene.kernels.size(), 2u);
  EXPECT_THAT(scene.kernels[0].note,
              HasSubstr("AI at L2 is below AI at DRAM: of each byte L2 serves, DRAM moves only 0.25"));
  EXPECT_THAT(scene.kernels[1].note,
              HasSubstr("AI at L2 is above AI at DRAM: DRAM moves 2 bytes for each byte asked of L2"));
}

TEST(Scene, LettersGoOnAfterZ) {
  Roofline r;
  for (int i = 0; i < 60; ++i) r.points.push_back({.name = std::to_string(i), .ai = 1, .tflops = 1});
  const Scene scene = make_scene(r);
  EXPECT_EQ(scene.kernels[25].letter, "Z");
  EXPECT_EQ(scene.kernels[26].letter, "AA");
  EXPECT_EQ(scene.kernels[52].letter, "BA");
}

TEST(Scene, OneAbsurdPointDoesNotFlattenTheRest) {
  Roofline r = sample_roofline();
  r.points.push_back({.name = "absurd", .ai = 1e-200, .tflops = 1e-200});
  const Scene scene = make_scene(r);
  EXPECT_LE(scene.frame.ai_decades(), 10.001);
  EXPECT_EQ(scene.missing.back(), "outside the axes");
}

TEST(Scene, NumbersHaveThreeDigits) {
  EXPECT_EQ(number_text(0.16667), "0.167");
  EXPECT_EQ(number_text(1), "1");
  EXPECT_EQ(number_text(4.7568), "4.76");
  EXPECT_EQ(number_text(19.5), "19.5");
  EXPECT_EQ(number_text(153.01), "153");
  EXPECT_EQ(number_text(2039), "2039");
  EXPECT_EQ(number_text(1.5e6), "1.5e+06");
  EXPECT_EQ(number_text(NAN), "-");
}

}  // namespace
}  // namespace roofgen::plot::plot_terminal_test

// SVG files, hostile names, and PNG by rsvg-convert with its failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>

#include "plot_sample.h"
#include "roofline/plot/canvas.h"
#include "roofline/plot/plot.h"
#include "tests/support/png.h"

namespace roofgen::plot::plot_svg_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string file_of(const Roofline& roofline) { return svg(roofline, Place::kFile); }

/// The ends of the n-th roof: x1, y1, x2, y2 in pixels.
std::vector<double> roof_line(const std::string& text, size_t n) {
  // Dotted lines of a ridge and of a reach come first.
  const std::regex line("<line[^>]* x1=\"([^\"]*)\" y1=\"([^\"]*)\" x2=\"([^\"]*)\" y2=\"([^\"]*)\"[^>]* data-roof=\"" +
                        std::to_string(n) + "\"/>");
  std::vector<double> values;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at)
    values = {std::stod((*at)[1]), std::stod((*at)[2]), std::stod((*at)[3]), std::stod((*at)[4])};
  EXPECT_EQ(values.size(), 4u) << n;
  values.resize(4);
  return values;
}

/// The value at a pixel of an axis, from the pixels of two ticks' labels: `attribute` is x or y.
class Ticks {
 public:
  Ticks(const std::string& text, const std::string& attribute, const std::string& anchor) {
    const std::regex tick("<text[^>]* " + attribute + "=\"([^\"]*)\"[^>]*font-size=\"12.5\"[^>]*text-anchor=\"" +
                          anchor + "\"[^>]*>([0-9.]+)</text>");
    for (std::sregex_iterator at(text.begin(), text.end(), tick), end; at != end; ++at)
      ticks_.push_back({std::stod((*at)[1]), std::log10(std::stod((*at)[2]))});
    EXPECT_GE(ticks_.size(), 2u);
  }
  double value(double pixel) const {
    const auto& [p0, v0] = ticks_.front();
    const auto& [p1, v1] = ticks_.back();
    return std::pow(10, v0 + (pixel - p0) * (v1 - v0) / (p1 - p0));
  }

 private:
  std::vector<std::pair<double, double>> ticks_;
};

// Pixels are rounded to tenths: 0.1 of about 180 a decade.
constexpr double kRounding = 3e-3;

TEST(Svg, CeilingsBeginAtTheirElbow) {
  const Roofline r = sample_roofline();
  const std::string text = file_of(r);
  const Ticks x(text, "x", "middle"), y(text, "y", "end");
  for (size_t i = 0; i < r.ceilings.size(); ++i) {
    const std::vector<double> line = roof_line(text, r.slopes.size() + i);
    const double elbow = r.ceilings[i].tflops / 2.039;  // the DRAM datasheet bandwidth in TB/s
    EXPECT_NEAR(x.value(line[0]), elbow, kRounding * elbow) << r.ceilings[i].name;
    for (const double end : {line[1], line[3]})
      EXPECT_NEAR(y.value(end), r.ceilings[i].tflops, kRounding * r.ceilings[i].tflops);
  }
}

TEST(Svg, SlopesAreTheirBandwidth) {
  const Roofline r = sample_roofline();
  const std::string text = file_of(r);
  const Ticks x(text, "x", "middle"), y(text, "y", "end");
  for (size_t i = 0; i < r.slopes.size(); ++i) {
    const std::vector<double> line = roof_line(text, i);
    EXPECT_NEAR(1000 * y.value(line[1]) / x.value(line[0]), r.slopes[i].gb_s, 2 * kRounding * r.slopes[i].gb_s);
    EXPECT_NEAR(1000 * y.value(line[3]) / x.value(line[2]), r.slopes[i].gb_s, 2 * kRounding * r.slopes[i].gb_s);
    EXPECT_NEAR(y.value(line[3]), 624, 624 * kRounding);  // the highest ceiling
  }
}

TEST(Svg, HasEveryRoofWithItsValueAndEveryFullName) {
  const Roofline r = sample_roofline();
  const std::string text = file_of(r), page = svg(r, Place::kPage);
  for (const char* label : {">FP64  9.7 TFLOP/s<", ">FP32  19.5 TFLOP/s<", ">DRAM  2039 GB/s, measured 1800 GB/s<",
                            ">L2  7219 GB/s<", ">shared memory  19.5 TB/s<"}) {
    EXPECT_THAT(text, HasSubstr(label));
    EXPECT_THAT(page, HasSubstr(label));
  }
  for (const Point& point : r.points) EXPECT_THAT(text, HasSubstr(">" + point.name + "<"));
}

// A page hides kernels and roofs by these names.
TEST(Svg, PartsNameWhatTheyBelongTo) {
  const Roofline r = sample_roofline();
  const std::string text = svg(r, Place::kPage);
  for (size_t i = 0; i < r.slopes.size() + r.ceilings.size(); ++i) roof_line(text, i);
  for (size_t i = 0; i < r.points.size(); ++i)
    EXPECT_THAT(text, HasSubstr("data-point=\"" + std::to_string(i) + "\"")) << r.points[i].name;
  EXPECT_THAT(text, Not(HasSubstr(">" + r.points[0].name + "<"))) << "the page has a table of its own";
}

TEST(Svg, NamesAreNeverMarkup) {
  Roofline r = sample_roofline();
  r.title = r.subtitle = r.points[0].name = r.points[1].bound_by = r.ceilings[0].name = r.slopes[0].level =
      r.arrows[0].label = "</text><script>x</script>&\"' \x01\xff ]]>";
  const std::string text = file_of(r);
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("]]>")));
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;x&lt;/script&gt;&amp;&quot;'"));
  for (const char c : text) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  EXPECT_EQ(text.find('\xff'), std::string::npos);
}

// The labels of many kernels: no two horizontal labels overlap, and none lies on a mark or outside of the axes.
TEST(Canvas, LabelsDoNotOverlap) {
  Roofline r = sample_roofline();
  for (int i = 0; i < 40; ++i)
    r.points.push_back({.name = "k" + std::to_string(i),
                        .ai = std::pow(10, -0.5 + i / 12.0),
                        .tflops = 0.5 * std::pow(10, i / 15.0),
                        .share = 0.01,
                        .origin = Origin::kMeasured});
  const Canvas canvas = lay_out(r, make_scene(r), Place::kFile);
  std::vector<Box> boxes;
  for (const Canvas::Label& label : canvas.labels) {
    if (!label.centred || label.angle != 0) continue;
    const double height = 0.75 * label.size, width = label.width;
    boxes.push_back({label.x - width / 2, label.y - height / 2, label.x + width / 2, label.y + height / 2});
    EXPECT_GE(boxes.back().left, canvas.plot.left) << label.text;
    EXPECT_LE(boxes.back().right, canvas.plot.right) << label.text;
    EXPECT_LE(boxes.back().bottom, canvas.plot.bottom) << label.text;
  }
  EXPECT_GT(boxes.size(), 40u);
  const auto touch = [](const Box& a, const Box& b) {
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  };
  for (size_t i = 0; i < boxes.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(touch(boxes[i], boxes[j])) << i << " and " << j;
  for (const Canvas::Mark& mark : canvas.marks) {
    if (!mark.point) continue;  // the dots at elbows
    for (const Box& box : boxes) EXPECT_FALSE(touch(box, {mark.x, mark.y, mark.x, mark.y}));
  }
}

TEST(PlacementOfLabels, TakesTheCheapestFreeSpot) {
  Placement placement({0, 0, 100, 100});
  placement.take({50, 50, 10});
  placement.add_line(0, 20, 100, 20);
  const auto spot = placement.place({{50, 50, 0, 20, 10},  // on the disc
                                     {95, 80, 0, 20, 10},  // beyond the right edge
                                     {50, 20, 0, 20, 10},  // on the line
                                     {50, 80, 0, 20, 10}});
  ASSERT_TRUE(spot);
  EXPECT_EQ(spot->y, 80);
  EXPECT_FALSE(placement.place({{50, 80, 0, 20, 10}})) << "it is taken now";
  const auto crossed = placement.place({{50, 20, 0, 20, 10}});
  ASSERT_TRUE(crossed) << "a line is crossed where nothing else is left";
  // An upright label fits where a horizontal one does not.
  EXPECT_FALSE(placement.place({{38, 50, 0, 30, 6}}));
  EXPECT_TRUE(placement.place({{36, 50, 1.5707963, 30, 6}}));
}

/// A temporary folder; restores PATH at the end.
class Png : public testing::Test {
 protected:
  Png() : dir_(fs::temp_directory_path() / ("roofgen plot-" + std::to_string(std::random_device{}()))) {
    fs::create_directories(dir_);
  }
  ~Png() override {
    fs::remove_all(dir_);
    setenv("PATH", path_.c_str(), 1);
  }
  /// Replaces rsvg-convert by a script, the only program in PATH.
  void replace_converter(const std::string& shell_lines) const {
    const fs::path fake = dir_ / "rsvg-convert";
    std::ofstream(fake) << "#!/bin/sh\n" << shell_lines;
    fs::permissions(fake, fs::perms::owner_all);
    setenv("PATH", dir_.c_str(), 1);
  }

  fs::path dir_;
  std::string path_ = getenv("PATH");
};

TEST_F(Png, IsDrawn) {
  const auto written = png(file_of(sample_roofline()));
  ASSERT_TRUE(written) << to_string(written.error());
  const auto image = test::read_png(*written);
  ASSERT_TRUE(image);
  EXPECT_GT(image->width, 1000);
  EXPECT_GT(image->height, 500);
  for (uint32_t colour : {0x2166c4u, 0xd1600fu, 0x7a3fc2u, 0x16181du})
    EXPECT_TRUE(image->colours.count(colour)) << std::hex << colour;
}

TEST_F(Png, AnyFigureIsDrawn) {
  Roofline evil = sample_roofline();
  evil.points[0].name = evil.title = "<&>\"' \x01\xff]]>";
  Roofline many = sample_roofline();
  for (int i = 0; i < 60; ++i)
    many.points.push_back(
        {.name = "kernel " + std::to_string(i) + std::string(200, 'x'), .ai = 1.0 + i, .tflops = 1, .share = 0.01});
  Roofline thousands = many;
  for (int i = 0; i < 3000; ++i)
    thousands.points.push_back({.name = "point " + std::to_string(i), .ai = 1.0 + i, .tflops = 1});
  for (const Roofline& r : {Roofline{}, evil, many, thousands}) {
    const auto written = png(file_of(r));
    EXPECT_TRUE(written) << to_string(written.error());
  }
}

TEST_F(Png, MissingNamesThePackage) {
  setenv("PATH", dir_.c_str(), 1);
  const auto written = png(file_of(sample_roofline()));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().exit, Exit::kUnavailable);
  EXPECT_THAT(written.error().message, HasSubstr("librsvg2-bin"));
}

TEST_F(Png, FailureIsReported) {
  replace_converter("echo 'first line' >&2\necho 'no such format' >&2\necho half\nexit 1\n");
  const auto written = png(file_of(sample_roofline()));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().exit, Exit::kFailed);
  EXPECT_THAT(written.error().message, HasSubstr("rsvg-convert failed: first line no such format"));
}

TEST_F(Png, SilenceIsAFailureToo) {
  replace_converter("exit 0\n");
  EXPECT_FALSE(png(file_of(sample_roofline())));
}

}  // namespace
}  // namespace roofgen::plot::plot_svg_test

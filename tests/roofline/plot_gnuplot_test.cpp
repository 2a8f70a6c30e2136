// SVG and PNG through gnuplot: the script's content, hostile names, and all failures.
#include "roofline/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "plot_sample.h"
#include "roofline/plot/canvas.h"
#include "tests/support/png.h"

namespace roofgen::plot::plot_gnuplot_test {
namespace {

namespace fs = std::filesystem;

const Outputs kAnyFile("", /*force=*/true);
using testing::HasSubstr;
using testing::Not;

std::string script_of(const Roofline& roofline) {
  const auto script = gnuplot_script(roofline, PlotFormat::kPng);
  EXPECT_TRUE(script) << to_string(script.error());
  return script ? *script : "";
}

/// The ends of the script's n-th roof: from (ai, tflops) to (ai, tflops).
std::vector<double> roof_data(const std::string& script, int n) {
  const std::string open = "$roof" + std::to_string(n) + " << EOD\n";
  const size_t begin = script.find(open);
  EXPECT_NE(begin, std::string::npos) << n;
  std::istringstream in(script.substr(begin + open.size()));
  std::vector<double> values(4);
  for (double& value : values) in >> value;
  return values;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A temporary folder; restores PATH at the end.
class Gnuplot : public testing::Test {
 protected:
  Gnuplot() : dir_(fs::temp_directory_path() / ("roofgen plot-" + std::to_string(std::random_device{}()))) {
    fs::create_directories(dir_);
  }
  ~Gnuplot() override {
    fs::remove_all(dir_);
    setenv("PATH", path_.c_str(), 1);
  }
  /// Replaces gnuplot by a script, the only program in PATH.
  void replace_gnuplot(const std::string& shell_lines) const {
    const fs::path fake = dir_ / "bin" / "gnuplot";
    fs::create_directories(fake.parent_path());
    std::ofstream(fake) << "#!/bin/sh\n" << shell_lines;
    fs::permissions(fake, fs::perms::owner_all);
    setenv("PATH", fake.parent_path().c_str(), 1);
  }
  int files() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(dir_)) count += entry.is_regular_file();
    return count;
  }

  fs::path dir_;
  std::string path_ = getenv("PATH");
};

TEST(GnuplotScript, CeilingsBeginAtTheirElbow) {
  const Roofline r = sample_roofline();
  const std::string script = script_of(r);
  for (size_t i = 0; i < r.ceilings.size(); ++i) {
    const std::vector<double> line = roof_data(script, static_cast<int>(r.slopes.size() + i) + 1);
    EXPECT_NEAR(line[0], r.ceilings[i].tflops / 2.039, 1e-3 * line[0])
        << r.ceilings[i].name;  // the DRAM datasheet bandwidth in TB/s
    EXPECT_EQ(line[1], r.ceilings[i].tflops);
    EXPECT_EQ(line[3], r.ceilings[i].tflops);
  }
}

TEST(GnuplotScript, SlopesAreTheirBandwidth) {
  const Roofline r = sample_roofline();
  const std::string script = script_of(r);
  for (size_t i = 0; i < r.slopes.size(); ++i) {
    const std::vector<double> line = roof_data(script, static_cast<int>(i) + 1);
    EXPECT_NEAR(1000 * line[1] / line[0], r.slopes[i].gb_s, 1e-3 * r.slopes[i].gb_s);
    EXPECT_NEAR(1000 * line[3] / line[2], r.slopes[i].gb_s, 1e-3 * r.slopes[i].gb_s);
    EXPECT_NEAR(line[3], 624, 0.5);  // the highest ceiling
  }
}

TEST(GnuplotScript, HasEveryRoofWithItsValueAndEveryFullName) {
  const Roofline r = sample_roofline();
  const std::string script = script_of(r);
  for (const char* label : {"set label 'FP64  9.7 TFLOP/s'", "set label 'FP32  19.5 TFLOP/s'",
                            "set label 'DRAM  2039 GB/s, measured 1800 GB/s'", "set label 'L2  7219 GB/s'",
                            "set label 'shared memory  19.5 TB/s'"})
    EXPECT_THAT(script, HasSubstr(label));
  for (const Point& point : r.points) EXPECT_THAT(script, HasSubstr("set label '" + point.name + "'"));
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
  const Canvas canvas = lay_out(r, make_scene(r));
  std::vector<Box> boxes;
  for (const Canvas::Label& label : canvas.labels) {
    if (label.align != "center" || label.angle != 0) continue;
    const double height = label.size, width = 0.5 * label.size * 1.34 * static_cast<double>(label.text.size());
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
  for (const Canvas::Shape& shape : canvas.shapes) {
    double x = 0, y = 0;
    for (const auto& [px, py] : shape.corners)
      x += px / static_cast<double>(shape.corners.size()), y += py / static_cast<double>(shape.corners.size());
    if (shape.border == "#16181d") continue;  // the dots at elbows
    for (const Box& box : boxes) EXPECT_FALSE(touch(box, {x, y, x, y}));
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

TEST_F(Gnuplot, PngIsDrawn) {
  const fs::path path = dir_ / "it's a plot.png";
  const auto written = write_plot(sample_roofline(), PlotFormat::kPng, path.string(), kAnyFile);
  ASSERT_TRUE(written) << to_string(written.error());
  const auto image = test::read_png(bytes_of(path));
  ASSERT_TRUE(image);
  EXPECT_GT(image->width, 1000);
  EXPECT_GT(image->height, 500);
  for (uint32_t colour : {0x2166c4u, 0xd1600fu, 0x7a3fc2u, 0x16181du})
    EXPECT_TRUE(image->colours.count(colour)) << std::hex << colour;
  EXPECT_EQ(files(), 1);
}

TEST_F(Gnuplot, SvgHasTheNamesAsText) {
  const fs::path path = dir_ / "r.svg";
  const auto written = write_plot(sample_roofline(), PlotFormat::kSvg, path.string(), kAnyFile);
  ASSERT_TRUE(written) << to_string(written.error());
  const std::string text = bytes_of(path);
  EXPECT_THAT(text, HasSubstr("<svg"));
  EXPECT_THAT(text, HasSubstr("</svg>"));
  EXPECT_THAT(text, HasSubstr("attention flash BM=128 BN=64 stages=2"));
}

TEST_F(Gnuplot, NamesAreNeverCommands) {
  const std::string mark = (dir_ / "ran").string();
  Roofline r = sample_roofline();
  for (const std::string& evil :
       {"'; system('touch \"" + mark + "\"'); '", "`touch \"" + mark + "\"`", "\"\nsystem 'touch \"" + mark + "\"'\n",
        std::string("@x \\' {/Symbol a} _^ %s $x \x01 EOD")}) {
    r.title = r.subtitle = r.points[0].name = r.points[1].bound_by = r.ceilings[0].name = r.slopes[0].level =
        r.arrows[0].label = evil;
    const auto written = write_plot(r, PlotFormat::kPng, (dir_ / "r.png").string(), kAnyFile);
    EXPECT_TRUE(written) << to_string(written.error());
    EXPECT_FALSE(fs::exists(mark)) << evil;
  }
}

TEST_F(Gnuplot, AnythingElseIsDrawnToo) {
  Roofline many = sample_roofline();
  for (int i = 0; i < 60; ++i)
    many.points.push_back(
        {.name = "kernel " + std::to_string(i) + std::string(200, 'x'), .ai = 1.0 + i, .tflops = 1, .share = 0.01});
  Roofline thousands = many;
  for (int i = 0; i < 3000; ++i)
    thousands.points.push_back({.name = "point " + std::to_string(i), .ai = 1.0 + i, .tflops = 1});
  for (const Roofline& r : {Roofline{}, many, thousands}) {
    const auto written = write_plot(r, PlotFormat::kPng, (dir_ / "r.png").string(), kAnyFile);
    EXPECT_TRUE(written) << to_string(written.error());
  }
}

TEST_F(Gnuplot, MissingNamesThePackage) {
  setenv("PATH", dir_.c_str(), 1);
  const auto written = write_plot(sample_roofline(), PlotFormat::kPng, (dir_ / "r.png").string(), kAnyFile);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().exit, Exit::kUnavailable);
  EXPECT_THAT(written.error().message, HasSubstr("gnuplot-nox"));
  EXPECT_EQ(files(), 0);
}

TEST_F(Gnuplot, FailureIsReportedAndLeavesNoFile) {
  replace_gnuplot("echo 'first line' >&2\necho 'unknown terminal type' >&2\necho half\nexit 1\n");
  std::ofstream(dir_ / "r.png") << "old";
  const auto written = write_plot(sample_roofline(), PlotFormat::kPng, (dir_ / "r.png").string(), kAnyFile);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().exit, Exit::kFailed);
  EXPECT_THAT(written.error().message, HasSubstr("gnuplot failed: first line unknown terminal type"));
  EXPECT_EQ(bytes_of(dir_ / "r.png"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(Gnuplot, SilenceIsAFailureToo) {
  replace_gnuplot("exit 0\n");
  EXPECT_FALSE(write_plot(sample_roofline(), PlotFormat::kPng, (dir_ / "r.png").string(), kAnyFile));
  EXPECT_EQ(files(), 0);
}

TEST_F(Gnuplot, APlaceThatCannotBeWrittenIsNamed) {
  const std::string path = (dir_ / "no such folder" / "r.png").string();
  const auto written = write_plot(sample_roofline(), PlotFormat::kPng, path, kAnyFile);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().where.file, path);
  const auto folder = write_plot(sample_roofline(), PlotFormat::kPng, dir_.string(), kAnyFile);
  ASSERT_FALSE(folder);
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace roofgen::plot::plot_gnuplot_test

// The page in a real browser: no console errors, all figures drawn, every control operated. Slow, because each test
// starts a browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "plot_sample.h"
#include "roofline/plot/plot.h"
#include "tests/support/png.h"

namespace roofgen::plot::plot_browser_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class SlowBrowser : public testing::Test {
 protected:
  SlowBrowser() : dir_(fs::temp_directory_path() / ("roofgen-browser-" + std::to_string(std::random_device{}()))) {
    fs::create_directories(dir_);
  }
  ~SlowBrowser() override {
    std::error_code ignored;
    fs::remove_all(dir_, ignored);
  }

  void SetUp() override {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
      if (std::system((std::string("command -v ") + name + " >/dev/null").c_str()) == 0) {
        program_ = name;
        return;
      }
    FAIL() << "no browser to open the page in: install the package chromium";
  }

  /// Writes the page with `script` appended.
  void write(const std::string& script = {}) const {
    auto page = html_page(sample_page(), DataFiles());
    ASSERT_TRUE(page) << to_string(page.error());
    page->insert(page->rfind("</body>"), "<script>" + script + "</script>\n");
    std::ofstream(dir_ / "page.html") << *page;
  }

  /// Opens the page; the browser's output goes to `out_`, its log to `log_`.
  void open(const std::string& options) {
    const std::string home = "'" + dir_.string() + "'";
    const std::string command =
        "cd " + home + " && HOME=" + home + " timeout 120 " + program_ +
        " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars"
        " --force-device-scale-factor=1 --user-data-dir=profile --enable-logging=stderr --v=0 " +
        options + " page.html >out 2>log";
    // The browser turns the path into an address.
    const int status = std::system(command.c_str());
    out_ = bytes_of(dir_ / "out");
    log_ = bytes_of(dir_ / "log");
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << log_;
  }

  fs::path dir_;
  std::string program_, out_, log_;
};

// Four figures; eleven points, three of which belong to one kernel.
TEST_F(SlowBrowser, DrawsEverythingWithoutAnError) {
  write();
  open("--window-size=1400,1000 --dump-dom");
  EXPECT_THAT(log_, Not(HasSubstr("CONSOLE")));
  EXPECT_THAT(out_, HasSubstr("data-drawn=\"4\""));
  EXPECT_THAT(out_, HasSubstr("data-points=\"11\""));
}

TEST_F(SlowBrowser, AnErrorWouldBeSeen) {
  write("missing_function();");
  open("--dump-dom");
  EXPECT_THAT(log_, HasSubstr("CONSOLE"));
}

TEST_F(SlowBrowser, ThePictureHasTheColoursOfTheRoofs) {
  write();
  open("--window-size=1400,1000 --screenshot=page.png");
  const auto image = test::read_png(bytes_of(dir_ / "page.png"));
  ASSERT_TRUE(image);
  EXPECT_EQ(image->width, 1400);
  EXPECT_GT(image->colours.size(), 100u);
  for (uint32_t colour : {0x2166c4u, 0xd1600fu, 0x7a3fc2u, 0x16181du})
    EXPECT_TRUE(image->colours.count(colour)) << std::hex << colour;
}

TEST_F(SlowBrowser, EveryControlWorks) {
  write(R"js(
    const root = document.documentElement.dataset, figure = figures[0];
    const marks = [...figure.svg.querySelectorAll("[data-point]")];
    const shown = () => marks.filter((mark) => mark.style.display !== "none").length;
    const press = (element, type) => element.dispatchEvent(new Event(type, { bubbles: true }));
    const search = document.querySelector("input[type=search]"), slider = document.querySelector("input[type=range]");
    search.value = "GEMM";
    press(search, "input");
    root.filtered = shown();
    [...document.querySelectorAll("button")].find((button) => button.textContent === "Show all").click();
    root.all = shown();
    document.querySelector(".points tbody tr").click();
    root.isolated = shown();
    document.querySelector(".points tbody tr").click();
    slider.value = 2;
    press(slider, "input");
    root.top = shown();
    figure.showTip(2);
    root.tip = document.getElementById("tip").textContent;
    document.querySelector(".roofs tbody tr").click();
    root.before = root.theme;
    document.getElementById("theme").click();
    root.after = root.theme;
    root.roofs = document.querySelectorAll("[data-roof='0'][style*=none]").length;
  )js");
  open("--window-size=1400,1000 --dump-dom");
  EXPECT_THAT(log_, Not(HasSubstr("CONSOLE")));
  EXPECT_THAT(out_, HasSubstr("data-filtered=\"3\""));
  EXPECT_THAT(out_, HasSubstr("data-all=\"11\""));
  EXPECT_THAT(out_, HasSubstr("data-isolated=\"1\""));
  EXPECT_THAT(out_, HasSubstr("data-top=\"4\""));  // the longest kernel, and the three levels of the second
  EXPECT_THAT(out_, HasSubstr("AI at L2 is below AI at DRAM"));
  EXPECT_THAT(out_, HasSubstr("Bound byBF16 tensor"));
  EXPECT_THAT(out_, HasSubstr("data-before=\"light\""));
  EXPECT_THAT(out_, HasSubstr("data-after=\"dark\""));
  EXPECT_THAT(out_, HasSubstr("data-roofs=\"2\""));
}

}  // namespace
}  // namespace roofgen::plot::plot_browser_test

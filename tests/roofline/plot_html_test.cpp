// The page as text; plot_browser_test.cpp opens it in a browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "plot_sample.h"
#include "roofline/plot/chart_js.h"
#include "roofline/plot/plot.h"

namespace roofgen::plot::plot_html_test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The page without Chart.js.
std::string own_part(const Page& page) {
  auto text = html_page(page, DataFiles());
  EXPECT_TRUE(text) << to_string(text.error());
  if (!text) return "";
  const size_t at = text->find(chart_js());
  EXPECT_NE(at, std::string::npos);
  return text->erase(at, chart_js().size());
}

std::string data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

TEST(Html, FetchesNothing) {
  const std::string page = own_part(sample_page());
  for (size_t at = page.find("http"); at != std::string::npos; at = page.find("http", at + 1))
    EXPECT_EQ(page.substr(at, 27), "http://www.w3.org/2000/svg\"") << "the name of SVG; no address";
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  for (size_t at = page.find("url("); at != std::string::npos; at = page.find("url(", at + 1))
    EXPECT_EQ(page.substr(at, 10), "url(#head)");
}

// The element around Chart.js is an ordinary <script>.
TEST(Html, ChartJsCannotEndItsElement) {
  ASSERT_FALSE(chart_js().empty()) << "install libjs-chart.js and configure again";
  EXPECT_EQ(chart_js().find("</script"), std::string_view::npos);
  EXPECT_EQ(chart_js().find("<!--"), std::string_view::npos);
}

TEST(Html, TheDataHasEveryPointAndRoof) {
  const Json data = parse_json(data_of(own_part(sample_page())));
  EXPECT_EQ(data["schema"], "roofgen.page/1");
  const Roofline sample = sample_roofline();
  const Json& figure = data["blocks"][0];
  ASSERT_EQ(figure["points"].size(), sample.points.size());
  for (size_t i = 0; i < sample.points.size(); ++i) {
    EXPECT_EQ(figure["points"][i]["name"], sample.points[i].name);
    EXPECT_EQ(figure["points"][i]["ai"], sample.points[i].ai);
    EXPECT_EQ(figure["points"][i]["tflops"], sample.points[i].tflops);
    EXPECT_EQ(figure["points"][i]["level"], sample.points[i].level);
  }
  EXPECT_EQ(figure["ceilings"].size(), sample.ceilings.size());
  EXPECT_EQ(figure["slopes"].size(), sample.slopes.size());
  EXPECT_EQ(figure["arrows"].size(), sample.arrows.size());
  EXPECT_EQ(data["blocks"].size(), sample_page().blocks.size());
}

TEST(Html, NamesAreNeverMarkup) {
  const std::string evil = "</script><!--<script>alert(1)</script>&amp;\"'\u2028";
  Page page = sample_page();
  page.title = page.facts[0].first = page.facts[0].second = page.warnings[0] = evil;
  std::get<Roofline>(page.blocks[0]).title = std::get<Roofline>(page.blocks[0]).subtitle = evil;
  std::get<Roofline>(page.blocks[0]).points[0].name = evil;
  std::get<TableBlock>(page.blocks[4]) = {evil, {evil}, {{evil}}};
  const std::string text = own_part(page);
  EXPECT_THAT(text, Not(HasSubstr("<!--")));
  EXPECT_THAT(text, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(text, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(text, HasSubstr("<title>&lt;/script&gt;&lt;!--"));
  const Json data = parse_json(data_of(text));
  EXPECT_EQ(data["title"], evil);
  EXPECT_EQ(data["blocks"][0]["points"][0]["name"], evil);
}

TEST(Html, AnyBytesGiveValidJson) {
  Page page = sample_page();
  std::get<Roofline>(page.blocks[0]).points[0].name = "\xff\xfe\x01";
  std::get<Roofline>(page.blocks[0]).points[1].ai = std::numeric_limits<double>::quiet_NaN();
  const Json data = parse_json(page_json(page));
  EXPECT_TRUE(data["blocks"][0]["points"][1]["ai"].is_null());
  EXPECT_NE(data["blocks"][0]["points"][1]["missing"], "");
}

TEST(Html, BandsAreReadAgainAndPagesWithoutOnesToo) {
  Json data = parse_json(page_json(sample_page()));
  Json& series = data["blocks"][2]["series"];
  EXPECT_FALSE(series[0].contains("band"));
  ASSERT_EQ(series[1]["band"].size(), series[1]["points"].size());
  const auto page = read_page(json_line(data), "p.json");
  ASSERT_TRUE(page) << to_string(page.error());
  EXPECT_EQ(parse_json(page_json(*page)), data);
  series[1]["band"].erase(0);
  const auto shorter = read_page(json_line(data), "p.json");
  ASSERT_FALSE(shorter);
  EXPECT_THAT(shorter.error().message, HasSubstr("a band that does not have both ends at each point"));
}

TEST(Html, ArrowsToNowhereAreLeftOut) {
  Page page;
  Roofline r = sample_roofline();
  r.arrows = {{0, 999, "x"}, {998, 0, "y"}, {0, 1, "z"}};
  page.blocks.push_back(r);
  const Json data = parse_json(page_json(page));
  ASSERT_EQ(data["blocks"][0]["arrows"].size(), 1u);
  EXPECT_EQ(data["blocks"][0]["arrows"][0]["label"], "z");
}

TEST(Html, AcceptsNoPointsAndThousandsOfPoints) {
  EXPECT_TRUE(html_page(Page{}, DataFiles()));
  Page page = sample_page();
  for (int i = 0; i < 10000; ++i)
    std::get<Roofline>(page.blocks[0])
        .points.push_back({.name = "point " + std::to_string(i), .ai = 1.0 + i, .tflops = 1});
  const auto text = html_page(page, DataFiles());
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(parse_json(data_of(*text))["blocks"][0]["points"].size(), sample_roofline().points.size() + 10000);
}

TEST(Html, TablesAndFactsAreReadableWithoutTheScript) {
  const std::string text = own_part(sample_page());
  EXPECT_THAT(text, HasSubstr("<dt>device</dt><dd>a100-sxm-80 (sm_80, 108 SMs)</dd>"));
  EXPECT_THAT(text, HasSubstr("<li>R09: the working set fits L2"));
  EXPECT_THAT(text, HasSubstr("<td>qkv</td><td>1.2 G</td><td>33 MB</td>"));
}

}  // namespace
}  // namespace roofgen::plot::plot_html_test

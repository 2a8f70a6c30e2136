// What is printed and drawn of a model: one struct, three ways.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "model_support.h"
#include "roofline/views/views.h"

namespace roofgen {
namespace {

struct Sweep {
  Model model;
  Device device;
  ModelView view{model, device, {}, {}, {}, 0};

  Sweep(const std::string& name, const std::string& gpu, std::vector<int64_t> batches, std::vector<int64_t> lengths)
      : model(model_named(name)), device(device_named(gpu)), view{model, device, std::move(batches), std::move(lengths), {}, *parameter_count(model)} {
    for (int64_t length : view.lengths)
      for (int64_t batch : view.batches) {
        ModelRequest q;
        q.batch = batch;
        q.length = length;
        view.runs.push_back(run_of(model, device, q));
      }
  }
};

template <class T>
std::vector<const T*> blocks(const plot::Page& page) {
  std::vector<const T*> out;
  for (const plot::Block& b : page.blocks)
    if (const T* block = std::get_if<T>(&b)) out.push_back(block);
  return out;
}

TEST(ModelViews, JsonHasTheSeries) {
  const Sweep s("generic-7b", "h100-sxm", {1, 2, 4, 8, 16, 32, 64, 128, 256}, {2048});
  const auto j = nlohmann::json::parse(model_json(s.view));
  EXPECT_EQ(j.at("schema"), "roofgen.model-run.1");
  std::string ais;
  for (const auto& item : j.at("series")) {
    EXPECT_EQ(item.at("kv"), 2048);
    EXPECT_DOUBLE_EQ(item.at("tokens_per_s").get<double>(), 1e3 / item.at("ms_per_request").get<double>());
    EXPECT_EQ(item.at("fits").get<bool>(), item.at("batch").get<int>() <= 62);
    char text[16];
    std::snprintf(text, sizeof text, "%.2f ", item.at("arithmetic_intensity").get<double>());
    ais += text;
  }
  EXPECT_EQ(ais, "1.00 1.86 3.25 5.19 7.41 9.43 10.92 11.85 12.38 ");
  EXPECT_FALSE(j.contains("operators"));
  EXPECT_EQ(j.at("warnings").size(), 3u);
}

TEST(ModelViews, JsonOfOnePointHasItsOperators) {
  const Sweep s("deepseek-r1", "b200", {64}, {2048});
  const auto j = nlohmann::json::parse(model_json(s.view));
  double us = 0;
  for (const auto& o : j.at("operators")) us += o.at("time_us").get<double>();
  EXPECT_NEAR(us / 1e3, j.at("series")[0].at("step_ms").get<double>(), 1e-6);
  EXPECT_NEAR(j.at("parameters").get<double>(), 671e9, 0.01 * 671e9);
}

TEST(ModelViews, PageOfASweepHasLinesAndAHeatmap) {
  const Sweep s("generic-7b", "h100-sxm", {1, 8, 64}, {256, 2048});
  const plot::Page page = model_page(s.view);
  const auto lines = blocks<plot::Lines>(page);
  ASSERT_EQ(lines.size(), 2u);
  ASSERT_EQ(lines[0]->series.size(), 2u);
  EXPECT_EQ(lines[0]->series[1].name, "kv 2048");
  EXPECT_NEAR(lines[0]->series[1].points.at(1).second, 5.19, 0.005);
  ASSERT_EQ(lines[0]->marks.size(), 1u);
  EXPECT_NEAR(lines[0]->marks[0].second, 295.2, 0.05);
  const auto heatmaps = blocks<plot::Heatmap>(page);
  ASSERT_EQ(heatmaps.size(), 1u);
  EXPECT_NEAR(heatmaps[0]->values.at(2).at(0), 38.38, 0.005);  // [batch][kv]
  EXPECT_EQ(heatmaps[0]->x_labels, (std::vector<std::string>{"256", "2048"}));
}

TEST(ModelViews, PageShowsOperatorsBelowTheirRoofs) {
  const Sweep s("llama-3-8b", "h100-sxm", {16}, {2048});
  const plot::Page page = model_page(s.view);
  const auto rooflines = blocks<plot::Roofline>(page);
  ASSERT_EQ(rooflines.size(), 1u);
  EXPECT_GE(rooflines[0]->points.size(), 9u);
  for (const plot::Point& p : rooflines[0]->points) {
    EXPECT_EQ(p.origin, Origin::kModel);
    EXPECT_NEAR(p.tflops, p.roof_tflops * (p.bound_by == "DRAM" ? 0.8 : 0.7), 1e-9 * p.roof_tflops) << p.name;
    EXPECT_LE(p.roof_tflops * 1e12, p.ai * 3352e9 * (1 + 1e-9)) << p.name;
  }
  EXPECT_TRUE(blocks<plot::Lines>(page).empty());
  EXPECT_EQ(blocks<plot::Bars>(page).size(), 1u);
}

}  // namespace
}  // namespace roofgen

// Text, JSON and page of a model, from one struct.
#include <cstdio>

#include "base/json.h"
#include "model_support.h"
#include "roofline/views/views.h"

namespace roofgen::model_views_test {
namespace {

struct Sweep {
  Model model;
  Device device;
  ModelView view{model, device, {}, {}, {}, 0};

  Sweep(const std::string& name, const std::string& gpu, std::vector<int64_t> batches, std::vector<int64_t> lengths)
      : model(model_named(name)),
        device(device_named(gpu)),
        view{model, device, std::move(batches), std::move(lengths), {}, *parameter_count(model)} {
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
  const auto j = parse_json(model_json(s.view));
  EXPECT_EQ(j.at("schema"), "roofgen.model-run.1");
  std::string ais;
  for (const auto& item : j.at("series")) {
    EXPECT_EQ(item.at("kv"), 2048);
    // Every operator is memory-bound. Per layer: 12 d^2 weights and, for each sequence, a cache of 2 kv d and 14
    // vectors of d, with two bytes each at 80 % of 3352 GB/s.
    const double batch = item.at("batch").get<double>(), d = 4096;
    const double seconds = 32 * 2 * (12 * d * d + batch * d * (2 * 2048 + 14)) / (0.8 * 3352e9);
    EXPECT_NEAR(item.at("tokens_per_s").get<double>(), batch / seconds, 1e-9 * batch / seconds);
    EXPECT_NEAR(item.at("step_ms").get<double>(), 1e3 * seconds, 1e-9 * 1e3 * seconds);
    EXPECT_NEAR(item.at("ms_per_request").get<double>(), 1e3 * seconds / batch, 1e-9 * 1e3 * seconds / batch);
    EXPECT_NEAR(item.at("assumed_ridge").get<double>(), 989.4e12 * 0.7 / (3352e9 * 0.8), 0.01);
    EXPECT_EQ(item.at("fits").get<bool>(), item.at("batch").get<int>() <= 62);
    char text[16];
    std::snprintf(text, sizeof text, "%.2f ", item.at("arithmetic_intensity").get<double>());
    ais += text;
  }
  EXPECT_EQ(ais, "1.00 1.86 3.25 5.19 7.41 9.43 10.92 11.85 12.38 ");
  EXPECT_FALSE(j.contains("operators"));
  EXPECT_EQ(j.at("warnings").size(), 3u);
}

TEST(ModelViews, TextAndJsonNoteWidenedOperandsOnce) {
  const Sweep s("llama-3-8b", "v100-sxm2", {1, 2}, {256, 512});
  const std::string what = "v100-sxm2 has no bf16 matrix units";
  const auto j = parse_json(model_json(s.view));
  size_t notes = 0;
  for (const auto& note : j.at("notes")) notes += note.get<std::string>().find(what) != std::string::npos;
  EXPECT_EQ(notes, 1u);
  const std::string text = model_text(s.view);
  const size_t at = text.find("note      " + what);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_EQ(text.find(what, at + 20), std::string::npos);
}

TEST(ModelViews, TextAndPageHaveTheSameTables) {
  const Sweep s("llama-3-8b", "h100-sxm", {1, 16}, {2048});
  const plot::Page page = model_page(s.view);
  const auto tables = blocks<plot::TableBlock>(page);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0]->title, "Operators");
  EXPECT_EQ(tables[0]->rows.front().front(), "gate, up");  // the longest
  ASSERT_EQ(tables[1]->rows.size(), 2u);
  const std::string text = model_text(s.view);
  for (const auto& row : tables[1]->rows)
    for (const std::string& cell : row) EXPECT_NE(text.find(cell), std::string::npos) << cell;
}

TEST(ModelViews, WithoutRunsThereIsNothingToShow) {
  const Sweep s("generic-7b", "h100-sxm", {}, {});
  EXPECT_TRUE(model_page(s.view).blocks.empty());
  EXPECT_NE(model_text(s.view).find("nothing was run"), std::string::npos);
  EXPECT_TRUE(parse_json(model_json(s.view)).at("series").empty());
}

TEST(ModelViews, TheGridStatesTheAssumedRidge) {
  Sweep s("generic-7b", "h100-sxm", {1, 8}, {256, 2048});
  const std::string what = "With these assumptions the ridge is at 258.3";
  EXPECT_NE(model_text(s.view).find("258.3"), std::string::npos);
  const plot::Page assumed = model_page(s.view);
  EXPECT_NE(blocks<plot::Heatmap>(assumed).at(0)->title.find(what), std::string::npos);
  for (ModelRun& r : s.view.runs) r.request.bandwidth_efficiency = r.request.compute_efficiency = 0.9;
  EXPECT_EQ(model_text(s.view).find("With these assumptions"), std::string::npos);
  const plot::Page same = model_page(s.view);
  EXPECT_EQ(blocks<plot::Heatmap>(same).at(0)->title, "Arithmetic intensity by batch and cache length");
}

TEST(ModelViews, JsonOfOnePointHasItsOperators) {
  const Sweep s("deepseek-r1", "b200", {64}, {2048});
  const auto j = parse_json(model_json(s.view));
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
}  // namespace roofgen::model_views_test

// Every device file against docs/use/devices.md, and the stated peaks against the rates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/json.h"
#include "generator/generate.h"

namespace roofgen::devices_test {
namespace {

const std::set<std::string> kUnits = {
    "count",  "bytes",     "bits",         "MHz",          "GB/s",        "TFLOP/s",         "us",
    "cycles", "bytes/clk", "bytes/clk/SM", "lanes/clk/SM", "FLOP/clk/SM", "warp-inst/clk/SM"};
const std::set<std::string> kOrigins = {"datasheet", "measured", "model"};

Json load(const std::string& name) {
  const auto text = DataFiles().load("devices/" + name + ".json");
  EXPECT_TRUE(text) << to_string(text.error());
  return parse_json(*text);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const std::string& file : DataFiles().list("devices/")) {
    EXPECT_TRUE(file.ends_with(".json")) << file;
    names.push_back(file.substr(8, file.size() - 8 - 5));
  }
  return names;
}

/// The cells of a device and of its architecture.
std::map<std::string, double> values(const std::string& name) {
  const Json device = load(name);
  std::map<std::string, double> values;
  if (device.contains("extends")) values = devices_test::values(device["extends"].get<std::string>());
  for (const auto& [cell, body] : device["cells"].items()) body["value"].get_to(values[cell]);
  return values;
}

bool is_product(const std::string& name) { return !name.starts_with("sm_"); }

/// A row of a table compiled from vendors' figures: bf16 (V100: fp16) with FP32 accumulation, the ridge rounded to a
/// whole number, and the special-function roof where the table has one.
struct Row {
  const char* name;
  int sms;
  double dram_gb_s;
  double tensor_tflops;
  int ridge;            ///< FLOP per byte of DRAM
  double exp_tera = 0;  ///< 10^12 exponentials per second at `exp_clock`; 0: not in the table
  const char* exp_clock = "clock_fp32_mhz";
};
constexpr Row kTable[] = {
    {"v100-sxm2", 80, 900, 125, 139, 1.96},
    {"a100-sxm-40", 108, 1555, 312, 201, 2.44},
    {"a100-pcie-40", 108, 1555, 312, 201, 2.44},
    {"a100-sxm-80", 108, 2039, 312, 153, 2.44},
    {"a100-pcie-80", 108, 1935, 312, 161, 2.44},
    {"a10", 72, 600, 125, 208},
    {"l4", 58, 300, 121, 403},
    {"l40s", 142, 864, 362, 419},
    {"rtx-2080-ti", 68, 616, 53.8, 87},
    {"rtx-a4000", 48, 448, 76.7, 171},
    {"rtx-3090", 82, 936, 71, 76},
    {"rtx-4090", 128, 1008, 165.2, 164, 5.2},
    {"rtx-5090", 170, 1792, 209.5, 117, 6.5},
    {"rtx-5080", 84, 960, 112.6, 117, 3.5},
    {"rtx-pro-6000", 188, 1792, 500.5, 279},
    {"dgx-spark", 48, 273, 124, 454},
    {"thor", 20, 273, 258.8, 948},
    // Hopper: at the tensor clock, at which exponentials and matrix work are balanced.
    {"h100-sxm", 132, 3352, 989.4, 295, 3.86, "clock_tensor_mhz"},
    {"h100-pcie", 114, 2000, 756, 378},
    {"h100-nvl", 132, 3938, 835.5, 212},
    {"h200-sxm", 132, 4800, 989.4, 206, 3.86, "clock_tensor_mhz"},
    {"gh200-96", 132, 4000, 989.4, 247},
    {"gh200-144", 132, 4900, 989.4, 202},
    {"b200", 148, 7672, 2250, 293, 4.65},
    {"gb200", 152, 8000, 2500, 312, 5.0},
    {"b300", 148, 8000, 2250, 281},
    // NVIDIA publishes 10.7 for the full chip: 160 SMs x 32 x 2.09 GHz. Products have 152 SMs.
    {"gb300", 152, 8000, 2500, 312, 10.0},
};

TEST(Devices, MatchTheTable) {
  std::set<std::string> products;
  for (const std::string& name : names())
    if (is_product(name)) products.insert(name);
  for (const Row& row : kTable) {
    SCOPED_TRACE(row.name);
    ASSERT_EQ(products.erase(row.name), 1u);
    const auto cells = values(row.name);
    EXPECT_EQ(cells.at("sms"), row.sms);
    EXPECT_EQ(cells.at("dram_gb_s"), row.dram_gb_s);
    const double tensor = cells.count("peak_bf16_tflops") ? cells.at("peak_bf16_tflops") : cells.at("peak_fp16_tflops");
    EXPECT_EQ(tensor, row.tensor_tflops);
    EXPECT_NEAR(1e3 * tensor / cells.at("dram_gb_s"), row.ridge, 0.5);
    if (row.exp_tera > 0) {
      EXPECT_NEAR(cells.at("sms") * cells.at("mufu_lanes") * cells.at(row.exp_clock) * 1e-6, row.exp_tera,
                  0.01 * row.exp_tera);
    }
  }
  EXPECT_TRUE(products.empty()) << *products.begin() << " has no row";
}

TEST(Devices, GeForceAccumulatesInFp32AtHalfRate) {
  for (const char* name : {"rtx-3090", "rtx-4090", "rtx-5090", "rtx-5080"}) {
    const auto cells = values(name);
    EXPECT_NEAR(cells.at("peak_fp16_acc16_tflops") / cells.at("peak_fp16_tflops"), 2, 0.01) << name;
  }
  for (const char* name : {"a10", "l4", "l40s", "a100-sxm-80", "h200-sxm"}) {
    const auto cells = values(name);
    EXPECT_EQ(cells.at("peak_fp16_acc16_tflops"), cells.at("peak_fp16_tflops")) << name;
  }
}

TEST(Devices, HaveOnlyTheNumberFormatsOfTheirGeneration) {
  const auto has = [](const char* name, const char* cell) { return values(name).count(cell) != 0; };
  EXPECT_FALSE(has("v100-sxm2", "peak_bf16_tflops"));
  EXPECT_FALSE(has("v100-sxm2", "peak_tf32_tflops"));
  for (const char* name : {"a100-sxm-80", "a10", "rtx-3090"}) EXPECT_FALSE(has(name, "peak_fp8_tflops")) << name;
  EXPECT_TRUE(has("a100-sxm-80", "peak_int4_tflops"));
  for (const char* name : {"h100-sxm", "h200-sxm", "b200"}) EXPECT_FALSE(has(name, "peak_int4_tflops")) << name;
  for (const char* name :
       {"b200", "gb200", "b300", "gb300", "rtx-5090", "rtx-5080", "rtx-pro-6000", "dgx-spark", "thor"})
    for (const char* cell : {"peak_fp4_tflops", "peak_fp6_tflops", "peak_mxfp8_tflops"})
      EXPECT_TRUE(has(name, cell)) << name << ' ' << cell;
  // On its CUDA cores, an A100 does bf16 at half the rate of fp16, and 8-bit products only as dp4a.
  const auto a100 = values("a100-sxm-80");
  EXPECT_EQ(a100.at("peak_fp16_cuda_tflops"), 78);
  EXPECT_EQ(a100.at("peak_bf16_cuda_tflops"), 39);
  EXPECT_EQ(a100.at("peak_int8_cuda_tflops"), 78);
}

TEST(Devices, FollowTheSchema) {
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    const Json device = load(name);
    EXPECT_EQ(device.at("schema"), "roofgen.device/1");
    EXPECT_EQ(device.at("name"), name);
    for (const auto& [member, body] : device.items())
      EXPECT_TRUE(std::set<std::string>({"schema", "name", "title", "extends", "driver_names", "cells"}).count(member))
          << member;
    if (device.contains("extends")) {
      EXPECT_TRUE(device.at("extends").get<std::string>().starts_with("sm_")) << "products extend architectures";
    }
    EXPECT_EQ(is_product(name), device.contains("driver_names"));
    for (const auto& [cell_name, cell] : device.at("cells").items()) {
      SCOPED_TRACE(cell_name);
      EXPECT_EQ(cell.size(), 4u);
      ASSERT_TRUE(cell.at("value").is_number());
      EXPECT_TRUE(std::isfinite(cell.at("value").get<double>()));
      EXPECT_GE(cell.at("value").get<double>(), 0);
      EXPECT_TRUE(kUnits.count(cell.at("unit").get<std::string>())) << cell.at("unit");
      EXPECT_TRUE(kOrigins.count(cell.at("origin").get<std::string>())) << cell.at("origin");
      EXPECT_GE(cell.at("source").get<std::string>().size(), 8u);
    }
  }
}

TEST(Devices, SustainedNeverExceedsDatasheet) {
  for (const std::string& name : names()) {
    if (!is_product(name)) continue;
    SCOPED_TRACE(name);
    const auto cells = values(name);
    EXPECT_LE(cells.at("dram_sustained_gb_s"), cells.at("dram_gb_s"));
    EXPECT_LE(cells.at("l2_sustained_gb_s"), cells.at("l2_gb_s"));
    EXPECT_LE(cells.at("clock_sustained_mhz"), cells.at("clock_tensor_mhz"));
    EXPECT_LE(cells.at("clock_tensor_mhz"), cells.at("clock_fp32_mhz"));
    EXPECT_LE(cells.at("smem_per_block") + cells.at("smem_reserved_per_block"), cells.at("smem_per_sm"));
  }
}

TEST(Devices, StatedPeaksFollowFromTheRates) {
  for (const std::string& name : names()) {
    if (!is_product(name)) continue;
    SCOPED_TRACE(name);
    const auto cells = values(name);
    const auto rate = [&cells](const std::string& cell) { return cells.count(cell) ? cells.at(cell) : 0.0; };
    int checked = 0;
    for (const auto& [cell, stated] : cells) {
      if (!cell.starts_with("peak_")) continue;
      SCOPED_TRACE(cell);
      const std::string kind = cell.substr(5, cell.size() - 5 - std::string("_tflops").size());
      double flops_per_clk = 0, mhz = cells.at("clock_fp32_mhz");
      if (kind == "fp32" || kind == "fp64") {
        flops_per_clk = 2 * rate(kind + "_lanes");
      } else if (kind == "fp16_cuda" || kind == "bf16_cuda") {
        flops_per_clk = 2 * rate(kind.substr(0, 4) + "_lanes");
      } else if (kind == "int8_cuda") {
        flops_per_clk = 8 * rate("dp4a_lanes");
      } else if (kind == "fp64_tensor") {
        flops_per_clk = rate("mma_sync_flops_per_clk_fp64");
      } else {
        flops_per_clk = std::max({rate("mma_sync_flops_per_clk_" + kind), rate("wgmma_flops_per_clk_" + kind),
                                  rate("tcgen05_flops_per_clk_" + kind)});
        mhz = cells.at("clock_tensor_mhz");
      }
      const double computed = cells.at("sms") * flops_per_clk * mhz * 1e-6;
      EXPECT_NEAR(computed, stated, 0.005 * stated);
      ++checked;
    }
    EXPECT_GE(checked, 6);  // the V100 has the fewest
  }
}

TEST(Devices, MmaSyncOnHopperIsItsOwnCeiling) {
  const auto hopper = values("sm_90");
  for (const char* dtype : {"bf16", "fp16", "tf32"})
    EXPECT_NEAR(hopper.at(std::string("mma_sync_flops_per_clk_") + dtype) /
                    hopper.at(std::string("wgmma_flops_per_clk_") + dtype),
                2.0 / 3.0, 1e-6);
}

}  // namespace
}  // namespace roofgen::devices_test

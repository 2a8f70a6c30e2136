// Every file in devices/ against docs/devices.md, and the stated peaks against the rates.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "generator/generate.h"

namespace roofgen {
namespace {

using nlohmann::json;

const std::set<std::string> kUnits = {"count",        "bytes",        "MHz",         "GB/s",
                                      "TFLOP/s",      "us",           "cycles",      "bytes/clk",
                                      "bytes/clk/SM", "lanes/clk/SM", "FLOP/clk/SM", "warp-inst/clk/SM"};
const std::set<std::string> kOrigins = {"datasheet", "measured", "model"};

json load(const std::string& name) {
  const auto text = DataFiles().load("devices/" + name + ".json");
  EXPECT_TRUE(text) << to_string(text.error());
  return json::parse(*text);
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const std::string& file : DataFiles().list("devices/")) {
    EXPECT_TRUE(file.ends_with(".json")) << file;
    names.push_back(file.substr(8, file.size() - 8 - 5));
  }
  return names;
}

/// The cells' values of a device with those of its architecture below them.
std::map<std::string, double> values(const std::string& name) {
  const json device = load(name);
  std::map<std::string, double> values;
  if (device.contains("extends")) values = roofgen::values(device["extends"]);
  for (const auto& [cell, body] : device["cells"].items()) values[cell] = body["value"];
  return values;
}

bool is_product(const std::string& name) { return load(name).contains("extends"); }

TEST(Devices, AreShipped) {
  const std::vector<std::string> all = names();
  for (const char* name : {"sm_80", "sm_90", "a100-sxm-80", "h100-sxm", "h200-sxm"})
    EXPECT_NE(std::find(all.begin(), all.end(), name), all.end()) << name;
}

TEST(Devices, FollowTheSchema) {
  for (const std::string& name : names()) {
    SCOPED_TRACE(name);
    const json device = load(name);
    EXPECT_EQ(device.at("schema"), "roofgen.device/1");
    EXPECT_EQ(device.at("name"), name);
    for (const auto& [member, body] : device.items())
      EXPECT_TRUE(std::set<std::string>({"schema", "name", "title", "extends", "cells"}).count(member))
          << member;
    if (is_product(name)) {
      EXPECT_FALSE(load(device.at("extends")).contains("extends")) << "more than one level";
    }
    for (const auto& [cell_name, cell] : device.at("cells").items()) {
      SCOPED_TRACE(cell_name);
      EXPECT_EQ(cell.size(), 4u);
      ASSERT_TRUE(cell.at("value").is_number());
      EXPECT_TRUE(std::isfinite(cell.at("value").get<double>()));
      EXPECT_GE(cell.at("value").get<double>(), 0);
      EXPECT_TRUE(kUnits.count(cell.at("unit"))) << cell.at("unit");
      EXPECT_TRUE(kOrigins.count(cell.at("origin"))) << cell.at("origin");
      EXPECT_GE(cell.at("source").get<std::string>().size(), 8u);
    }
  }
}

TEST(Devices, ProductsHaveWhatTheRoofsNeed) {
  for (const std::string& name : names()) {
    if (!is_product(name)) continue;
    SCOPED_TRACE(name);
    const auto cells = values(name);
    for (const char* cell : {"arch",
                             "sms",
                             "clock_tensor_mhz",
                             "clock_fp32_mhz",
                             "clock_sustained_mhz",
                             "memory_bytes",
                             "dram_gb_s",
                             "dram_sustained_gb_s",
                             "l2_bytes",
                             "l2_gb_s",
                             "l2_sustained_gb_s",
                             "launch_us",
                             "smem_per_block",
                             "smem_per_sm",
                             "regs_per_sm",
                             "max_threads_per_sm",
                             "max_warps_per_sm",
                             "max_ctas_per_sm",
                             "reg_alloc_unit",
                             "smem_reserved_per_block",
                             "smem_alloc_unit",
                             "issue_per_clk",
                             "fp32_lanes",
                             "int_lanes",
                             "mufu_lanes",
                             "smem_bytes_per_clk",
                             "l2_bytes_per_clk_sm",
                             "mma_sync_flops_per_clk_bf16",
                             "mma_sync_flops_per_clk_fp16"})
      EXPECT_TRUE(cells.count(cell)) << cell;
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
  int checked = 0;
  for (const std::string& name : names()) {
    if (!is_product(name)) continue;
    SCOPED_TRACE(name);
    const auto cells = values(name);
    const auto rate = [&cells](const std::string& cell) { return cells.count(cell) ? cells.at(cell) : 0.0; };
    for (const auto& [cell, stated] : cells) {
      if (!cell.starts_with("peak_")) continue;
      SCOPED_TRACE(cell);
      const std::string kind = cell.substr(5, cell.size() - 5 - std::string("_tflops").size());
      double flops_per_clk = 0, mhz = cells.at("clock_fp32_mhz");
      if (kind == "fp32" || kind == "fp64") {
        flops_per_clk = 2 * rate(kind + "_lanes");
      } else if (kind == "fp64_tensor") {
        flops_per_clk = rate("mma_sync_flops_per_clk_fp64");
      } else {
        flops_per_clk = std::max(rate("mma_sync_flops_per_clk_" + kind), rate("wgmma_flops_per_clk_" + kind));
        mhz = cells.at("clock_tensor_mhz");
      }
      const double computed = cells.at("sms") * flops_per_clk * mhz * 1e-6;
      EXPECT_NEAR(computed, stated, 0.005 * stated);
      ++checked;
    }
  }
  EXPECT_GE(checked, 23);  // seven kinds of peak on each of three products, and fp8 on the two Hopper ones
}

TEST(Devices, MmaSyncOnHopperIsItsOwnCeiling) {
  const auto hopper = values("sm_90");
  for (const char* dtype : {"bf16", "fp16", "tf32"})
    EXPECT_NEAR(hopper.at(std::string("mma_sync_flops_per_clk_") + dtype) /
                    hopper.at(std::string("wgmma_flops_per_clk_") + dtype),
                2.0 / 3.0, 1e-6);
}

}  // namespace
}  // namespace roofgen

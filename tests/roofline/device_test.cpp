#include "roofline/device.h"

#include <gtest/gtest.h>

#include <fstream>

#include "roofline/device_cells.h"
#include "tests/roofline/temp_devices.h"

namespace roofgen::device_test {

namespace {

Device h200() { return *load_device(DataFiles(), "h200-sxm"); }

}  // namespace

TEST(Device, InheritsFromItsArchitecture) {
  const Device d = h200();
  EXPECT_EQ(d.arch, "sm_90");
  EXPECT_EQ(d.integer("sms"), 132);
  EXPECT_EQ(d.integer("smem_per_block"), 232448);
  EXPECT_FALSE(d.cells.at("dram_gb_s").source.empty());
}

TEST(Device, UnknownNameSuggestsTheNearest) {
  const auto d = load_device(DataFiles(), "h20-sxm");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().exit, Exit::kUsage);
  EXPECT_NE(d.error().message.find("did you mean \"h200-sxm\"?"), std::string::npos) << d.error().message;
}

TEST(Device, BrokenJsonNamesThePlace) {
  const TempDevices temp("broken", "{\n  \"cells\": {,}\n}\n");
  const auto d = load_device(temp.files(), "broken");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().where.line, 2);
  EXPECT_EQ(d.error().where.col, 13);
}

TEST(Device, MissingCellIsNamed) {
  const TempDevices temp("partial", R"({"schema": "roofgen.device/1", "name": "partial", "extends": "sm_90",
    "cells": {"sms": {"value": 4, "unit": "count", "origin": "datasheet", "source": "this unit test"}}})");
  const auto d = load_device(temp.files(), "partial");
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().message, "device partial has no cell \"clock_fp32_mhz\"");
}

TEST(Device, ExtendingItselfIsAnError) {
  const TempDevices temp("loop", R"({"schema": "roofgen.device/1", "name": "loop", "extends": "loop", "cells": {}})");
  const auto d = load_device(temp.files(), "loop");
  ASSERT_FALSE(d);
  EXPECT_NE(d.error().message.find("extends itself"), std::string::npos) << d.error().message;
}

TEST(Device, EveryOneLoads) {
  const DataFiles files;
  for (const std::string& name : device_names(files)) {
    const auto d = load_device(files, name);
    ASSERT_TRUE(d) << to_string(d.error());
    EXPECT_FALSE(d->title.empty());
    EXPECT_FALSE(d->driver_names.empty()) << name;
    for (const auto& [cell, body] : d->cells) EXPECT_FALSE(body.source.empty()) << name << ' ' << cell;
  }
}

TEST(Device, OnlySomeCanBeTuned) {
  const DataFiles files;
  for (const char* name :
       {"a100-sxm-40", "a100-pcie-40", "a100-sxm-80", "a100-pcie-80", "a10",       "l4",    "l40s",     "rtx-3090",
        "rtx-4090",    "rtx-5090",     "rtx-5080",    "rtx-pro-6000", "dgx-spark", "thor",  "h100-sxm", "h100-pcie",
        "h100-nvl",    "h200-sxm",     "gh200-96",    "gh200-144",    "b200",      "gb200", "b300",     "gb300"}) {
    const auto ok = tunable(*load_device(files, name));
    EXPECT_TRUE(ok) << ok.error().message;
  }
  const auto v100 = tunable(*load_device(files, "v100-sxm2"));
  ASSERT_FALSE(v100);
  EXPECT_EQ(v100.error().exit, Exit::kUnavailable);
  EXPECT_EQ(v100.error().message, "the kernels need sm_80 or newer; v100-sxm2 is sm_70: analysis only");
  Device without = *load_device(files, "b200");
  without.cells.erase("mma_sync_flops_per_clk_bf16");
  const auto missing = tunable(without);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "b200 is for analysis only: it has no mma_sync_flops_per_clk_bf16");
}

TEST(Device, EveryCellIsDocumented) {
  std::ifstream in(std::string(ROOFGEN_SOURCE_DIR) + "/docs/use/devices.md");
  const std::string docs{std::istreambuf_iterator<char>(in), {}};
  const auto named = [&](const std::string& text) { return docs.find("`" + text + "`") != std::string::npos; };
  for (const CellSpec& spec : cell_specs()) {
    const std::string name(spec.name);
    const size_t rate = name.find("_flops_per_clk_");
    if (name.starts_with("peak_")) {
      EXPECT_TRUE(named(name.substr(5, name.size() - 12))) << name;
    } else if (rate != std::string::npos) {
      EXPECT_TRUE(named(name.substr(0, rate) + "_flops_per_clk_<kind>")) << name;
    } else {
      EXPECT_TRUE(named(name)) << name;
    }
    EXPECT_TRUE(named(std::string(spec.unit))) << spec.unit;
  }
}

// Numbers computed by hand from the allocation rules in cuda_occupancy.h.
TEST(Occupancy, ByRegistersSharedMemoryThreadsAndCtas) {
  const Device d = h200();
  // 168 registers x 32 = 5376 = 21 x 256; 4 warps take 21504; 65536 / 21504 = 3.
  const Occupancy regs = occupancy(d, 168, 49152, 128);
  EXPECT_EQ(regs.ctas_per_sm, 3);
  EXPECT_EQ(regs.limited_by, "registers");
  EXPECT_DOUBLE_EQ(regs.fraction, 12.0 / 64);
  // 233472 / (114688 + 1024) = 2.01.
  EXPECT_EQ(occupancy(d, 32, 114688, 128).ctas_per_sm, 2);
  EXPECT_EQ(occupancy(d, 32, 114688, 128).limited_by, "shared memory");
  EXPECT_EQ(occupancy(d, 32, 0, 1024).ctas_per_sm, 2);
  EXPECT_EQ(occupancy(d, 16, 0, 32).ctas_per_sm, 32);
  EXPECT_EQ(occupancy(d, 255, 0, 1024).ctas_per_sm, 0);
}

}  // namespace roofgen::device_test

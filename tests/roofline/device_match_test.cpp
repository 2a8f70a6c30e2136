// Turns real GPUs into devices, with hand-written driver attributes.
#include <gtest/gtest.h>

#include "roofline/device.h"
#include "tests/roofline/temp_devices.h"

namespace roofgen::device_match_test {
namespace {

DriverFacts h200() {
  DriverFacts f;
  f.name = "NVIDIA H200";
  f.cc = 90;
  f.sms = 132;
  f.bus_bits = 6016;
  f.memory_clock_khz = 3201000;
  f.sm_clock_khz = 1980000;
  f.l2_bytes = 62914560;
  f.memory_bytes = 150110011392;
  f.smem_per_sm = 233472;
  f.smem_per_block = 232448;
  f.smem_reserved_per_block = 1024;
  f.regs_per_sm = 65536;
  f.max_threads_per_sm = 2048;
  f.max_ctas_per_sm = 32;
  return f;
}

DriverFacts h100() {
  DriverFacts f = h200();
  f.name = "NVIDIA H100 80GB HBM3";
  f.bus_bits = 5120;
  f.memory_clock_khz = 2619000;
  f.l2_bytes = 52428800;
  f.memory_bytes = 85017493504;
  return f;
}

DriverFacts a6000() {
  DriverFacts f;
  f.name = "NVIDIA RTX A6000";
  f.cc = 86;
  f.sms = 84;
  f.bus_bits = 384;
  f.memory_clock_khz = 8001000;
  f.sm_clock_khz = 1800000;
  f.l2_bytes = 6291456;
  f.memory_bytes = 51041271808;
  return f;
}

TEST(MatchDevice, AnH200IsTheCatalogueEntryWithTheDriversValues) {
  const auto d = match_device(DataFiles(), h200());
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, "h200-sxm");
  EXPECT_EQ(d->at("memory_bytes"), 150110011392);
  EXPECT_EQ(d->cells.at("memory_bytes").origin, Origin::kMeasured);
  EXPECT_NE(d->cells.at("sms").source.find("driver"), std::string::npos);
  EXPECT_NEAR(d->at("dram_gb_s"), 4814.3, 0.1);  // 2 x 3201 MHz x 6016 bits
  EXPECT_EQ(d->at("dram_sustained_gb_s"), 4621);
  EXPECT_EQ(d->at("peak_bf16_tflops"), 989.4);  // same SMs and clock: the published figure stays
  EXPECT_EQ(d->cells.at("peak_bf16_tflops").origin, Origin::kDatasheet);
  EXPECT_TRUE(tunable(*d));
}

TEST(MatchDevice, TheSameDieIsNotTheSameProduct) {
  EXPECT_EQ(match_device(DataFiles(), h100())->name, "h100-sxm");
  // The H200's die, SMs and clock under an unknown name.
  DriverFacts f = h200();
  f.name = "NVIDIA H200 NVL";
  const auto d = match_device(DataFiles(), f);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, "NVIDIA H200 NVL");
  EXPECT_NEAR(d->at("dram_gb_s"), 4814.3, 0.1);
}

TEST(MatchDevice, AKnownNameOnAnotherBusIsComposed) {
  DriverFacts f = h100();
  f.bus_bits = 4096;
  const auto d = match_device(DataFiles(), f);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, f.name);
  EXPECT_NEAR(d->at("dram_gb_s"), 2 * 2.619 * 4096 / 8, 0.1);
  EXPECT_EQ(d->cells.at("dram_gb_s").origin, Origin::kModel);
  EXPECT_TRUE(tunable(*d));
}

TEST(MatchDevice, WithoutABusWidthNothingIsGuessed) {
  DriverFacts f = h100();
  f.bus_bits = 0;
  const auto d = match_device(DataFiles(), f);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().exit, Exit::kUnavailable);
  EXPECT_EQ(d.error().message,
            "NVIDIA H100 80GB HBM3 is not in the catalogue, and the driver does not say its memory clock and "
            "bus width");
}

TEST(MatchDevice, AnUncataloguedGpuIsComposedFromItsArchitecture) {
  const auto d = match_device(DataFiles(), a6000());
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, "NVIDIA RTX A6000");
  EXPECT_EQ(d->arch, "sm_86");
  EXPECT_NEAR(d->at("dram_gb_s"), 768.1, 0.1);         // 2 x 8001 MHz x 384 bits
  EXPECT_NEAR(d->at("peak_bf16_tflops"), 154.8, 0.1);  // 84 x 1024 x 1800 MHz, as published by NVIDIA
  EXPECT_NEAR(d->at("peak_fp32_tflops"), 38.7, 0.1);   // 84 x 256 x 1800 MHz
  EXPECT_EQ(d->cells.at("peak_bf16_tflops").origin, Origin::kModel);
  EXPECT_FALSE(d->has("peak_fp8_tflops"));
  const auto ok = tunable(*d);
  EXPECT_TRUE(ok) << ok.error().message;
  for (const auto& [name, cell] : d->cells) EXPECT_FALSE(cell.source.empty()) << name;
}

TEST(MatchDevice, AGeForceAccumulatesAtHalfRate) {
  DriverFacts f = a6000();
  f.name = "NVIDIA GeForce RTX 3080";
  f.sms = 68;
  const auto d = match_device(DataFiles(), f);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_NEAR(d->at("peak_bf16_tflops"), 68 * 512 * 1.8e-3, 0.1);
  EXPECT_NEAR(d->at("peak_fp16_acc16_tflops"), 68 * 1024 * 1.8e-3, 0.1);
}

TEST(MatchDevice, A100sAreDistinguishedByMemorySize) {
  DriverFacts f;
  f.cc = 80;
  f.sms = 108;
  f.bus_bits = 5120;
  f.sm_clock_khz = 1410000;
  f.l2_bytes = 41943040;
  f.name = "NVIDIA A100-SXM4-40GB";
  f.memory_clock_khz = 1215000;
  f.memory_bytes = 42405855232;
  auto d = match_device(DataFiles(), f);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, "a100-sxm-40");
  EXPECT_NEAR(d->at("dram_gb_s"), 1555.2, 0.1);
  f.name = "NVIDIA A100-SXM4-80GB";
  f.memory_clock_khz = 1593000;
  f.memory_bytes = 85094170624;
  d = match_device(DataFiles(), f);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, "a100-sxm-80");
  EXPECT_NEAR(d->at("dram_gb_s"), 2039.0, 0.1);
}

std::string product(const std::string& name, const std::string& gigabytes) {
  std::string out = R"({"schema": "roofgen.device/1", "name": ")" + name +
                    R"(", "extends": "sm_86", "driver_names": ["NVIDIA Twin"], "cells": {)";
  const auto cell = [&](const std::string& key, const std::string& value, const std::string& unit) {
    out += '"' + key + R"(": {"value": )" + value + R"(, "unit": ")" + unit +
           R"(", "origin": "datasheet", "source": "datasheet of the card"},)";
  };
  cell("sms", "84", "count");
  cell("clock_tensor_mhz", "1800", "MHz");
  cell("clock_fp32_mhz", "1800", "MHz");
  cell("memory_bytes", gigabytes + "000000000", "bytes");
  cell("dram_bus_bits", "384", "bits");
  cell("dram_gb_s", "768", "GB/s");
  cell("launch_us", "3", "us");
  out.back() = '}';
  return out + '}';
}

TEST(MatchDevice, MemoryDecidesBetweenTwoOfOneName) {
  TempDevices temp;
  temp.add("twin-24", product("twin-24", "24"));
  temp.add("twin-48", product("twin-48", "48"));
  DriverFacts f = a6000();
  f.name = "NVIDIA Twin";
  EXPECT_EQ(match_device(temp.files(), f)->name, "twin-48");
  f.memory_bytes = 25000000000;
  EXPECT_EQ(match_device(temp.files(), f)->name, "twin-24");
}

TEST(MatchDevice, FewerSmsOrALowerClockLowerThePeaks) {
  DriverFacts f = h200();
  f.sms = 66;
  f.sm_clock_khz = 990000;
  const auto d = match_device(DataFiles(), f);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, "h200-sxm");
  EXPECT_NEAR(d->at("peak_bf16_tflops"), 66 * 4096 * 0.99e-3, 0.1);
  EXPECT_NEAR(d->at("peak_fp32_tflops"), 66 * 256 * 0.99e-3, 0.1);
  EXPECT_EQ(d->at("clock_sustained_mhz"), 990);
}

TEST(MatchDevice, FiguresTheDriverDoesNotContradictStayTheMakers) {
  DriverFacts f;
  f.name = "NVIDIA B300 SXM6 AC";  // the catalogue has no bus width for it: the name decides
  f.cc = 103;
  f.sms = 148;
  f.bus_bits = 8192;
  f.memory_clock_khz = 3996000;
  f.sm_clock_khz = 2032000;
  f.memory_bytes = 287000000000;
  const auto d = match_device(DataFiles(), f);
  ASSERT_TRUE(d) << d.error().message;
  EXPECT_EQ(d->name, "b300");
  EXPECT_EQ(d->at("clock_fp32_mhz"), 2032);
  EXPECT_EQ(d->at("peak_bf16_tflops"), 2250);
  EXPECT_EQ(d->cells.at("peak_bf16_tflops").origin, Origin::kDatasheet);
  EXPECT_NEAR(d->at("peak_fp32_tflops"), 148 * 256 * 2.032e-3, 0.1);
  EXPECT_EQ(d->cells.at("peak_fp32_tflops").origin, Origin::kModel);
}

TEST(MatchDevice, WithoutAnArchitectureFileThereIsNone) {
  DriverFacts f = a6000();
  f.name = "TITAN X";
  f.cc = 61;
  const auto d = match_device(DataFiles(), f);
  ASSERT_FALSE(d);
  EXPECT_EQ(d.error().exit, Exit::kUnavailable);
  EXPECT_EQ(d.error().message, "TITAN X is not in the catalogue, and there is no architecture file devices/sm_61.json");
}

const char* const kProfile = R"({
  "schema": "roofgen.device/1",
  "name": "h200-sxm",
  "cells": {
    "dram_sustained_gb_s": {"value": 4350, "unit": "GB/s", "origin": "measured", "source": "copy of 4 GB on this card"},
    "peak_bf16_tflops": {"value": 802.9, "unit": "TFLOP/s", "origin": "measured", "source": "gemm of 8192 on this card"}
  }
}
)";

TEST(Overlay, MeasuredCeilingsReplaceStatedOnes) {
  Device d = *load_device(DataFiles(), "h200-sxm");
  const auto ok = overlay(d, kProfile, "profile.json");
  ASSERT_TRUE(ok) << to_string(ok.error());
  EXPECT_EQ(d.at("dram_sustained_gb_s"), 4350);
  EXPECT_EQ(d.at("peak_bf16_tflops"), 802.9);
  EXPECT_EQ(d.cells.at("peak_bf16_tflops").origin, Origin::kMeasured);
  EXPECT_EQ(d.at("peak_fp16_tflops"), 989.4);
}

TEST(Overlay, RejectsMeasurementsOfAnotherDevice) {
  const auto error = [](const char* device, const std::string& from, const std::string& to) {
    std::string text = kProfile;
    if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
    Device d = *load_device(DataFiles(), device);
    const double before = d.at("dram_sustained_gb_s");
    const auto result = overlay(d, text, "profile.json");
    EXPECT_EQ(d.at("dram_sustained_gb_s"), before);
    return result ? "" : to_string(result.error());
  };
  EXPECT_EQ(error("h100-sxm", "", ""),
            "profile.json:3:4: error: the profile is of \"h200-sxm\", the device is \"h100-sxm\"");
  EXPECT_EQ(error("h200-sxm", R"("measured", "source": "copy)", R"("datasheet", "source": "copy)"),
            "profile.json:5:6: error: cell \"dram_sustained_gb_s\" of a profile must have the origin \"measured\"");
  EXPECT_EQ(error("h200-sxm", "802.9", "1979"),
            "profile.json:6:6: error: peak_bf16_tflops is 1979, twice the 989.4 of 132 SMs x 4096 FLOP/clk x 1830 "
            "MHz; a dense peak was expected, not one with 2:4 sparsity");
  EXPECT_EQ(error("h200-sxm", "4350", "5000"),
            "profile.json:5:6: error: dram_sustained_gb_s is 5000, above dram_gb_s of 4800");
}

}  // namespace
}  // namespace roofgen::device_match_test

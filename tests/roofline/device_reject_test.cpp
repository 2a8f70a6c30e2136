// Device files that must be rejected; the error names the cell and its line.
#include <gtest/gtest.h>

#include "roofline/device.h"
#include "tests/roofline/temp_devices.h"

namespace roofgen::device_reject_test {
namespace {

/// A correct product: sm_90 with 132 SMs at 1830 MHz gives 989.4 TFLOP/s of fp16.
const char* const kGood = R"({
  "schema": "roofgen.device/1",
  "name": "mine",
  "title": "A card of a test",
  "extends": "sm_90",
  "driver_names": ["NVIDIA Mine"],
  "cells": {
    "sms": {"value": 132, "unit": "count", "origin": "datasheet", "source": "datasheet of the card"},
    "clock_tensor_mhz": {"value": 1830, "unit": "MHz", "origin": "datasheet", "source": "datasheet of the card"},
    "clock_fp32_mhz": {"value": 1980, "unit": "MHz", "origin": "datasheet", "source": "datasheet of the card"},
    "memory_bytes": {"value": 80000000000, "unit": "bytes", "origin": "datasheet", "source": "datasheet of the card"},
    "dram_gb_s": {"value": 3352, "unit": "GB/s", "origin": "datasheet", "source": "datasheet of the card"},
    "dram_sustained_gb_s": {"value": 2890, "unit": "GB/s", "origin": "measured", "source": "read on the card"},
    "launch_us": {"value": 3, "unit": "us", "origin": "model", "source": "as every device"},
    "peak_fp16_tflops": {"value": 989.4, "unit": "TFLOP/s", "origin": "datasheet", "source": "datasheet of the card"}
  }
}
)";

struct Case {
  const char* what;
  const char* from;
  const char* to;
  int line;
  const char* message;
};

const Case kCases[] = {
    {"sparse peak", "989.4", "1979", 15,
     "peak_fp16_tflops is 1979, twice the 989.4 of 132 SMs x 4096 FLOP/clk x 1830 MHz; a dense peak was "
     "expected, not one with 2:4 sparsity"},
    {"sparse peak, not quite twice", "989.4", "1671", 15,
     "peak_fp16_tflops is 1671, 1.7 times the 989.4 of 132 SMs x 4096 FLOP/clk x 1830 MHz; a dense peak was "
     "expected, not one with 2:4 sparsity"},
    {"peak of another clock", "989.4", "950", 15,
     "peak_fp16_tflops is 950, but 132 SMs x 4096 FLOP/clk x 1830 MHz give 989.4: more than 0.5 % apart"},
    {"measured peak above the possible", R"(989.4, "unit": "TFLOP/s", "origin": "datasheet")",
     R"(1100, "unit": "TFLOP/s", "origin": "measured")", 15,
     "peak_fp16_tflops is 1100 measured, above the 989.4 that 132 SMs x 4096 FLOP/clk x 1830 MHz give at "
     "most"},
    {"peak without a rate", "peak_fp16_tflops", "peak_fp4_tflops", 15,
     "peak_fp4_tflops is 989.4, but the device has no rate cell to recompute it from"},
    {"no source", R"("GB/s", "origin": "datasheet", "source": "datasheet of the card")",
     R"("GB/s", "origin": "datasheet")", 12, "cell \"dram_gb_s\" has no \"source\""},
    {"short source", R"("as every device")", R"("me")", 14,
     "the source \"me\" of cell \"launch_us\" is too short to be found again"},
    {"source of a wrong type", R"("as every device")", "7", 14, "\"source\" of cell \"launch_us\" must be a string"},
    {"wrong unit", R"("unit": "us")", R"("unit": "ms")", 14, "cell \"launch_us\" is in \"ms\"; \"us\" was expected"},
    {"no unit", R"("value": 3, "unit": "us")", R"("value": 3)", 14, "cell \"launch_us\" has no \"unit\""},
    {"unknown origin", R"("origin": "measured")", R"("origin": "guessed")", 13,
     "cell \"dram_sustained_gb_s\" has the unknown origin \"guessed\"; datasheet, measured or model was "
     "expected"},
    {"unknown cell", "dram_gb_s", "dram_gbs", 12, "unknown cell \"dram_gbs\"; did you mean \"dram_gb_s\"?"},
    {"unknown member of a cell", R"("value": 3, )", R"("value": 3, "note": "x", )", 14,
     "cell \"launch_us\" has an unknown member \"note\"; known: value, unit, origin, source"},
    {"unknown member of the device", R"("title")", R"("titel")", 4,
     "the device has an unknown member \"titel\"; did you mean \"title\"?"},
    {"no number", R"("value": 3,)", R"("value": "3",)", 14, "cell \"launch_us\" needs a number \"value\""},
    {"negative", R"("value": 3,)", R"("value": -3,)", 14, "cell \"launch_us\" is -3; it cannot be negative"},
    {"zero", R"("value": 3,)", R"("value": 0,)", 14, "cell \"launch_us\" is 0; it must be above 0"},
    {"fraction of an SM", R"("value": 132,)", R"("value": 131.5,)", 8,
     "cell \"sms\" is 131.5; a whole number was expected"},
    {"more SMs than fit", R"("value": 132,)", R"("value": 1e300,)", 8,
     "cell \"sms\" is 1e+300; the value is too large"},
    {"sustained above the datasheet", "2890", "3400", 13, "dram_sustained_gb_s is 3400, above dram_gb_s of 3352"},
    {"no object", R"({"value": 3, "unit": "us", "origin": "model", "source": "as every device"})", "3", 14,
     "cell \"launch_us\" must be an object with value, unit, origin and source"},
    {"wrong name", R"("name": "mine")", R"("name": "yours")", 3,
     "the device is named \"yours\"; its file's name, \"mine\", was expected"},
    {"a cell twice", "dram_sustained_gb_s", "dram_gb_s", 13, "an object has the member \"dram_gb_s\" twice"},
    {"wrong schema", "roofgen.device/1", "roofgen.device/9", 2,
     "schema \"roofgen.device/9\"; \"roofgen.device/1\" was expected"},
    {"extends nothing", R"("extends": "sm_90")", R"("extends": "sm_91")", 5,
     "\"extends\" names \"sm_91\", which is not a device file"},
    {"driver names", R"(["NVIDIA Mine"])", R"(["NVIDIA Mine", 7])", 6, "\"driver_names\" must be a list of strings"},
    {"missing cell", "\"launch_us\": {\"value\": 3, \"unit\": \"us\"",
     "\"l1_latency\": {\"value\": 3, \"unit\": \"cycles\"", 0, "device mine has no cell \"launch_us\""},
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(DeviceFile, TheGoodOneLoads) {
  const TempDevices temp("mine", kGood);
  const auto d = load_device(temp.files(), "mine");
  ASSERT_TRUE(d) << to_string(d.error());
  EXPECT_EQ(d->title, "A card of a test");
  EXPECT_EQ(d->arch, "sm_90");
  EXPECT_EQ(d->at("dram_gb_s"), 3352);
}

TEST(DeviceFile, WrongOnesAreRejectedByCellAndLine) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.what);
    const TempDevices temp("mine", replaced(kGood, c.from, c.to));
    const auto d = load_device(temp.files(), "mine");
    ASSERT_FALSE(d);
    EXPECT_EQ(d.error().exit, Exit::kFailed);
    EXPECT_EQ(d.error().message, c.message);
    EXPECT_EQ(d.error().where.line, c.line);
    EXPECT_TRUE(d.error().where.file.ends_with("mine.json")) << d.error().where.file;
  }
}

TEST(DeviceFile, ANumberTooLargeIsRejected) {
  const TempDevices temp("mine", replaced(kGood, "\"value\": 3,", "\"value\": 1e999,"));
  EXPECT_FALSE(load_device(temp.files(), "mine"));
}

TEST(DeviceFile, EveryPrefixOfItIsAnErrorAndNoCrash) {
  const std::string good = kGood;
  for (size_t n = 0; n + 2 < good.size(); n += 7) {
    const TempDevices temp("mine", good.substr(0, n));
    EXPECT_FALSE(load_device(temp.files(), "mine")) << n;
  }
}

}  // namespace
}  // namespace roofgen::device_reject_test

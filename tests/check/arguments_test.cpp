// Arguments from JSON: what they hold, and what is refused and how.
#include "check/arguments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "check/check.h"

namespace roofgen::check {
namespace {

std::vector<double> contents(const std::string& json) {
  auto args = parse_arguments(json, "args.json", ".");
  EXPECT_TRUE(args) << to_string(args.error());
  if (!args) return {};
  const Argument& a = args->front();
  std::vector<std::byte> bytes(a.bytes());
  fill(a.fill, a.type, 0, bytes);
  // In pieces that begin and end inside elements it is the same.
  std::vector<std::byte> pieces(a.bytes());
  for (size_t i = 0; i < pieces.size(); i += 3) fill(a.fill, a.type, i, std::span(pieces).subspan(i, std::min<size_t>(3, pieces.size() - i)));
  EXPECT_EQ(bytes, pieces);
  std::vector<double> out;
  for (uint64_t i = 0; i < *a.size; ++i) out.push_back(decode(a.type, &bytes[i * bytes_of(a.type)]));
  return out;
}

TEST(Arguments, HoldWhatTheySay) {
  EXPECT_EQ(contents(R"([{"type": "f32", "size": 3, "fill": "iota"}])"), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(contents(R"([{"type": "i8", "size": 3, "fill": -5}])"), (std::vector<double>{-5, -5, -5}));
  EXPECT_EQ(contents(R"([{"type": "bf16", "size": 2, "values": [1.00390625, 3e38]}])"), (std::vector<double>{1, 0x1.c4p127}));
  EXPECT_EQ(contents(R"([{"type": "f16", "size": 3, "values": [65520, "-inf", 0.1]}])"), (std::vector<double>{HUGE_VAL, -HUGE_VAL, 0.0999755859375}));
  EXPECT_EQ(contents(R"([{"type": "u64", "size": 1, "fill": 18446744073709551615}])"), (std::vector<double>{18446744073709551615.0}));
  EXPECT_TRUE(std::isnan(contents(R"([{"type": "f64", "size": 1, "values": ["nan"]}])")[0]));
  const std::vector<double> random = contents(R"([{"type": "f32", "size": 1000, "fill": "random", "seed": 3}])");
  double sum = 0;
  for (const double x : random) {
    EXPECT_GE(x, -1);
    EXPECT_LE(x, 1);
    sum += x;
  }
  EXPECT_LT(std::fabs(sum / 1000), 0.1);
  EXPECT_EQ(random, contents(R"([{"type": "f32", "size": 1000, "fill": "random", "seed": 3}])"));
  EXPECT_NE(random, contents(R"([{"type": "f32", "size": 1000, "fill": "random", "seed": 4}])"));
}

TEST(Arguments, AreRefusedInOneLineWithTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "a list of arguments was expected"},
      {R"([{"size": 3}])", "argument 1: \"type\" is missing"},
      {R"([{"type": "float", "size": 3}])", "unknown type \"float\""},
      {R"([{"type": "f23", "size": 3}])", "did you mean \"f16\""},
      {R"([{"type": "f32"}])", "either \"size\" (a buffer) or \"value\" (a scalar) was expected"},
      {R"([{"type": "f32", "size": 0}])", "\"size\" is a number of elements"},
      {R"([{"type": "f32", "size": -1}])", "\"size\" is a number of elements"},
      {R"([{"type": "f32", "size": 99999999999999}])", "\"size\" is a number of elements"},
      {R"([{"type": "f64", "size": 4000000000}])", "more than 4 GiB together"},
      {R"([{"type": "i8", "value": 128}])", "128 is no i8; a whole number from -128 to 127 was expected"},
      {R"([{"type": "i32", "value": 1.5}])", "1.5 is no i32"},
      {R"([{"type": "u8", "value": -1}])", "-1 is no u8"},
      {R"([{"type": "i32", "value": "7"}])", "a number was expected"},
      {R"([{"type": "f32", "size": 3, "fill": "iotta"}])", "did you mean \"iota\""},
      {R"([{"type": "f32", "size": 3, "fil": 1}])", "unknown key \"fil\""},
      {R"([{"type": "f32", "size": 3, "values": [1, 2]}])", "a list of 3 numbers, 2 were given"},
      {R"([{"type": "f32", "size": 3, "fill": 1, "values": [1, 2, 3]}])", "one of \"fill\", \"values\" and \"file\""},
      {R"([{"type": "f32", "size": 3, "file": "not-there.bin"}])", "not-there.bin cannot be read"},
      {R"([{"type": "f32", "size": 3, "seed": 1}])", "\"seed\" goes with"},
      {R"([{"type": "f32", "size": 3, "tolerance": 1}])", "goes with \"expect\""},
      {R"([{"type": "f32", "value": 3, "expect": 1}])", "is for buffers"},
      {R"([{"type": "f32", "size": 3, "read_only": true}])", "a read-only buffer that holds nothing"},
      {R"([{"type": "null", "size": 3}])", "a null pointer takes nothing else"}};
  for (const auto& [json, message] : cases) {
    const auto args = parse_arguments(json, "args.json", ".");
    ASSERT_FALSE(args) << json;
    const std::string text = to_string(args.error());
    EXPECT_NE(text.find(message), std::string::npos) << json << "\n" << text;
    EXPECT_TRUE(text.starts_with("args.json:")) << text;
    EXPECT_EQ(args.error().exit, Exit::kUsage) << json;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace roofgen::check

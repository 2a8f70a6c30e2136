// Arguments from JSON: their contents, and rejected input with its messages.
#include "check/arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "check/check.h"

namespace roofgen::check::arguments_test {
namespace {

std::vector<double> contents(const std::string& json) {
  auto args = parse_arguments(json, "args.json", ".");
  EXPECT_TRUE(args) << to_string(args.error());
  if (!args) return {};
  const Argument& a = args->front();
  std::vector<std::byte> bytes(a.bytes());
  fill(a.fill, a.type, 0, bytes);
  // Filling in pieces that cut through elements gives the same bytes.
  std::vector<std::byte> pieces(a.bytes());
  for (size_t i = 0; i < pieces.size(); i += 3)
    fill(a.fill, a.type, i, std::span(pieces).subspan(i, std::min<size_t>(3, pieces.size() - i)));
  EXPECT_EQ(bytes, pieces);
  std::vector<double> out;
  for (uint64_t i = 0; i < *a.size; ++i) out.push_back(decode(a.type, &bytes[i * bytes_of(a.type)]));
  return out;
}

TEST(Arguments, HoldTheStatedValues) {
  EXPECT_EQ(contents(R"([{"type": "f32", "size": 3, "fill": "iota"}])"), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(contents(R"([{"type": "i8", "size": 3, "fill": -5}])"), (std::vector<double>{-5, -5, -5}));
  EXPECT_EQ(contents(R"([{"type": "bf16", "size": 2, "values": [1.00390625, 3e38]}])"),
            (std::vector<double>{1, 0x1.c4p127}));
  EXPECT_EQ(contents(R"([{"type": "f16", "size": 3, "values": [65520, "-inf", 0.1]}])"),
            (std::vector<double>{HUGE_VAL, -HUGE_VAL, 0.0999755859375}));
  EXPECT_EQ(contents(R"([{"type": "u64", "size": 1, "fill": 18446744073709551615}])"),
            (std::vector<double>{18446744073709551615.0}));
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

TEST(Arguments, RandomNumbersOfARange) {
  for (const auto& [json, least, most] :
       {std::tuple{R"([{"type": "i8", "size": 500, "fill": "random", "range": [-3, 4]}])", -3.0, 4.0},
        {R"([{"type": "u64", "size": 500, "fill": "random", "range": [7, 9]}])", 7.0, 9.0},
        {R"([{"type": "i32", "size": 500, "fill": "random", "range": [5, 5]}])", 5.0, 5.0}}) {
    const std::vector<double> all = contents(json);
    EXPECT_EQ(*std::min_element(all.begin(), all.end()), least) << json;
    EXPECT_EQ(*std::max_element(all.begin(), all.end()), most) << json;
  }
  for (const double x : contents(R"([{"type": "f32", "size": 500, "fill": "random", "range": [2, 3]}])")) {
    EXPECT_GE(x, 2);
    EXPECT_LE(x, 3);
  }
}

TEST(Elements, AreAsFarApartAsTheyAre) {
  const auto apart = [](Element e, auto a, auto b) {
    return distance(e, reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b));
  };
  // Beyond 2^53, where both values convert to the same double.
  EXPECT_EQ(apart(Element::kI64, (int64_t{1} << 53) + 1, int64_t{1} << 53), 1);
  EXPECT_EQ(apart(Element::kI64, int64_t{-2}, int64_t{3}), 5);
  EXPECT_EQ(apart(Element::kU64, uint64_t{0}, ~uint64_t{0}), 0x1p64);
  EXPECT_EQ(apart(Element::kF32, 1.5f, -1.f), 2.5);
  EXPECT_EQ(apart(Element::kF32, NAN, 1.f), HUGE_VAL);
  EXPECT_EQ(apart(Element::kF32, NAN, NAN), 0);
  EXPECT_EQ(apart(Element::kF32, HUGE_VALF, HUGE_VALF), 0);
  const int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_EQ(shown(Element::kI64, reinterpret_cast<const std::byte*>(&large)), "9007199254740993");
}

/// {offset, bytes} of each field, and alignment and bytes of the whole struct.
std::vector<std::pair<uint64_t, uint64_t>> layout(const std::string& json) {
  auto args = parse_arguments(json, "args.json", ".");
  EXPECT_TRUE(args) << to_string(args.error());
  std::vector<std::pair<uint64_t, uint64_t>> out;
  if (!args) return out;
  for (const Argument& f : args->front().fields) out.push_back({f.offset, f.passed_bytes()});
  out.push_back({args->front().align, args->front().passed_bytes()});
  return out;
}

TEST(Arguments, StructsAreLaidOutAsInCpp) {
  struct Inner {
    double a;
    char b;
  };
  struct Outer {
    float* x;
    int n;
    struct {
      float x, y, z;
    } s;
    char tags[3];
    Inner inner;
    alignas(16) float v[4];
    short last;
  };
  const auto got = layout(
      R"([{"type": "struct", "fields": [{"type": "f32", "size": 4}, {"type": "i32", "value": 1}, {"type": "f32x3", "value": [1, 2, 3]}, {"type": "i8", "value": [1, 2, 3]},
      {"type": "struct", "fields": [{"type": "f64", "value": 1}, {"type": "i8", "value": 2}]}, {"type": "f32x4", "value": [1, 2, 3, 4]}, {"type": "i16", "value": 1}]}])");
  const std::vector<std::pair<uint64_t, uint64_t>> wanted{{offsetof(Outer, x), 8},
                                                          {offsetof(Outer, n), 4},
                                                          {offsetof(Outer, s), 12},
                                                          {offsetof(Outer, tags), 3},
                                                          {offsetof(Outer, inner), sizeof(Inner)},
                                                          {offsetof(Outer, v), 16},
                                                          {offsetof(Outer, last), 2},
                                                          {alignof(Outer), sizeof(Outer)}};
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(
      layout(R"([{"type": "struct", "align": 64, "fields": [{"type": "null"}, {"type": "bytes", "value": "0a 0b"}]}])"),
      (std::vector<std::pair<uint64_t, uint64_t>>{{0, 8}, {8, 2}, {64, 64}}));
}

TEST(Arguments, ValueArgumentsAreBytes) {
  auto args = parse_arguments(
      R"([{"type": "struct", "fields": [{"type": "u8", "value": 7}, {"type": "u16x2", "value": [258, 3]}]}, {"type": "bytes", "value": "00 fF"}, {"type": "i32", "value": -2}])",
      "args.json", ".");
  ASSERT_TRUE(args);
  const auto bytes = [&](size_t i) {
    std::vector<int> out;
    for (const std::byte b : (*args)[i].value) out.push_back(std::to_integer<int>(b));
    return out;
  };
  EXPECT_EQ(bytes(0), (std::vector<int>{7, 0, 0, 0, 2, 1, 3, 0}));
  EXPECT_EQ(bytes(1), (std::vector<int>{0, 255}));
  EXPECT_EQ(bytes(2), (std::vector<int>{254, 255, 255, 255}));
}

TEST(Arguments, TensorMapsOfBuffers) {
  const auto args = parse_arguments(
      R"([{"name": "a", "type": "bf16", "size": 8192, "map": {"dims": [64, 128], "box": [64, 32], "swizzle": 128}},
          {"type": "struct", "fields": [{"type": "i32", "value": 1},
            {"type": "f32", "buffer": "a", "offset": 8,
             "map": {"dims": [8, 4], "strides": [48], "box": [4, 4], "nan_fill": true, "l2_promotion": 256}}]}])",
      "args.json", ".");
  ASSERT_TRUE(args) << to_string(args.error());
  const Argument &whole = (*args)[0], &part = (*args)[1].fields[1];
  EXPECT_EQ(whole.passed_bytes(), 128u);
  EXPECT_EQ(whole.map->stride_bytes, std::vector<uint64_t>{128}) << "contiguous unless stated";
  EXPECT_EQ(whole.map->swizzle_bytes, 128);
  EXPECT_EQ(part.offset, 64u) << "the alignment of CUtensorMap";
  EXPECT_EQ((*args)[1].passed_bytes(), 192u);
  EXPECT_EQ(part.begin, 32u);
  EXPECT_EQ(part.map->stride_bytes, std::vector<uint64_t>{48});
  EXPECT_TRUE(part.map->nan_fill);

  for (const auto& [map, message] : {
           std::pair{R"(5)", R"("map" is 5; {"dims": [...], "box": [...]} was expected)"},
           {R"({"dims": [8]})", R"({"dims": [...], "box": [...]} was expected)"},
           {R"({"dims": [8], "box": [8], "swizle": 32})", R"(did you mean "swizzle"?)"},
           {R"({"dims": [8, 8, 8, 8, 8, 8], "box": [8]})", "a list of 1 to 5 numbers was expected"},
           {R"({"dims": [0], "box": [8]})", R"("dims" holds 0; numbers from 1 to 4294967296 were expected)"},
           {R"({"dims": [8, 8], "box": [8]})", "2 dimensions with 1 sides of a box"},
           {R"({"dims": [7, 8], "box": [8, 8]})", "a stride of 14 bytes is not a multiple of 16"},
           {R"({"dims": [128, 8], "box": [128, 8], "swizzle": 128})", "does not fit a swizzle of 128"},
           {R"({"dims": [4294967296, 4294967296, 8], "box": [8, 8, 8]})", "a stride of 1099511627776 bytes"},
           {R"({"dims": [8], "box": [8], "nan_fill": 1})", R"("nan_fill" is 1; true or false was expected)"},
       }) {
    const auto refused =
        parse_arguments(std::string(R"([{"type": "bf16", "size": 64, "map": )") + map + "}]", "args.json", ".");
    ASSERT_FALSE(refused) << map;
    EXPECT_NE(refused.error().message.find(message), std::string::npos) << refused.error().message;
    EXPECT_EQ(refused.error().where.line, 1);
  }
  const auto wide =
      parse_arguments(R"([{"type": "f64", "size": 64, "map": {"dims": [8], "box": [8]}}])", "a.json", ".");
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().message.find("a tensor map of f64 is not supported"), std::string::npos);
}

TEST(Arguments, Images) {
  const auto read = parse_arguments(
      R"([{"name": "a", "type": "u8", "size": 8192,
           "texture": {"dims": [16, 8], "layers": 3, "channels": 4, "pitch": 96, "address_mode": ["wrap", "border"],
                       "filter_mode": "linear", "read_mode": "normalized_float", "normalized_coords": true}},
          {"type": "f16", "buffer": "a", "offset": 8, "texture": {}},
          {"type": "f32", "size": 64, "surface": {"dims": [16, 2, 2]}}])",
      "args.json", ".");
  ASSERT_TRUE(read) << to_string(read.error());
  const sim::Image& layers = *(*read)[0].image;
  EXPECT_EQ(layers.rank, 2u);
  EXPECT_EQ(layers.layers, 3u);
  EXPECT_EQ(layers.slice, 8u * 96);
  EXPECT_EQ(layers.mode[1], sim::AddressMode::kBorder);
  EXPECT_TRUE(layers.linear && layers.unit_values && layers.unit_coordinates && !layers.is_memory);
  const sim::Image& memory = *(*read)[1].image;
  EXPECT_EQ(memory.dims[0], (8192u - 16) / 2);
  EXPECT_TRUE(memory.is_memory);
  EXPECT_EQ((*read)[2].image->rank, 3u);
  EXPECT_EQ((*read)[2].passed_bytes(), 8u);

  for (const auto& [image, message] :
       {std::pair{R"("texture": 5)", R"("texture" is 5; {"dims": [...]} was expected)"},
        {R"("surface": {})", R"("surface" is {}; {"dims": [...]} was expected)"},
        {R"("texture": {"dim": [8]})", R"(did you mean "dims"?)"},
        {R"("texture": {"dims": [8, 9]})", "the image has 72 bytes, the buffer 64 bytes"},
        {R"("texture": {"dims": [134217728, 134217728, 134217728]})", "the image has over 4 GiB"},
        {R"("texture": {"dims": [2, 2, 2, 2]})", "an image has 1 to 3 dimensions"},
        {R"("texture": {"dims": [8], "channels": 3})", "1, 2 or 4 was expected"},
        {R"("texture": {"dims": [8], "pitch": 4})", "a number of bytes from 8 to"},
        {R"("texture": {"dims": [8], "address_mode": "repeat"})", "one of wrap, clamp, mirror, border was expected"},
        {R"("texture": {"dims": [8, 2], "address_mode": ["wrap"]})", "has 1 entries for 2 dimensions"},
        {R"("texture": {"dims": [8], "filter_mode": "linear"})",
         "linear filtering needs values that are read as floats"},
        {R"("surface": {"dims": [8], "filter_mode": "point"})", "filter_mode"},
        {R"("texture": {"dims": [8]}, "surface": {"dims": [8]})", "one of \"map\", \"texture\" and \"surface\""}}) {
    const auto refused =
        parse_arguments(std::string(R"([{"type": "u8", "size": 64, )") + image + "}]", "args.json", ".");
    ASSERT_FALSE(refused) << image;
    EXPECT_NE(to_string(refused.error()).find(message), std::string::npos) << to_string(refused.error());
    EXPECT_EQ(refused.error().where.line, 1);
  }
  const auto wide = parse_arguments(R"([{"type": "f64", "size": 64, "texture": {"dims": [8]}}])", "a.json", ".");
  ASSERT_FALSE(wide);
  EXPECT_NE(wide.error().message.find("a texture of f64 is not supported"), std::string::npos);
}

TEST(Arguments, AreRefusedInOneLineWithTheirPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "a list of arguments was expected"},
      {R"([{"size": 3}])", "argument 1: \"type\" is missing"},
      {R"([{"type": "float", "size": 3}])", "unknown type \"float\""},
      {R"([{"type": "f23", "size": 3}])", "did you mean \"f16\""},
      {R"([{"type": "f32"}])", "either \"size\" (a buffer) or \"value\" (a scalar) was expected"},
      {R"([{"type": "f32", "size": 0}])", "a number of elements from 1 to"},
      {R"([{"type": "f32", "size": -1}])", "a number of elements from 1 to"},
      {R"([{"type": "f32", "size": 99999999999999}])", "a number of elements from 1 to"},
      {R"([{"type": "f64", "size": 4000000000}])", "more than 4 GiB together"},
      {R"([{"type": "i8", "value": 128}])", "128 is no i8; a whole number from -128 to 127 was expected"},
      {R"([{"type": "i32", "value": 1.5}])", "1.5 is no i32"},
      {R"([{"type": "u8", "value": -1}])", "-1 is no u8"},
      {R"([{"type": "i32", "value": "7"}])",
       "\"7\" is no i32; a whole number from -2147483648 to 2147483647 was expected"},
      {R"([{"type": "f32", "value": "7"}])", "\"value\" holds \"7\"; a number was expected"},
      {R"([{"type": "f32", "size": "1000"}])", "\"size\" is \"1000\"; a number of elements from 1 to"},
      {R"([{"type": "i64", "value": 1e18}])", "beyond 2^53 with all its digits"},
      {R"([{"type": "i32", "size": 3, "fill": "random", "seed": -1}])",
       "\"seed\" is -1; a whole number from 0 to 18446744073709551615"},
      {R"([{"type": "i32", "size": 3, "fill": "zeros"}])",
       "\"fill\" is \"zeros\"; a number, \"iota\" or \"random\" was expected\n"},
      {R"([{"type": "i32", "size": 3, "fill": true}])",
       "\"fill\" is true; a number, \"iota\" or \"random\" was expected\n"},
      {R"([{"name": "x", "type": "i32", "size": 3}, {"name": "x", "type": "i32", "value": 3}])",
       "argument 2: another one has the name \"x\" already"},
      {R"([{"type": "f32", "size": 3, "fill": "iotta"}])", "did you mean \"iota\""},
      {R"([{"type": "f32", "size": 3, "fil": 1}])", "unknown key \"fil\""},
      {R"([{"type": "f32", "size": 3, "values": [1, 2]}])", "a list of 3 numbers, 2 were given"},
      {R"([{"type": "f32", "size": 3, "fill": 1, "values": [1, 2, 3]}])", "one of \"fill\", \"values\" and \"file\""},
      {R"([{"type": "f32", "size": 3, "file": "not-there.bin"}])", "not-there.bin cannot be read"},
      {R"([{"type": "f32", "size": 3, "seed": 1}])", "\"seed\" goes with"},
      {R"([{"type": "f32", "size": 3, "tolerance": 1}])", "goes with \"expect\""},
      {R"([{"type": "f32", "size": 3, "ignore": [1]}])", "goes with \"expect\""},
      {R"([{"type": "f32", "size": 3, "expect": 1, "ignore": 1}])", "is a list of elements and [begin, end)"},
      {R"([{"type": "f32", "size": 3, "expect": 1, "ignore": [3]}])", "3 is no number of 3 elements"},
      {R"([{"type": "f32", "size": 3, "expect": 1, "ignore": [[1, 4]]}])", "4 is no bound of 3 elements"},
      {R"([{"type": "f32", "size": 3, "expect": 1, "ignore": [[2, 2]]}])", "[2,2] has no elements"},
      {R"([{"type": "f32", "size": 2, "values": [null, 1]}])", "\"values\" holds null; a number was expected"},
      {R"([{"type": "i32", "size": 3, "fill": 1, "range": [0, 1]}])", "\"range\" goes with \"fill\": \"random\""},
      {R"([{"type": "i32", "size": 3, "fill": "random", "range": 5}])", "as in [0, 99]"},
      {R"([{"type": "i32", "size": 3, "fill": "random", "range": [5, 4]}])", "the lower value comes first"},
      {R"([{"type": "i64", "size": 3, "fill": "random", "range": [5, -4]}])", "the lower value comes first"},
      {R"([{"type": "u8", "size": 3, "fill": "random", "range": [0, 256]}])", "256 is no u8"},
      {R"([{"type": "f32", "size": 3, "fill": "random", "range": [0, "inf"]}])", "two finite numbers were expected"},
      {R"([{"name": "x", "type": "f32", "size": 3}, {"type": "f32", "buffer": "y"}])",
       "argument 2: no earlier argument with \"size\" has the name \"y\"; did you mean \"x\"?"},
      {R"([{"type": "f32", "buffer": "y"}])", "has the name \"y\"\n"},
      {R"([{"name": "x", "type": "f32", "size": 3}, {"type": "f64", "buffer": "x", "offset": 2}])",
       "\"offset\" is 2; a number of elements of f64 from 0 to 1 was expected"},
      {R"([{"name": "x", "type": "f32", "size": 3, "offset": 1}])", "\"offset\" goes with \"buffer\""},
      {R"([{"name": "x", "type": "f32", "size": 3}, {"type": "f32", "buffer": "x", "fill": 1}])",
       "\"fill\" is for buffers, this points into the buffer of another argument"},
      {R"([{"type": "f32", "value": 3, "expect": 1}])", "is for buffers"},
      {R"([{"type": "f32", "size": 3, "read_only": true}])", "a read-only buffer without contents"},
      {R"([{"type": "int", "value": 3}])", "unknown type \"int\"; did you mean \"i32\"?"},
      {R"([{"type": "float4", "value": [1, 2, 3, 4]}])", "did you mean \"f32x4\"?"},
      {R"([{"type": "f32x4", "value": [1, 2, 3]}])", "\"value\" of f32x4 is a list of 4 numbers"},
      {R"([{"type": "f32x4", "size": 3}])", "a buffer of f32x4 is one of f32 with 4 times the size"},
      {R"([{"type": "f32", "value": []}])", "\"value\" is a number or a list"},
      {R"([{"type": "struct"}])", "\"fields\" is a list of 1 to 256 fields"},
      {R"([{"type": "struct", "fields": []}])", "\"fields\" is a list of 1 to 256 fields"},
      {R"([{"type": "struct", "fields": [{"type": "i32", "value": 1}, {"type": "i33", "value": 1}]}])",
       "argument 1, field 2: unknown type \"i33\""},
      {R"([{"type": "struct", "fields": [{"type": "u8", "value": 1}], "align": 3}])",
       "\"align\" is 3; a power of two from 1 to 256"},
      {R"([{"type": "struct", "fields": [{"type": "u8", "value": 1}], "size": 3}])",
       "\"size\" is for buffers, this is a struct"},
      {R"([{"type": "f64", "value": 1, "align": 4}])", "\"align\" is 4; a power of two from 8 to 256"},
      {R"([{"type": "f64", "size": 1, "align": 16}])", "\"align\" is for values"},
      {R"([{"type": "bytes"}])", "either \"value\" (hexadecimal digits) or \"file\""},
      {R"([{"type": "bytes", "value": "0g"}])", "'g' is not a hexadecimal digit"},
      {R"([{"type": "bytes", "value": "012"}])", "two for each byte were expected"},
      {R"([{"type": "bytes", "value": ""}])", "0 bytes; 1 to 32764 were expected"},
      {R"([{"type": "bytes", "file": "."}])", "cannot be read"},
      {R"([{"type": "f32", "size": 3, "file": "."}])", "cannot be read"},
      {R"([{"symbol": "s", "type": "f32", "value": 1}])", "the contents of the variable were expected"},
      {R"([{"type": "struct", "fields": [{"symbol": "s", "type": "f32", "size": 1}]}])",
       "a variable is not a field of a struct"},
      {R"([{"type": "null", "size": 3}])", "a null pointer takes no other member"}};
  for (const auto& [json, message] : cases) {
    const auto args = parse_arguments(json, "args.json", ".");
    ASSERT_FALSE(args) << json;
    const std::string text = to_string(args.error());
    EXPECT_NE(text.find(message), std::string::npos) << json << "\n" << text;
    EXPECT_TRUE(text.starts_with("args.json:")) << text;
    EXPECT_EQ(args.error().exit, Exit::kUsage) << json;
    // Only the line and its caret follow the message.
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  }
}

TEST(Arguments, TheCaretMarksTheError) {
  // Each case is the second argument, after a first one with the same words; $ marks the position of the error.
  const char* const cases[] = {
      R"({"type": "u32", "value": 4, "$fill": 1})",
      R"({"type": "u32", "value": $-1})",
      R"({"type": "u32", "value": [1, 2, $-1]})",
      R"({"type": "i32", "size": $"100"})",
      R"({"type": "i32", "size": 4, "fill": $"iotta"})",
      R"({"type": "i32", "size": 4, "values": [1, 2, $2.5, 4]})",
      R"({"type": "i32", "size": 4, "values": $[1]})",
      R"({"type": $"i33", "size": 4})",
      R"({"type": "i32", "size": 4, "$fil": 1})",
      R"(${"size": 4})",
      R"({"type": "i32", "size": 4, "fill": 1, "$file": "x"})",
      R"({"$name": "first", "type": "null"})",
      R"({"type": "struct", "fields": [{"type": "i32", "value": 4, "align": 8}, {"type": "f32", "value": 2, "align": $3}]})",
      R"({"type": "struct", "fields": [{"type": "u8", "value": 1}], "$size": 3})",
      R"({"name": "a \"size\" {", "type": "i32", "size": $0})",
      R"({"type": "i32", "size": 4, "expect": 1, "tolerance": $-1})",
      R"({"type": "i32", "size": 4, "expect": {"file": $"nowhere"}})",
      R"({"type": "i32", "$type": 1})",
      R"({"type" $"i32"})",
      R"({"type": "i32" $"size": 4})",
      R"({"type": "i32", $})",
      R"({"type": $i32})",
      R"({"type": "i32", "size": $04})",
      R"({"type": $"i32})"};
  for (const std::string marked : cases) {
    const std::string first = R"([{"name": "first", "type": "i32", "size": 4, "fill": 1, "expect": 1, "tolerance": 1},)"
                              "\n";
    const size_t at = marked.find('$');
    auto args = parse_arguments(first + " " + marked.substr(0, at) + marked.substr(at + 1) + "]", "args.json", ".");
    ASSERT_FALSE(args) << marked;
    EXPECT_EQ(args.error().where.line, 2) << marked << "\n" << to_string(args.error());
    // For a name, the position is inside its quotes.
    EXPECT_EQ(args.error().where.col, static_cast<int>(at) + 2) << marked << "\n" << to_string(args.error());
    ASSERT_EQ(args.error().notes.size(), 2u) << marked;
    // Excerpts begin at most 70 characters left of the caret.
    EXPECT_EQ(args.error().notes[1].find('^'), at < 70 ? at + 9 : 81) << marked;
  }
}

TEST(Arguments, BrokenJsonReportsTheExpectedToken) {
  const std::pair<std::string, const char*> cases[] = {
      {std::string("[false\0, 1]", 11), "1:2: error: not valid JSON: a value"},
      {"[\xef\xbb\xbf"
       "0]",
       "1:2: error: not valid JSON: a value"},
      {"", "1:1: error: not valid JSON: a value"},
      {"[", "1:2: error: not valid JSON: a value"},
      {"[1 2]", "1:4: error: not valid JSON: ',' or ']' was expected"},
      {R"([{"a": 1 "b": 2}])", "1:10: error: not valid JSON: ',' or '}'"},
      {R"([{"a": 1,}])", "1:10: error: not valid JSON: the name of a member in double quotes"},
      {"[{a: 1}]", "1:3: error: not valid JSON: the name of a member"},
      {R"([{"a" 1}])", "1:7: error: not valid JSON: ':'"},
      {"[1] 2", "1:5: error: not valid JSON: the end of the file"},
      {"[1,\n\n", "1:4: error: not valid JSON: a value"},
      {"[1e999]", "1:2: error: not valid JSON: a number as JSON writes it"},
      {"['a']", "1:2: error: not valid JSON: a value (a number, a \"string\""},
      {"[\"a]", "1:2: error: not valid JSON: a string with its closing quote"},
      {"[{\"a\": 1, \"a\": 2}]", "1:12: error: an object has the member \"a\" twice"},
      {"[{\"a\": 1, \"\\u0061\": 2}]", "an object has the member \"a\" twice"},
      {"[\"\xff\"]", "1:2: error: not valid JSON: a string"}};
  for (const auto& [json, message] : cases) {
    const auto args = parse_arguments(json, "args.json", ".");
    ASSERT_FALSE(args) << json;
    EXPECT_NE(to_string(args.error()).find(message), std::string::npos) << json << "\n" << to_string(args.error());
  }
}

TEST(Arguments, WholeNumbersHoweverTheyAreWritten) {
  EXPECT_EQ(contents(R"([{"type": "i32", "size": 2e0, "values": [1e3, -1000.0]}])"),
            (std::vector<double>{1000, -1000}));
  EXPECT_EQ(contents(R"([{"type": "u64", "size": 1, "fill": 9007199254740992.0}])"),
            (std::vector<double>{9007199254740992.0}));
  // The position is also right after a byte order mark and with other line breaks.
  const auto args = parse_arguments("\xef\xbb\xbf[\n{\"type\":\n\"u8\",\n\"value\": 256}]", "args.json", ".");
  ASSERT_FALSE(args);
  EXPECT_EQ(args.error().where.line, 4);
}

}  // namespace
}  // namespace roofgen::check::arguments_test

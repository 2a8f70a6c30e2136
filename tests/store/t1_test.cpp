// T1: the legal points of a description, and a recording beside it.
#include "tuner/recording/t1.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace roofgen::t1_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string described(const std::string& parameters, const std::string& conditions = "[]") {
  return "{\"ConfigurationSpace\": {\n\"TuningParameters\": " + parameters + ",\n\"Conditions\": " + conditions + "}}";
}
std::string parameter(const std::string& name, const std::string& type, const std::string& values) {
  return R"({"Name": ")" + name + R"(", "Type": ")" + type + R"(", "Values": ")" + values + "\"}";
}
std::string condition(const std::string& expression) {
  return R"([{"Parameters": ["x"], "Expression": ")" + expression + "\"}]";
}

const std::string kAll = "[" + parameter("x", "int", "[1, 2, 3]") + ", " + parameter("fast", "bool", "[True, False]") +
                         ", " + parameter("layout", "string", "['row', 'col']") + ", " +
                         parameter("scale", "float", "[1, 0.5]") + ", " + parameter("w", "uint", "[15]") + "]";

DescribedSpace space(const std::string& text) {
  auto read = read_t1(text, "t1.json");
  EXPECT_TRUE(read) << to_string(read.error());
  return read ? std::move(*read) : DescribedSpace();
}
std::string error_of(const std::string& text) {
  const auto read = read_t1(text, "t1.json");
  return read ? "" : to_string(read.error());
}

/// Of x, fast, layout and scale.
Recording recorded(const std::vector<std::tuple<int, bool, const char*, double>>& points) {
  RecordingBuilder builder("test");
  for (const auto& [x, fast, layout, scale] : points) {
    EXPECT_EQ(builder.value("x", x), "");
    EXPECT_EQ(builder.value("fast", fast), "");
    EXPECT_EQ(builder.value("layout", layout), "");
    EXPECT_EQ(builder.value("scale", scale), "");
    EXPECT_EQ(builder.finish({.row = {}, .seconds = 1}), "");
  }
  return builder.recording();
}

}  // namespace

TEST(T1, ConditionsChooseTheLegalPoints) {
  EXPECT_EQ(space(described(kAll)).legal.number, 3u * 2 * 2 * 2);
  EXPECT_EQ(space(described(kAll, condition("x > 1 or not fast"))).legal.number, 20u);
  EXPECT_EQ(space(described(kAll, condition("1 < x <= 2 and layout == 'row'"))).legal.number, 4u);
  EXPECT_EQ(space(described("[" + parameter("x", "int", "[4] + [8, 16]") + "]")).legal.number, 3u);
}

TEST(T1, DivisionIsThatOfPython) {
  const std::string two = "[" + parameter("x", "int", "[1, 2, 3, 4]") + "," + parameter("y", "int", "[2, 3]") + "]";
  EXPECT_EQ(space(described(two, condition("x / y == 1.5"))).legal.number, 1u);
  EXPECT_EQ(space(described(two, condition("x // y == 1"))).legal.number, 4u) << "2 // 2, 3 // 2, 3 // 3 and 4 // 3";
}

TEST(T1, ComprehensionsAreThoseOfPython) {
  const auto values = [](const std::string& text, const char* type = "int") {
    std::vector<std::string> out;
    const DescribedSpace read = space(described("[" + parameter("x", type, text) + "]"));
    if (!read.params.empty())
      for (const expr::Value& v : read.params[0].values) out.push_back(v.str());
    return out;
  };
  EXPECT_THAT(values("[i for i in range(3)]"), ElementsAre("0", "1", "2"));
  EXPECT_THAT(values("[2**i for i in range(2, 5)]"), ElementsAre("4", "8", "16"));
  EXPECT_THAT(values("[1] + [16 * k for k in range(1, 4)] + [x for x in [5, 7]]"),
              ElementsAre("1", "16", "32", "48", "5", "7"));
  EXPECT_THAT(values("[i for i in range(1, 20) if 12 % i == 0]"), ElementsAre("1", "2", "3", "4", "6", "12"));
  EXPECT_THAT(values("[(i if i > 1 else 9) for i in [1, 2]]"), ElementsAre("9", "2"));
  EXPECT_THAT(values("['for ' + s for s in ['in', ']']]", "string"), ElementsAre("for in", "for ]"));
  EXPECT_THAT(values("[f for f in [0.5, 2.0]]", "float"), ElementsAre("0.5", "2.0"));
}

TEST(T1, FaultsOfComprehensionsPointIntoThem) {
  const auto fault = [](const std::string& text) {
    return error_of(described("[" + parameter("x", "int", text) + "]"));
  };
  const std::string undefined = fault("[1] + [j for i in range(3)]");
  EXPECT_THAT(undefined, HasSubstr("t1.json:2:69: error: undefined name \"j\"")) << "the text begins at column 62";
  EXPECT_THAT(undefined, HasSubstr("\"Values\": \"[1] + [j for i in range(3)]\""));
  EXPECT_THAT(fault("[i for i in 3]"), HasSubstr("expected a list, found int"));
  EXPECT_THAT(fault("[i for i, j in [1]]"), HasSubstr("t1.json:2:"));
  EXPECT_THAT(fault("[i for 3 in [1]]"), HasSubstr("expected a name between \"for\" and \"in\", found \"3\""));
  EXPECT_THAT(fault("[i + j for i in [1] for j in [2]]"), HasSubstr("t1.json:2:"));
  EXPECT_THAT(fault("[i for i in range(3) if]"), HasSubstr("t1.json:2:"));
  EXPECT_THAT(fault("[[i for i in [1]] for j in [2]]"), HasSubstr("t1.json:2:"));
  EXPECT_THAT(fault("[i for i in range(3"), HasSubstr("t1.json:2:"));
  EXPECT_THAT(fault("[i for i in range(5000)]"), HasSubstr("5000 values of x; the limit is 4096"));
  EXPECT_THAT(fault("[i for i in range(100000)]"), HasSubstr("65536"));
}

TEST(T1, FaultsPointIntoTheFile) {
  const std::string x = "[" + parameter("x", "int", "[1, 2]") + "]";
  EXPECT_THAT(error_of(described(x, condition("x > > 1"))), HasSubstr("t1.json:3:"));
  EXPECT_THAT(error_of(described(x, condition("x > > 1"))), HasSubstr("^"));
  EXPECT_THAT(error_of(described(x, condition("xx > 1"))), HasSubstr("undefined name \"xx\"; did you mean \"x\"?"));
  EXPECT_THAT(error_of(described(x, condition("xx > 1"))), HasSubstr("^"));
  EXPECT_THAT(error_of(described(x, "3")), HasSubstr("expected a list as \"Conditions\""));
  EXPECT_THAT(error_of(described("[" + parameter("x", "int", "3") + "]")), HasSubstr("expected a list of values"));
  EXPECT_THAT(error_of(described("[" + parameter("x", "uint", "[1, -1]") + "]")),
              HasSubstr("expected values of the type uint, found -1"));
  EXPECT_THAT(error_of(described("[" + parameter("x", "bool", "[1]") + "]")), HasSubstr("type bool"));
  EXPECT_THAT(error_of(described("[" + parameter("x", "integer", "[1]") + "]")), HasSubstr("unknown type \"integer\""));
  EXPECT_THAT(error_of(described("[" + parameter("x", "int", "[1]") + "," + parameter("x", "int", "[1]") + "]")),
              HasSubstr("\"x\" occurs twice"));
  EXPECT_THAT(error_of(described("[]")), HasSubstr("at least one parameter"));
  EXPECT_THAT(error_of("{\"cache\": {}}"), HasSubstr("expected a T1 file"));
  EXPECT_THAT(error_of("[1"), HasSubstr("not valid JSON"));
  const auto read = read_t1("{}", "t1.json");
  EXPECT_EQ(read.error().exit, Exit::kUsage);
}

TEST(T1, ARecordingIsHeldAgainstItsDescription) {
  const std::string text = described(kAll, condition("x != 2 and scale < 1"));
  const auto result = compare(recorded({{1, true, "row", 0.5},
                                        {2, true, "row", 0.5},
                                        {1, false, "col", 0.5},
                                        {3, false, "col", 1.0},
                                        {7, true, "row", 0.5}}),
                              space(text));
  ASSERT_TRUE(result) << to_string(result.error());
  EXPECT_EQ(result->combinations, 24u);
  EXPECT_EQ(result->legal, 8u);
  EXPECT_EQ(result->illegal, 3u);
  EXPECT_THAT(result->illegal_examples,
              ElementsAre("x=2 fast=true layout=row scale=0.5", "x=3 fast=false layout=col scale=1.0",
                          "x=7 fast=true layout=row scale=0.5"));
  EXPECT_EQ(result->unrecorded, 6u);
  ASSERT_EQ(result->unrecorded_examples.size(), 3u);
  EXPECT_EQ(result->unrecorded_examples[0], "x=1 fast=True layout=col scale=0.5");
}

TEST(T1, OtherParametersAreAnError) {
  const Recording r = recorded({{1, true, "row", 0.5}, {2, false, "col", 1}});
  const auto less = compare(r, space(described("[" + parameter("x", "int", "[1, 2]") + "]")));
  EXPECT_EQ(less.error().exit, Exit::kUsage);
  EXPECT_EQ(less.error().message, "the description has no parameter \"fast\" of the recording; known: x");
  const std::string more = kAll.substr(0, kAll.size() - 1) + ", " + parameter("fasts", "int", "[1, 2]") + "]";
  EXPECT_EQ(compare(r, space(described(more))).error().message,
            "the recording has no parameter \"fasts\" of the description; did you mean \"fast\"?");
}

}  // namespace roofgen::t1_test

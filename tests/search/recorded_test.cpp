#include "tuner/replay/recorded.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace roofgen::recorded_test {

namespace {

const char* const kCachefile = R"({"device_name": "A100", "kernel_name": "k", "tune_params_keys": ["x", "fast", "one"],
"tune_params": {}, "objective": "time", "cache": {
"8,True,1": {"x": 8, "fast": true, "one": 1, "time": 2.5},
"16,True,1": {"x": 16, "fast": true, "one": 1, "time": "CompilationFailedConfig"},
"8,False,1": {"x": 8, "fast": false, "one": 1, "time": 1.5}}})";
const char* const kT4 = R"({"metadata": {"timeunit": "miliseconds"}, "schema_version": "1.0.0", "results": [
{"configuration": {"x": 1}, "invalidity": "correct", "objectives": ["time"],
 "measurements": [{"name": "energy", "value": 7, "unit": ""}, {"name": "time", "value": 4, "unit": ""}]},
{"configuration": {"x": 2}, "invalidity": "runtime", "objectives": ["time"],
 "measurements": [{"name": "time", "value": "RuntimeFailedConfig", "unit": ""}]}]})";
const char* const kKtt = R"({"Metadata": {"Device": "RTX 3090", "TimeUnit": "Microseconds"}, "Results": [
{"Configuration": [{"Name": "X", "Value": 2}], "Status": "Ok", "TotalDuration": 50.0},
{"Configuration": [{"Name": "X", "Value": 4}], "Status": "ComputationFailed", "TotalDuration": 0.0}]})";

std::string packed(const std::string& text) {
  std::string out(compressBound(text.size()) + 32, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string with(std::string text, const std::string& old, const std::string& now) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), now);
}

void expect_refused(const std::string& text, const std::string& words, int line) {
  const auto space = read_recorded(text, "f.json");
  ASSERT_FALSE(space) << words;
  EXPECT_EQ(space.error().exit, Exit::kUsage);
  EXPECT_NE(space.error().message.find(words), std::string::npos) << to_string(space.error());
  EXPECT_EQ(space.error().where.file, "f.json");
  EXPECT_EQ(space.error().where.line, line) << to_string(space.error());
}

}  // namespace

TEST(Recorded, ReadsACachefileOfKernelTuner) {
  for (const std::string& text : {std::string(kCachefile), packed(kCachefile)}) {
    const auto space = read_recorded(text, "f.json");
    ASSERT_TRUE(space) << to_string(space.error());
    EXPECT_EQ(space->format, "Kernel Tuner cachefile");
    EXPECT_EQ(space->device, "A100");
    EXPECT_EQ(space->kernel, "k");
    ASSERT_EQ(space->space.points.axes().size(), 2u);  // "one" has one value
    EXPECT_EQ(space->space.points.axes()[0].numbers, (std::vector<double>{8, 16}));
    EXPECT_EQ(space->space.points.axes()[1].labels, (std::vector<std::string>{"true", "false"}));
    EXPECT_TRUE(space->space.points.axes()[1].numbers.empty());
    EXPECT_EQ(space->results.size(), 3u);
    EXPECT_EQ(space->failed, 1u);
    EXPECT_DOUBLE_EQ(space->best, 1.5e-3);
    const auto slow = space->space.points.find(std::vector<uint16_t>{0, 0});
    ASSERT_TRUE(slow);
    EXPECT_DOUBLE_EQ(space->results[*slow].seconds, 2.5e-3);
  }
}

TEST(Recorded, ReadsACachefileWithoutItsEnd) {
  const std::string text = kCachefile;
  for (const std::string& cut : {text.substr(0, text.size() - 2), text.substr(0, text.find("\n\"8,False")) + "\n"}) {
    const auto space = read_recorded(cut, "f.json");
    ASSERT_TRUE(space) << to_string(space.error());
    EXPECT_GE(space->results.size(), 2u);
  }
}

TEST(Recorded, ReadsTheErrorsOfLaterCachefiles) {
  const auto space = read_recorded(
      with(kCachefile, "\"time\": \"CompilationFailedConfig\"", "\"time\": 1e20, \"__error__\": \"CompilationFailed\""),
      "f.json");
  ASSERT_TRUE(space) << to_string(space.error());
  EXPECT_EQ(space->failed, 1u);
}

TEST(Recorded, ReadsT4AndKtt) {
  const auto t4 = read_recorded(kT4, "f.json"), ktt = read_recorded(kKtt, "f.json");
  ASSERT_TRUE(t4) << to_string(t4.error());
  ASSERT_TRUE(ktt) << to_string(ktt.error());
  EXPECT_DOUBLE_EQ(t4->best, 4e-3);
  EXPECT_EQ(t4->failed, 1u);
  EXPECT_DOUBLE_EQ(ktt->best, 50e-6);
  EXPECT_EQ(ktt->failed, 1u);
  EXPECT_EQ(ktt->device, "RTX 3090");
}

TEST(Recorded, PredictedTimesOfAllPointsAreThoseOfTheSpace) {
  const char* const t4 = R"({"metadata": {"timeunit": "milliseconds"}, "results": [
{"configuration": {"x": 1}, "objectives": ["time"], "invalidity": "correct",
 "measurements": [{"name": "time", "value": 4}, {"name": "predicted", "value": 3}]},
{"configuration": {"x": 2}, "objectives": ["time"], "invalidity": "compile",
 "measurements": [{"name": "time", "value": "spill"}, {"name": "predicted", "value": 5}]}]})";
  const auto space = read_recorded(t4, "f.json");
  ASSERT_TRUE(space) << to_string(space.error());
  EXPECT_EQ(space->space.predicted, (std::vector<double>{3e-3, 5e-3}));
  const auto one = read_recorded(with(t4, ", {\"name\": \"predicted\", \"value\": 5}", ""), "f.json");
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_TRUE(one->space.predicted.empty());
}

TEST(Recorded, APointThatOccursTwiceCountsOnceWithItsLastResult) {
  const auto space =
      read_recorded(with(kKtt, "\"Value\": 4}], \"Status\": \"ComputationFailed\", \"TotalDuration\": 0.0}",
                         "\"Value\": 4}], \"Status\": \"Ok\", \"TotalDuration\": 9.0},\n"
                         "{\"Configuration\": [{\"Name\": \"X\", \"Value\": 4}], \"Status\": \"Ok\", "
                         "\"TotalDuration\": 70.0}"),
                    "f.json");
  ASSERT_TRUE(space) << to_string(space.error());
  EXPECT_EQ(space->results.size(), 2u);
  EXPECT_DOUBLE_EQ(space->best, 50e-6);
}

TEST(Recorded, RefusesWithThePlace) {
  expect_refused("{}", "expected a Kernel Tuner cachefile", 1);
  expect_refused(with(kCachefile, "\"x\": 16, ", ""), "expected an object with \"x\"", 4);
  expect_refused(with(kCachefile, "\"time\": 2.5", "\"time\": -1"), "expected a time above 0", 3);
  expect_refused(with(kCachefile, "\"time\": 2.5", "\"time\": [1]"), "expected a number or a string as \"time\"", 3);
  expect_refused(with(kCachefile, "\"x\": 8", "\"x\": {}"), "expected a number, a string or a boolean", 3);
  expect_refused(with(kT4, "\"x\": 2", "\"y\": 2"), "\"y\" is not a parameter of the points before", 4);
  expect_refused(with(kT4, "miliseconds", "fortnights"), "expected seconds", 1);
  expect_refused(with(kT4, "\"name\": \"time\"", "\"name\": \"tim\""), "expected a number as the measurement \"time\"",
                 3);
  expect_refused(with(kKtt, "\"TotalDuration\": 50.0", "\"TotalDuration\": \"x\""), "expected a number", 2);
  expect_refused(with(kKtt, "\"Ok\"", "\"Failed\""), "no point has a time", 1);
  expect_refused(with(kKtt, "\"Value\": 4", "\"Value\": 2"), "expected points that differ", 1);
}

TEST(Recorded, RefusesGzipThatEndsEarlyOrIsNone) {
  const std::string text = packed(kCachefile);
  const auto early = read_recorded(text.substr(0, text.size() / 2), "f.json.gz");
  ASSERT_FALSE(early);
  EXPECT_NE(early.error().message.find("end too early"), std::string::npos);
  const auto none = read_recorded("\x1f\x8bno", "f.json.gz");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("invalid gzip data"), std::string::npos);
}

TEST(Recorded, EveryPrefixAndFlippedByteIsReadOrRefused) {
  for (const std::string text : {kCachefile, kT4, kKtt})
    for (size_t i = 0; i < text.size(); ++i) {
      const auto cut = read_recorded(text.substr(0, i), "f.json");
      EXPECT_TRUE(!cut || cut->best > 0) << i;
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
      const auto space = read_recorded(flipped, "f.json");
      EXPECT_TRUE(!space || space->best > 0) << i;
    }
}

}  // namespace roofgen::recorded_test

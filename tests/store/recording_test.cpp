// Formats of other tuners: round trips through the writer and the store, and the traps of real files.
#include "tuner/recording/recording.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/process.h"
#include "tuner/store/exchange.h"

namespace roofgen::recording_test {

namespace {

namespace fs = std::filesystem;

const char* const kCachefile = R"({"device_name": "A100", "kernel_name": "convolution", "problem_size": [4096, 4096],
"tune_params_keys": ["x", "fast", "layout", "scale"], "tune_params": {}, "objective": "time", "cache": {
"8,True,row,0.5": {"x": 8, "fast": true, "layout": "row", "scale": 0.5, "time": 3.8753279224038124},
"16,True,row,0.5": {"x": 16, "fast": true, "layout": "row", "scale": 0.5, "time": "CompilationFailedConfig"},
"16,False,row,1.5": {"x": 16, "fast": false, "layout": "row", "scale": 1.5, "time": "InvalidConfig"},
"32,False,col,1.5": {"x": 32, "fast": false, "layout": "col", "scale": 1.5, "time": 1e20},
"8,False,col,1.5": {"x": 8, "fast": false, "layout": "col", "scale": 1.5, "time": 0.1}}})";
const char* const kKtt = R"({"Metadata": {"Device": "RTX 3090", "TimeUnit": "Microseconds"}, "Results": [
{"KernelName": "k", "Configuration": [{"Name": "X", "Value": 2}], "Status": "Ok", "TotalDuration": 46268.736},
{"KernelName": "k", "Configuration": [{"Name": "X", "Value": 4}], "Status": "ValidationFailed", "TotalDuration": 0.0},
{"KernelName": "k", "Configuration": [{"Name": "X", "Value": 8}], "Status": "CompilationFailed", "TotalDuration": 0.0},
{"KernelName": "k", "Configuration": [{"Name": "X", "Value": 9}], "Status": "DeviceLimitsExceeded"}]})";
const char* const kWisdom = R"({"version": "1.0", "objective": "time", "tunable_parameters": ["bx", "by"], "key": "add"}
{"config": [2, 1], "problem_size": [100, 100], "environment": {"device_name": "K20"}, "time": 0.5}
{"config": [3, 1], "problem_size": [100, 100], "environment": {"device_name": "GTX"}, "time": 1.0}
# comment
{"config": [4, 1], "problem_size": [100, 100], "environment": {"device_name": "K20"}, "time": 0.25}
{"config": [4, 1], "problem_size": [200], "environment": {"device_name": "K20"}, "time": 2}
)";

std::vector<Recording> read_all(const std::string& text) {
  auto read = read_recordings(text, "f.json");
  EXPECT_TRUE(read) << to_string(read.error());
  return read ? *read : std::vector<Recording>(1);
}
Recording read(const std::string& text) { return read_all(text).at(0); }

std::string written(const Recording& r, const std::string& format) {
  const auto text = write_recording(r, format);
  EXPECT_TRUE(text) << to_string(text.error());
  return text ? *text : "";
}

void expect_refused(const std::string& text, const std::string& words, int line, int col = 0) {
  const auto got = read_recordings(text, "f.json");
  ASSERT_FALSE(got) << words;
  EXPECT_EQ(got.error().exit, Exit::kUsage);
  EXPECT_NE(got.error().message.find(words), std::string::npos) << to_string(got.error());
  EXPECT_EQ(got.error().where.file, "f.json");
  EXPECT_EQ(got.error().where.line, line) << to_string(got.error());
  EXPECT_TRUE(col == 0 || got.error().where.col == col) << to_string(got.error());
}

std::string with(std::string text, const std::string& old, const std::string& now) {
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), now);
}

/// Points by their configuration: "failure" or the seconds.
std::map<std::string, std::pair<std::string, double>> results(const Recording& r) {
  std::map<std::string, std::pair<std::string, double>> out;
  for (const Recording::Point& p : r.points) out[json_line(r.configuration(p))] = {p.failure, p.seconds};
  return out;
}

/// The cachefile has one word for what failed at run time, and none for a time-out or wrong results.
std::map<std::string, std::pair<std::string, double>> as_cachefile(
    std::map<std::string, std::pair<std::string, double>> all) {
  for (auto& [configuration, result] : all)
    if (result.first == "correctness" || result.first == "timeout") result.first = "runtime";
  return all;
}

/// File -> store -> file -> reader, in each format that has all points.
void expect_round_trips(const Recording& first) {
  testing::TempDir dir;
  auto store = Store::open(dir / "s.sqlite");
  ASSERT_TRUE(store);
  const auto added = store->add(trials_of(first));
  ASSERT_TRUE(added) << to_string(added.error());
  EXPECT_EQ(*added, static_cast<int64_t>(first.points.size()));
  EXPECT_EQ(*store->add(trials_of(first)), 0) << "again";
  const auto exported = recording_of(*store->trials({}), "");
  ASSERT_TRUE(exported) << to_string(exported.error());
  EXPECT_EQ(results(exported->recording), results(first));
  for (const std::string format : {"t4", "cachefile"}) {
    const Recording again = read(written(exported->recording, format));
    EXPECT_EQ(results(again), format == "t4" ? results(first) : as_cachefile(results(first))) << format;
    EXPECT_EQ(again.device, first.device);
    EXPECT_EQ(again.kernel, first.kernel);
    EXPECT_EQ(again.problem, first.problem);
    EXPECT_EQ(again.origin, "recorded");
    EXPECT_EQ(again.names, first.names);
  }
}

}  // namespace

TEST(Recording, RoundTripsKeepPointsTimesAndFailures) {
  expect_round_trips(read(kCachefile));
  const Recording first = read(kCachefile);
  ASSERT_EQ(first.points.size(), 5u);
  EXPECT_EQ(first.points[1].failure, "compile");
  EXPECT_EQ(first.points[2].failure, "constraints");
  EXPECT_EQ(first.points[3].failure, "runtime");
  EXPECT_DOUBLE_EQ(first.points[4].seconds, 1e-4);
  expect_round_trips(read(written(first, "t4")));
}

TEST(Recording, KttIsImported) {
  const Recording ktt = read(kKtt);
  EXPECT_EQ(ktt.kernel, "k");
  ASSERT_EQ(ktt.points.size(), 4u);
  EXPECT_EQ(ktt.points[1].failure, "correctness");
  EXPECT_EQ(ktt.points[2].failure, "compile");
  EXPECT_EQ(ktt.points[3].failure, "constraints");
  EXPECT_EQ(ktt.points[3].reason, "DeviceLimitsExceeded");
  expect_round_trips(read(written(ktt, "t4")));
}

TEST(Recording, WisdomHasARecordingForEachProblemAndDevice) {
  const std::vector<Recording> all = read_all(kWisdom);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].device, "K20");
  EXPECT_EQ(all[0].kernel, "add");
  EXPECT_EQ(all[0].points.size(), 2u);
  EXPECT_DOUBLE_EQ(all[0].points[1].seconds, 0.25e-3);
  EXPECT_EQ(all[1].device, "GTX");
  EXPECT_EQ(all[2].problem, Json::array({200}));
  const std::vector<Recording> again = read_all(written(all[0], "wisdom"));
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(results(again[0]), results(all[0]));
  EXPECT_EQ(again[0].problem, all[0].problem);
  EXPECT_EQ(again[0].device, all[0].device);
}

TEST(Recording, WisdomHasTheFiveFastestPoints) {
  std::string text = kWisdom;
  for (int i = 10; i < 20; ++i)
    text += "{\"config\": [" + std::to_string(i) +
            ", 1], \"problem_size\": [100, 100], \"environment\": "
            "{\"device_name\": \"K20\"}, \"time\": 0." +
            std::to_string(i) + "}\n";
  const Recording best = read(written(read_all(text)[0], "wisdom"));
  ASSERT_EQ(best.points.size(), 5u);
  EXPECT_DOUBLE_EQ(best.points[0].seconds, 0.10e-3);
  EXPECT_DOUBLE_EQ(best.points[4].seconds, 0.14e-3);
}

TEST(Recording, T1DescribesTheParameters) {
  const Json t1 = parse_json(written(read(kCachefile), "t1"));
  const Json& parameters = t1.at("ConfigurationSpace").at("TuningParameters");
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0], (Json{{"Name", "x"}, {"Type", "uint"}, {"Values", "[8, 16, 32]"}}));
  EXPECT_EQ(parameters[1], (Json{{"Name", "fast"}, {"Type", "bool"}, {"Values", "[True, False]"}}));
  EXPECT_EQ(parameters[2], (Json{{"Name", "layout"}, {"Type", "string"}, {"Values", "['row', 'col']"}}));
  EXPECT_EQ(parameters[3], (Json{{"Name", "scale"}, {"Type", "float"}, {"Values", "[0.5, 1.5]"}}));
  for (const char* required : {"Language", "KernelName", "KernelFile", "GlobalSize", "LocalSize"})
    EXPECT_TRUE(t1.at("KernelSpecification").contains(required)) << required;
}

// ---- Traps of real files -------------------------------------------------------------------------

// Kernel Tuner 1.4 writes the results before the metadata, and failed points as correct with a benchmark time.
TEST(Recording, T4WithItsMetadataAtTheEnd) {
  const Recording r = read(R"({"results": [
{"configuration": {"x": 1}, "times": {"compilation": 1, "benchmark": 2, "framework": 0, "search_algorithm": 0,
 "validation": 0, "runtimes": [4]}, "invalidity": "correct", "correctness": 1, "objectives": ["time"],
 "measurements": [{"name": "time", "value": 4, "unit": "ms"}, {"name": "GFLOP/s", "value": 7, "unit": ""}]},
{"configuration": {"x": 2}, "times": {"runtimes": []}, "invalidity": "compile", "correctness": 1}],
"schema_version": "1.0.0", "metadata": {"timeunit": "microseconds"}})");
  ASSERT_EQ(r.points.size(), 2u);
  EXPECT_DOUBLE_EQ(r.points[0].seconds, 4e-6);
  EXPECT_EQ(r.points[1].failure, "compile");
}

// The objective need not be the first measurement, nor be named "time".
TEST(Recording, T4WithAnotherNameOfTheObjective) {
  const Recording r = read(R"({"metadata": {"timeunit": "seconds"}, "results": [
{"configuration": {"x": 1}, "invalidity": "correct", "objectives": ["run"],
 "measurements": [{"name": "energy", "value": 4}, {"name": "run", "value": 0.5}]}]})");
  EXPECT_DOUBLE_EQ(r.points.at(0).seconds, 0.5);
}

TEST(Recording, ACachefileHasOneSizeOrAList) {
  EXPECT_EQ(read(with(kCachefile, "[4096, 4096]", "20000000")).problem, Json(20000000));
  EXPECT_EQ(read(with(kCachefile, "[4096, 4096]", "[7]")).problem, Json::array({7}));
  EXPECT_EQ(read(with(kCachefile, "[4096, 4096]", "\"callable\"")).problem, Json("callable"));
}

TEST(Recording, ACutOffCachefileIsReadUpToItsLastPoint) {
  const std::string text = kCachefile;
  for (const std::string& cut :
       {text.substr(0, text.size() - 2), text.substr(0, text.size() - 1), text.substr(0, text.size() - 2) + ",\n"})
    EXPECT_EQ(results(read(cut)), results(read(text)));
  expect_refused(text.substr(0, text.size() - 20), "not valid JSON", 7);
}

TEST(Recording, APointThatACachefileHasTwiceCountsOnce) {
  const Recording r = read(with(kCachefile, "\"8,False,col,1.5\"", R"("8,True,row,0.5": {"x": 8, "fast": true, "layout":
"row", "scale": 0.5, "time": 9.0}, "8,False,col,1.5")"));
  EXPECT_EQ(r.points.size(), 5u);
  EXPECT_DOUBLE_EQ(r.points[0].seconds, 9e-3);
}

// ---- Hostile files -------------------------------------------------------------------------------

TEST(Recording, RefusesWithLineAndColumn) {
  expect_refused("[1]", "expected an object", 1, 1);
  expect_refused("{}", "expected a Kernel Tuner cachefile", 1, 1);
  expect_refused(with(kCachefile, "\"x\": 16, ", ""), "expected an object with \"x\"", 4);
  expect_refused(with(kCachefile, "\"time\": 0.1", "\"time\": -0.1"), "expected a time above 0", 7);
  expect_refused(with(kCachefile, "\"x\": 32", "\"x\": 32, \"x\": 32"), "an object has the member \"x\" twice", 6);
  expect_refused(with(kCachefile, "\"x\": 32", "\"x\": 32 \"x\""), "not valid JSON", 6);
  expect_refused(with(kCachefile, "\"fast\": false, \"layout\": \"col\"", "\"fast\": [1], \"layout\": \"col\""),
                 "expected a number, a string or a boolean as \"fast\"", 6);
}

TEST(Recording, RefusesWisdomWithItsLine) {
  expect_refused(with(kWisdom, "\"time\": 0.25", "\"time\": \"x\""), "expected a number as \"time\"", 5);
  expect_refused(with(kWisdom, "[3, 1]", "[3]"), "expected 2 values as \"config\"", 3);
  expect_refused(with(kWisdom, ", \"time\": 1.0", ""), "expected an object with \"time\"", 3);
  expect_refused(with(kWisdom, "\"1.0\"", "\"2.0\""), "expected the version", 1);
  expect_refused(with(kWisdom, "\"objective\": \"time\"", "\"objective\": \"energy\""), "expected the objective", 1);
  expect_refused(with(kWisdom, "[4, 1], \"problem_size\": [200]", "[4, 1, \"problem_size\": [200]"), "not valid JSON",
                 6);
}

TEST(Recording, LimitsHold) {
  EXPECT_FALSE(read_recordings(std::string(100'000, '['), "f.json"));
  EXPECT_FALSE(read_recordings("{\"cache\": " + std::string(100'000, '['), "f.json"));
  std::string many = "{\"Metadata\": {\"TimeUnit\": \"Seconds\"}, \"Results\": [{\"Configuration\": [";
  for (int i = 0; i < 65; ++i) many += (i ? ", " : "") + ("{\"Name\": \"p" + std::to_string(i) + "\", \"Value\": 1}");
  expect_refused(many + "], \"Status\": \"Ok\", \"TotalDuration\": 1}]}", "more than 64 parameters", 1);
  std::string values = "{\"Metadata\": {\"TimeUnit\": \"Seconds\"}, \"Results\": [";
  for (int i = 0; i < 4097; ++i)
    values += (i ? ",\n" : "") + ("{\"Configuration\": [{\"Name\": \"p\", \"Value\": " + std::to_string(i) +
                                  "}], \"Status\": \"Ok\", \"TotalDuration\": 1}");
  expect_refused(values + "]}", "more than 4096 values of \"p\"", 4097);
}

// 300,000 members of one object, and an item of 300,000 members: time must grow with the size alone.
TEST(Recording, LongObjectsTakeLinearTime) {
  std::string cache = R"({"tune_params_keys": ["x", "y"], "cache": {)", item = R"({"Metadata": {)";
  for (int i = 0; i < 300'000; ++i) {
    const std::string x = std::to_string(i % 1000), y = std::to_string(i / 1000);
    cache += (i ? ",\"" : "\"") + x + "," + y + "\": {\"x\": " + x + ", \"y\": " + y + ", \"time\": 1}";
    item += (i ? ",\"" : "\"") + std::to_string(i) + "\": 1";
  }
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(read(cache + "}}").points.size(), 300'000u);
  EXPECT_FALSE(read_recordings(item + "}}", "f.json"));
  EXPECT_FALSE(read_recordings("{\"a\": [" + item + "}}]}", "f.json"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(60));
}

// ---- Recorded spaces of the benchmark hub, where they are ----------------------------------------

TEST(SlowRecording, RoundTripsOfRecordedSpaces) {
  const fs::path folder = fs::path(ROOFGEN_SOURCE_DIR).parent_path() / "shared/recorded-spaces";
  if (!fs::exists(folder)) GTEST_SKIP() << "no recorded spaces";
  std::map<std::string, std::pair<std::string, double>> cachefile, t4;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".gz") continue;
    SCOPED_TRACE(entry.path().filename());
    Recording first = read(testing::read_text(entry.path()));
    if (entry.path().filename() == "convolution_A100.json.gz") cachefile = results(first);
    if (entry.path().filename() == "convolution_A100_T4.json.gz") t4 = results(first);
    // A time in microseconds need not be one of milliseconds: the first way rounds, all later ones keep it.
    if (first.format == "KTT") first = read(written(first, "t4"));
    expect_round_trips(first);
  }
  EXPECT_EQ(cachefile.size(), 4362u);
  EXPECT_EQ(cachefile, t4);
}

// ---- Trials of the store -------------------------------------------------------------------------

TEST(Exchange, OwnTrialsOfOneSpaceAreExported) {
  StoredTrial t;
  t.op = "gemm";
  t.problem = "gemm bf16 K=64 M=8 N=16";
  t.device = "H200 SXM";
  t.variant = t.stage = "tiled";
  t.outcome = StoredTrial::kVerified;
  t.origin = "model";
  t.time_model = "interval model";
  std::vector<StoredTrial> all;
  for (int i = 0; i < 3; ++i) {
    t.params = "{\"BM\":" + std::to_string(64 << i) + "}";
    t.seconds = 1e-6 * (i + 1);
    all.push_back(t);
  }
  StoredTrial event = all[0], failed = t;
  event.time_model = "event model";
  failed.params = "{\"BM\":1}";
  failed.outcome = "verify";
  failed.reason = "3 rows differ";
  failed.seconds.reset();
  failed.origin = failed.time_model = "";
  all.push_back(event);
  all.push_back(failed);
  const auto out = recording_of(all, "");
  ASSERT_TRUE(out) << to_string(out.error());
  EXPECT_EQ(out->times, "interval model");
  EXPECT_EQ(out->left_out, 1u);
  EXPECT_EQ(out->recording.points.size(), 4u);
  EXPECT_EQ(out->recording.points[3].failure, "correctness");
  EXPECT_EQ(out->recording.kernel, "gemm-tiled");
  // A file never presents modelled times as measurements.
  const Recording again = read(written(out->recording, "t4"));
  EXPECT_EQ(again.origin, "model: interval model");
  EXPECT_EQ(trials_of(again)[0].origin, "model: interval model");
  EXPECT_NE(trials_of(again)[0].source, StoredTrial::kOwn);
  const std::string wisdom = written(out->recording, "wisdom");
  EXPECT_EQ(read(wisdom).problem, Json::array({64, 8, 16}));
  EXPECT_NE(wisdom.find("interval model"), std::string::npos);
  EXPECT_EQ(recording_of(all, "event model")->recording.points.size(), 2u);
  all.back().variant = "split";
  const auto two = recording_of(all, "");
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("trials of 2 spaces fit"), std::string::npos);
}

}  // namespace roofgen::recording_test

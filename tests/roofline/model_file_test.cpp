// Errors in a model file: the problem, its position, and the expected input.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "model_support.h"

namespace roofgen::model_file_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGood = R"({
  "schema": "roofgen.model/1",
  "name": "mine",
  "title": "one product",
  "source": "this test",
  "params": {"layers": 2, "d_model": 64},
  "let": [["wide", "4 * d_model"]],
  "dtypes": [{"name": "fp16", "roles": {"weights": "fp16"}}],
  "phases": [{"name": "decode", "help": "h", "length": "kv", "default": 8, "yields": "batch", "unit": "tokens"}],
  "operators": [
    {"name": "up", "op": "gemm", "count": "layers", "dims": {"M": "tokens", "N": "wide", "K": "d_model"},
     "dtypes": {"a": "weights", "b": "weights"}, "tp": ["N"], "weights": {"elements": "wide * d_model", "dtype": "weights"},
     "after": {"op": "all_reduce", "elements": "tokens * wide", "dtype": "weights"}}
  ],
  "kv_cache": [{"elements": "batch * kv", "dtype": "fp8"}]
})";

class ModelFile : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(dir_ / "models");
  }
  void TearDown() override { fs::remove_all(dir_); }

  Result<Model> load(const std::string& text) {
    std::ofstream(dir_ / "models/mine.json") << text;
    return load_model(DataFiles({dir_.string()}), "mine");
  }
  /// The error of the valid file with `from` replaced by `to`.
  std::string fault(const std::string& from, const std::string& to) {
    std::string text = kGood;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto model = load(text);
    EXPECT_FALSE(model) << to;
    return model ? "" : to_string(model.error());
  }

  fs::path dir_;
};

TEST_F(ModelFile, OfAUserRuns) {
  const auto model = load(kGood);
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(*parameter_count(*model), 2 * 256 * 64);
  ModelRequest q;
  q.batch = 3;
  const ModelRun r = run_of(*model, device_named("h100-sxm"), q);
  EXPECT_EQ(r.flops, 2 * 2.0 * 3 * 256 * 64);
  EXPECT_EQ(r.memory.kv_cache, 3 * 8);
}

TEST_F(ModelFile, FaultsNameTheirPlace) {
  const struct {
    const char *from, *to, *expected;
  } cases[] = {
      {"roofgen.model/1", "roofgen.model/2", "mine.json:2:14: error: schema must be \"roofgen.model/1\""},
      {"\"name\": \"mine\"", "\"name\": \"other\"", "mine.json:3:12: error: \"name\" is other, the file's is mine"},
      {"\"title\"", "\"titel\"", "mine.json:4:4: error: unknown key \"titel\"; did you mean \"title\"?"},
      {"\"d_model\": 64", "\"d_model\": 6.4", "mine.json:6:28: error: \"d_model\" must be an integer"},
      {"\"d_model\": 64", "\"batch\": 64", "mine.json:6:28: error: \"batch\" is given on the command line"},
      {"4 * d_model", "4 * d_modle", "mine.json:7:21: error: undefined name \"d_modle\"; did you mean \"d_model\"?"},
      {"\"weights\": \"fp16\"", "\"weights\": \"bf61\"",
       "mine.json:8:53: error: unknown dtype \"bf61\"; did you mean \"bf16\"?"},
      {"\"length\": \"kv\"", "\"length\": \"tokens\"", "error: \"length\" is \"kv\""},
      {"\"default\": 8", "\"default\": 0", "\"default\" of decode must be a positive integer"},
      {"\"op\": \"gemm\"", "\"op\": \"gem\"",
       "mine.json:11:27: error: unknown operator \"gem\"; did you mean \"gemm\"?"},
      {"\"M\": \"tokens\", ", "", "mine.json:11:15: error: up needs M (gemm)"},
      {"\"K\": \"d_model\"", "\"KK\": \"d_model\"", "error: dims of up: gemm has no \"KK\""},
      {"\"K\": \"d_model\"", "\"K\": \"d_model +\"", "mine.json:11:"},
      {"\"a\": \"weights\"", "\"x\": \"weights\"", "error: gemm has no operand dtype \"x\""},
      {"\"a\": \"weights\"", "\"a\": \"weigths\"",
       "error: \"weigths\" is neither a role of dtypes nor a number format; did you mean \"weights\"?"},
      {"[\"N\"]", "[\"n\"]", "error: \"tp\" of up divides \"n\", no dimension of gemm"},
      {"{\"elements\": \"wide * d_model\"", "{\"tp\": true, \"elements\": \"wide * d_model\"",
       "mine.json:11:15: error: \"weights\" of up have no \"tp\" of their own"},
      {"all_reduce", "all_reduc", "is not a collective: \"all_reduc\"; did you mean \"all_reduce\"?"},
      {"\"op\": \"all_reduce\"", "\"op\": \"copy\"", "is not a collective: \"copy\""},
      {"\"operators\": [", "\"operators\": [[], ", "an object was expected"},
      {"{\"layers\": 2, \"d_model\": 64}", "[]", "mine.json:6:4: error: \"params\" must be an object of integers"},
  };
  for (const auto& c : cases) {
    const std::string message = fault(c.from, c.to);
    EXPECT_NE(message.find(c.expected), std::string::npos) << c.to << ": " << message;
  }
}

TEST_F(ModelFile, ValuesThatMakeNoSenseAreErrorsOfTheRun) {
  std::string text = kGood;
  text.replace(text.find("4 * d_model"), 11, "0 * d_model");
  const auto model = load(text);
  ASSERT_TRUE(model);
  const auto run = run_model(*model, device_named("h100-sxm"), {});
  ASSERT_FALSE(run);
  EXPECT_NE(to_string(run.error()).find("gemm: this does not hold: N >= 1 (0 < 1)"), std::string::npos)
      << to_string(run.error());
  EXPECT_NE(to_string(run.error()).find("in operator up of mine"), std::string::npos);
}

TEST_F(ModelFile, ALetThatOverflowsAtALargeBatchEndsTheSearchForTheLargest) {
  std::string text = kGood;
  text.replace(text.find("[\"wide\", \"4 * d_model\"]"), 23,
               "[\"wide\", \"4 * d_model\"], [\"huge\", \"batch * 2 ** 45\"]");
  const auto model = load(text);
  ASSERT_TRUE(model) << to_string(model.error());
  EXPECT_EQ(run_of(*model, device_named("h100-sxm"), {}).largest_batch, (1 << 18) - 1);
}

TEST(ModelRequests, OutOfRangeAreRefused) {
  const Model m = model_named("generic-7b");
  const Device d = device_named("h100-sxm");
  const auto refused = [&](auto change, const char* expected) {
    ModelRequest q;
    change(q);
    const auto run = run_model(m, d, q);
    ASSERT_FALSE(run) << expected;
    EXPECT_EQ(run.error().exit, Exit::kUsage);
    EXPECT_NE(to_string(run.error()).find(expected), std::string::npos) << to_string(run.error());
  };
  refused([](ModelRequest& q) { q.batch = 0; }, "batch is 0; 1 to 16777216 was expected");
  refused([](ModelRequest& q) { q.batch = int64_t{1} << 40; }, "batch is 1099511627776; 1 to");
  refused([](ModelRequest& q) { q.length = -1; }, "kv is -1; 1 to");
  refused([](ModelRequest& q) { q.phase = "prefil"; }, "generic-7b has no phase \"prefil\"; did you mean \"prefill\"?");
  refused([](ModelRequest& q) { q.dtypes = "bf16"; }, "generic-7b has no weights \"bf16\"");
  refused([](ModelRequest& q) { q.compute_efficiency = 0; }, "an efficiency of 0; above 0, at most 1");
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const double share : {nan, infinity, -infinity, 0.0, -0.5, 1.0001}) {
    refused([&](ModelRequest& q) { q.bandwidth_efficiency = share; }, "an efficiency of ");
    refused([&](ModelRequest& q) { q.compute_efficiency = share; }, "above 0, at most 1 was expected");
  }
  for (const double flops : {nan, infinity, -1.0, 1000.5})
    refused([&](ModelRequest& q) { q.softmax_flops = flops; }, "FLOPs per softmax element; 0 to 1000 was expected");
}

TEST(ModelRequests, ASweepNeedsAPointAndChecksEach) {
  const Model m = model_named("generic-7b");
  const Device d = device_named("h100-sxm");
  const auto refused = [&](const ModelRequest& q, const std::vector<int64_t>& batches,
                           const std::vector<int64_t>& lengths, const char* expected) {
    const auto runs = sweep_model(m, d, q, batches, lengths);
    ASSERT_FALSE(runs) << expected;
    EXPECT_EQ(runs.error().exit, Exit::kUsage);
    EXPECT_NE(to_string(runs.error()).find(expected), std::string::npos) << to_string(runs.error());
  };
  refused({}, {}, {2048}, "no batch to run generic-7b at; at least one was expected");
  refused({}, {1}, {}, "no length to run generic-7b at");
  refused({}, {}, {}, "no batch to run");
  ModelRequest q;
  q.softmax_flops = std::nan("");
  refused(q, {1}, {2048}, "nan FLOPs per softmax element");
}

TEST(ModelRequests, HugeBatchesDoNotFit) {
  // The largest tried batches have more than 2^63 elements of cache.
  const Device d = device_named("h100-sxm");
  ModelRequest q;
  q.length = int64_t{1} << 22;
  const ModelRun one = run_of(model_named("llama-2-7b"), d, q);
  EXPECT_EQ(one.largest_batch, 0);
  EXPECT_DOUBLE_EQ(one.memory.kv_cache, 2 * 32 * 0x1p22 * 4096 * 2);
  q.batch = q.length = int64_t{1} << 24;
  const ModelRun most = run_of(model_named("llama-2-7b"), d, q);
  EXPECT_FALSE(most.memory.fits());
  EXPECT_DOUBLE_EQ(most.memory.kv_cache, 2 * 32 * 0x1p48 * 4096 * 2);
}

}  // namespace
}  // namespace roofgen::model_file_test

// A search without a GPU whose times come from the machine code of its candidates.
#include "tuner/search/kernel_timer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/compiler.h"
#include "runtime/sass/disassembler.h"
#include "tests/support/compile_cache.h"
#include "tuner/tune.h"
#include "tuner/views/json.h"
#include "tuner/views/text.h"

namespace roofgen::kernel_timer_test {
namespace {

class KernelTimes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
    if (sass::nvdisasm_path().empty()) GTEST_SKIP() << "nvdisasm not found";
    device = *load_device(files, "h200-sxm");
    options.evals = 6;
  }

  /// `timer`: nullptr: the closed form alone.
  Result<TuneResult> search(const std::string& op_name, std::map<std::string, int64_t> dims, KernelTimer* timer,
                            Evaluations* store = nullptr, std::map<std::string, std::string> texts = {}) {
    CompileOptions compile;
    compile.arch = device.arch;
    compile.jobs = 2;
    auto compiler = make_nvrtc_compiler(compile, test::shared_compile_cache(), [](const std::string&) {});
    if (!compiler) return compiler.error();
    ROOFGEN_TRY(const Op* op, find_op(op_name));
    Problem asked;
    asked.op = op_name;
    asked.dims = std::move(dims);
    asked.texts = std::move(texts);
    ROOFGEN_TRY(const Problem problem, op->complete(asked));
    ROOFGEN_TRY(const std::unique_ptr<Executor> simulator, make_sim_executor());
    const TuneContext context{{files, device, **compiler, *simulator, nullptr, store, timer}, *op};
    return tune(context, problem, options);
  }

  const DataFiles files;
  Device device;
  TuneOptions options;
};
using SlowKernelTimes = KernelTimes;

const std::map<std::string, int64_t> kAttention{{"L", 128}, {"d", 32}, {"batch", 1}, {"heads", 2}};

}  // namespace

TEST_F(KernelTimes, TheEventModelDecidesAndNoTimeIsBelowTheRoofs) {
  KernelTimer timer(device, nullptr);
  ASSERT_EQ(timer.unavailable(), "");
  const auto result = search("attention", kAttention, &timer);
  ASSERT_TRUE(result) << to_string(result.error());
  for (const VariantReport& v : result->report.variants) {
    if (!v.available) continue;
    ASSERT_FALSE(v.kernels.empty()) << v.name;
    for (const KernelReport& k : v.kernels) {
      ASSERT_TRUE(k.code) << v.name << " " << k.stage;
      EXPECT_EQ(k.time.model, TimeModel::kEvent);
      EXPECT_GE(k.seconds, k.time.kernel_seconds);
      EXPECT_GE(k.stall, 1);
      EXPECT_EQ(k.work.issue_slots, k.code->counts.warp_instructions);
      if (!k.code->doubts.empty()) continue;
      EXPECT_EQ(k.time.band, error_band(TimeModel::kEvent, k.time.bound_by));
    }
  }
  const std::string text = details_text(result->report, false);
  EXPECT_NE(text.find("time: event model (error band "), std::string::npos) << text;
}

TEST_F(SlowKernelTimes, OneThreadAndManyGiveTheSameReport) {
  KernelTimer timer(device, nullptr);
  options.jobs = 1;
  auto one = search("rmsnorm", {{"rows", 256}, {"cols", 512}}, &timer);
  options.jobs = 2;
  auto two = search("rmsnorm", {{"rows", 256}, {"cols", 512}}, &timer);
  ASSERT_TRUE(one && two);
  one->report.compiled_now = two->report.compiled_now = 0;  // the second finds the kernels in the cache
  EXPECT_EQ(tune_json(one->report), tune_json(two->report));
}

TEST_F(KernelTimes, StoredTimesAreTheModeledOnes) {
  const std::string path = ::testing::TempDir() + "/kernel_times.sqlite";
  std::filesystem::remove(path);
  auto store = Store::open(path);
  ASSERT_TRUE(store);
  std::vector<std::string> texts;
  for (int run = 0; run < 2; ++run) {
    KernelTimer timer(device, &*store);
    const auto result = search("rmsnorm", {{"rows", 256}, {"cols", 512}}, &timer, &*store);
    ASSERT_TRUE(result);
    ASSERT_TRUE(result->report.variants[0].kernels[0].code);
    texts.push_back(to_string(result->report.variants[0].kernels[0].schedule) +
                    std::to_string(result->report.variants[0].seconds));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// Index data decides the loops of a cache with ragged lengths: two caches of the same size, one of them mostly empty.
TEST_F(KernelTimes, TimesFollowTheContentsOfTheInputs) {
  KernelTimer timer(device, nullptr);
  options.variants = {"fused"};
  const auto instructions = [&](const char* lengths) {
    const auto result =
        search("attention", {{"L", 1}, {"d", 32}, {"heads", 2}}, &timer, nullptr, {{"kv_lengths", lengths}});
    EXPECT_TRUE(result) << to_string(result.error());
    const KernelReport& k = result->report.find("fused")->kernels.at(0);
    EXPECT_TRUE(k.code);
    return k.code ? k.code->counts.warp_instructions : 0;
  };
  const double full = instructions("2048,2048,2048,2048"), mostly_empty = instructions("2048,16,16,16");
  EXPECT_GT(full, 2.5 * mostly_empty);
  EXPECT_LT(full, 5 * mostly_empty);
}

// A result of tensor instructions decides whether a lazy rescale happens: the counts of the simulated run stand in.
TEST_F(KernelTimes, TheSimulatedRunSaysHowOftenABranchIsTaken) {
  KernelTimer timer(device, nullptr);
  options.variants = {"fused"};
  options.evals = 1;
  options.pins = {{"rescale", ParamValue(std::string("lazy"))}};
  const auto result = search("attention", {{"L", 512}, {"d", 64}, {"batch", 1}, {"heads", 2}}, &timer);
  ASSERT_TRUE(result) << to_string(result.error());
  const KernelReport& k = result->report.find("fused")->kernels.at(0);
  ASSERT_TRUE(k.code);
  EXPECT_TRUE(k.code->guessed_by_ptx);
  EXPECT_TRUE(k.code->doubts.empty()) << k.code->doubts.front();
  EXPECT_EQ(k.time.band, error_band(TimeModel::kEvent, k.time.bound_by));
  const std::string text = details_text(result->report, false);
  EXPECT_NE(text.find("takes a branch on computed values as often as in the simulated run"), std::string::npos) << text;
}

TEST_F(KernelTimes, ADeviceWithoutANumberLeavesTheClosedForm) {
  Device poor = device;
  poor.cells.erase("dram_latency");
  KernelTimer timer(poor, nullptr);
  EXPECT_EQ(timer.unavailable(), "h200-sxm has no dram_latency, which the time model needs");
  const auto result = search("rmsnorm", {{"rows", 256}, {"cols", 512}}, &timer);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->report.variants[0].kernels[0].time.model, TimeModel::kClosedForm);
  const std::string text = details_text(result->report, false);
  EXPECT_NE(text.find("time: closed form (error band 30 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("\ntimes     of the closed form, a rough guide: h200-sxm has no dram_latency"), std::string::npos)
      << text;
}

}  // namespace roofgen::kernel_timer_test

// A complete measured search on a scripted GPU that runs its kernels in the simulator: winners, rejections, the cost of
// faults, and the report.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "generator/generate.h"
#include "runtime/compiler.h"
#include "tests/runtime/process.h"
#include "tests/support/compile_cache.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/json_schema.h"
#include "tests/support/patterns.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/tune.h"
#include "tuner/views/json.h"
#include "tuner/views/page.h"
#include "tuner/views/t4.h"
#include "tuner/views/text.h"

namespace roofgen::measured_test {
namespace {

using test::FakeFault;
using test::FakeGpu;
using test::FakeScript;
using test::FakeStep;

/// One search of a small attention problem.
class Measured : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
    options.evals = 8;
    options.jobs = 2;
    options.protocol.warmup_s = 0.01;
    options.protocol.hot = false;
    options.pins = {{"warps", ParamValue(int64_t{4})}};
  }

  Result<TuneResult> search(FakeGpu& gpu) {
    CompileOptions compile;
    compile.arch = "sm_90";
    compile.jobs = 2;
    auto compiler = make_nvrtc_compiler(compile, test::shared_compile_cache(), [](const std::string&) {});
    if (!compiler) return compiler.error();
    ROOFGEN_TRY(const Op* op, find_op("attention"));
    Problem asked;
    asked.op = "attention";
    asked.dims = {{"L", length}, {"d", 32}, {"batch", 1}, {"heads", 2}};
    ROOFGEN_TRY(const Problem problem, op->complete(asked));
    ROOFGEN_TRY(const Device device, load_device(files, "h200-sxm"));
    if (!simulator) {
      ROOFGEN_TRY(simulator, make_sim_executor());
    }
    const BenchClock clock = gpu.clock();
    options.bench_clock = &clock;
    options.warn = [this](const std::string& line) { warnings.push_back(line); };
    TuneContext context{{files, device, **compiler, *simulator, &gpu}, *op};
    KernelTimer timer(device, nullptr);
    if (guided) context.timer = &timer;
    return tune(context, problem, options);
  }

  static TuneReport report_of(Result<TuneResult> result) {
    EXPECT_TRUE(result) << to_string(result.error());
    if (result && std::getenv("ROOFGEN_EXPLAIN"))
      fprintf(stderr, "%s\n%s\n", details_text(result->report, false).c_str(), explain_text(result->report).c_str());
    return result ? std::move(result->report) : TuneReport{};
  }
  static const Rejected* rejection(const TuneReport& r, const std::string& stage) {
    for (const Rejected& x : r.rejections)
      if (x.stage == stage) return &x;
    return nullptr;
  }

  std::vector<std::string> warned(const std::string& with) const {
    std::vector<std::string> out;
    for (const std::string& w : warnings)
      if (w.find(with) != std::string::npos) out.push_back(w);
    return out;
  }

  DataFiles files;
  int64_t length = 96;
  bool guided = false;                  ///< by times from machine code
  std::unique_ptr<Executor> simulator;  ///< created when missing
  TuneOptions options;
  std::vector<std::string> warnings;
};
using SlowMeasured = Measured;

/// Fused kernels take longer with more rows per CTA; each unfused kernel takes 20 us.
double by_tile(const FakeStep& s) {
  if (s.entry != "attention_fused") return 20e3;
  return 10e3 + 100.0 * s.launch.grid.x;
}

TEST_F(SlowMeasured, TheModelsFirstPicksComeFirstAndItsErrorIsLearnt) {
  // Times of the GPU follow what the model sees (fewer CTAs are better), in units of their own.
  FakeScript script;
  script.step_ns = by_tile;
  options.pins.clear();
  options.variants = {"fused"};
  options.evals = 24;
  options.batch = 8;
  options.check = Check::kGpu;
  length = 128;
  const auto timed_of = [&](bool by_model) {
    guided = by_model;
    FakeGpu gpu(script);
    return report_of(search(gpu));
  };
  const TuneReport plain = timed_of(false);
  if (KernelTimer(*load_device(files, "h200-sxm"), nullptr).unavailable().empty()) {
    const TuneReport by_model = timed_of(true);
    ASSERT_TRUE(plain.gpu && by_model.gpu);
    const auto not_timed = [](const TuneReport& r) {
      return std::any_of(r.gpu->notes.begin(), r.gpu->notes.end(), [](const std::string& note) {
        return note.find("candidates were not timed: the interval model") != std::string::npos;
      });
    };
    EXPECT_FALSE(not_timed(plain));
    EXPECT_TRUE(not_timed(by_model));
    EXPECT_LT(by_model.gpu->timed, plain.gpu->timed);
    EXPECT_GE(by_model.gpu->timed, options.batch);
    EXPECT_NEAR(by_model.find("fused")->seconds / plain.find("fused")->seconds, 1, 0.01);
    EXPECT_EQ(by_model.time_origin(), Origin::kMeasured);
  }
}

TEST_F(Measured, TheFastestMeasuredWinsAndTheReportStatesTheOrigin) {
  FakeScript script;
  script.noise = 0.01;
  script.step_ns = by_tile;
  FakeGpu gpu(script);
  const TuneReport r = report_of(search(gpu));
  ASSERT_TRUE(r.gpu);
  EXPECT_EQ(r.best_variant, "fused");
  EXPECT_EQ(r.gpu->identity.name, gpu.identity().name);
  EXPECT_GT(r.gpu->timed, 5u);
  ASSERT_EQ(r.timed.size(), r.gpu->timed);

  const VariantReport& fused = *r.find("fused");
  const KernelReport& k = fused.kernels.at(0);
  ASSERT_TRUE(k.measurement && k.preset && k.measurement->cold);
  // No timed candidate of the stage is faster by more than its interval.
  for (const TimedPoint& p : r.timed)
    if (p.schedule.variant == "fused") {
      EXPECT_GT(p.measurement->cold->high_ns, 0.99 * k.measurement->cold->low_ns) << to_string(p.schedule);
    }
  EXPECT_NEAR(k.seconds, 1e-9 * k.measurement->cold->median_ns, 1e-15);
  // The simulator still counted the winner.
  EXPECT_TRUE(k.counted);
  EXPECT_GT(k.counts.mma_flops, 0u);
  EXPECT_GT(k.work.dram_bytes, 0);
  EXPECT_NEAR(r.score.floor.seconds * k.waste * k.idle * k.stall / k.seconds, 1, 1e-9);

  const VariantReport& unfused = *r.find("unfused");
  ASSERT_TRUE(unfused.measurement);
  EXPECT_NEAR(unfused.seconds, 60e-6, 2e-6);  // three kernels in sequence, timed together
  EXPECT_EQ(r.verdict.decision, "fuse");
  ASSERT_TRUE(r.verdict.measured);
  EXPECT_GT(r.verdict.measured->low, 1);
  EXPECT_LT(r.verdict.measured->low, r.verdict.speedup);
  EXPECT_GT(r.verdict.measured->high, r.verdict.speedup);
  EXPECT_NE(r.verdict.reason.find("95 % interval"), std::string::npos) << r.verdict.reason;

  const auto j = tune_json(r);
  test::expect_schema("tune", j);
  EXPECT_EQ(j["device"]["origin"], "measured");
  EXPECT_EQ(j["variants"][0]["kernels"][0]["origins"]["time_us"], "measured");
  EXPECT_EQ(j["verdict"]["origin"], "measured");

  const std::string text = details_text(r, false);
  EXPECT_NE(text.find("measured; roofs of h200-sxm"), std::string::npos) << text;
  EXPECT_NE(text.find("time: measured; model: closed form (error band 30 %); DRAM: model"), std::string::npos) << text;
  EXPECT_EQ(text.find("nothing was measured"), std::string::npos) << text;

  auto page = tune_page(j, "result", files);
  ASSERT_TRUE(page) << to_string(page.error());
  if (const char* keep = std::getenv("ROOFGEN_KEEP_SAMPLE")) {
    testing::write_text(std::string(keep) + ".json", json_document(tune_json(r)));
    testing::write_text(std::string(keep) + ".txt", text);
  }
}

TEST_F(Measured, TheSameScriptGivesTheSameResult) {
  const auto run = [&] {
    FakeScript script;
    script.noise = 0.02;
    script.step_ns = by_tile;
    FakeGpu gpu(script);
    // The start time and the counts of fresh work may differ.
    return test::substituted(json_document(tune_json(report_of(search(gpu)))),
                             "\"started\": \"[^\"]*\"|\"fresh\": \\{[^}]*\\}", "");
  };
  options.evals = 4;
  EXPECT_EQ(run(), run());
}

TEST_F(Measured, FusingCanLoseAndTheVerdictReportsIt) {
  FakeScript script;
  script.noise = 0.01;
  script.step_ns = [](const FakeStep& s) { return s.entry == "attention_fused" ? 100e3 : 20e3; };
  FakeGpu gpu(script);
  options.variants = {"fused", "unfused"};
  options.evals = 4;
  const TuneReport r = report_of(search(gpu));
  EXPECT_EQ(r.best_variant, "unfused");
  EXPECT_EQ(r.verdict.decision, "separate");
  ASSERT_TRUE(r.verdict.measured);
  EXPECT_LT(r.verdict.measured->high, 1);
}

TEST_F(Measured, IndistinguishableVariantsAreUndecided) {
  FakeScript script;
  script.noise = 0.02;
  script.step_ns = [](const FakeStep& s) { return s.entry == "attention_fused" ? 60e3 : 20e3; };
  FakeGpu gpu(script);
  options.variants = {"fused", "unfused"};
  options.evals = 4;
  const TuneReport r = report_of(search(gpu));
  EXPECT_EQ(r.verdict.decision, "undecided") << r.verdict.reason;
}

TEST_F(Measured, AFaultAndAHangCostTheirCandidateOnly) {
  FakeScript script;
  // The second fused kernel to run faults; the softmax hangs when it is timed.
  script.faults = {{Fault::kKernel, "attention_fused", "", 4, false, FakeFault::Where::kRun, ""},
                   {Fault::kTimeout, "attention_fused", "", 40, false, FakeFault::Where::kShot, ""}};
  FakeGpu gpu(script);
  const TuneReport r = report_of(search(gpu));
  const Rejected* fault = rejection(r, "gpu fault");
  ASSERT_TRUE(fault);
  EXPECT_NE(fault->reason.find("illegal memory access"), std::string::npos) << fault->reason;
  ASSERT_TRUE(rejection(r, "gpu timeout"));
  EXPECT_EQ(gpu.generation(), 3u);  // after two replaced workers
  EXPECT_EQ(r.best_variant.empty(), false);
  EXPECT_TRUE(r.find("fused")->verified);
  EXPECT_TRUE(r.find("unfused")->verified);
  EXPECT_TRUE(r.gpu->lost_because.empty());
}

TEST_F(Measured, ALostGpuKeepsFinishedResults) {
  FakeScript script;
  script.step_ns = by_tile;
  // Lost while the unfused stages are timed; the fused variant is already finished.
  script.faults = {{Fault::kLost, "attention_softmax", "", 3, false, FakeFault::Where::kShot, ""}};
  FakeGpu gpu(script);
  options.evals = 4;
  const TuneReport r = report_of(search(gpu));
  EXPECT_EQ(r.best_variant, "fused");
  EXPECT_TRUE(r.find("fused")->measurement);
  EXPECT_FALSE(r.find("unfused")->verified);
  EXPECT_FALSE(r.gpu->lost_because.empty());
  EXPECT_EQ(r.verdict.decision, "fused only");
  EXPECT_NE(details_text(r, false).find("lost      the GPU went away"), std::string::npos);
}

TEST_F(Measured, AGpuLostAtOnceIsReportedWithoutTimes) {
  FakeScript script;
  script.faults = {{Fault::kLost, "", "", 1, false, FakeFault::Where::kRun, ""}};
  FakeGpu gpu(script);
  options.evals = 4;
  const TuneReport r = report_of(search(gpu));
  EXPECT_TRUE(r.best_variant.empty());
  EXPECT_TRUE(r.timed.empty());
  EXPECT_FALSE(r.gpu->lost_because.empty());
  EXPECT_EQ(warned("the GPU is not used any more").size(), 1u);
}

TEST_F(Measured, GpuAloneReportsMissingCounts) {
  FakeScript script;
  script.step_ns = by_tile;
  FakeGpu gpu(script);
  options.check = Check::kGpu;
  options.evals = 4;
  const TuneReport r = report_of(search(gpu));
  ASSERT_EQ(r.best_variant, "fused");
  const KernelReport& k = r.find("fused")->kernels.at(0);
  EXPECT_FALSE(k.counted);
  EXPECT_EQ(k.work.dram_bytes, 0);
  EXPECT_EQ(r.simulated_binaries, 0u);
  EXPECT_NE(r.verdict.reason.find("no work was counted"), std::string::npos) << r.verdict.reason;
  const std::string text = test::substituted(details_text(r, false), "\n +", " ");
  EXPECT_NE(text.find("FLOPs: not counted"), std::string::npos) << text;
}

TEST_F(Measured, AllSimulatesEveryCandidateFirst) {
  FakeGpu gpu;
  options.check = Check::kAll;
  options.variants = {"fused", "unfused"};
  options.evals = 4;
  const TuneReport r = report_of(search(gpu));
  EXPECT_EQ(r.simulated_binaries, 4u);
  EXPECT_EQ(r.gpu->timed, 4u);
}

/// A simulator that reports a race in the kernels selected by `guilty`, without an effect on their results.
class Suspicious final : public Executor {
 public:
  Suspicious(std::unique_ptr<Executor> inner, std::function<bool(const Launch&)> guilty)
      : inner_(std::move(inner)), guilty_(std::move(guilty)) {}
  ExecutorInfo info() const override { return inner_->info(); }
  Origin origin() const override { return inner_->origin(); }
  bool runs_parts() const override { return inner_->runs_parts(); }
  Result<DevicePtr> allocate(uint64_t bytes, std::string label, Fill fill) override {
    return inner_->allocate(bytes, std::move(label), std::move(fill));
  }
  Result<void> allow_writes(DevicePtr ptr) override { return inner_->allow_writes(ptr); }
  void release(DevicePtr ptr) override { inner_->release(ptr); }
  Result<void> write(DevicePtr to, std::span<const std::byte> from) override { return inner_->write(to, from); }
  Result<void> read(DevicePtr from, std::span<std::byte> to, std::vector<bool>* written) override {
    return inner_->read(from, to, written);
  }
  Result<void> poison(DevicePtr ptr) override { return inner_->poison(ptr); }
  Result<ModuleId> load(const Binary& binary) override { return inner_->load(binary); }
  void unload(ModuleId module) override { inner_->unload(module); }
  Result<RunResult> run(ModuleId module, const Launch& launch, const RunOptions& run_options) override {
    ROOFGEN_TRY(RunResult out, inner_->run(module, launch, run_options));
    if (guilty_(launch)) {
      Finding race;
      race.kind = "race";
      race.message = "two warps write one byte";
      out.findings.push_back(race);
    }
    return out;
  }

 private:
  std::unique_ptr<Executor> inner_;
  std::function<bool(const Launch&)> guilty_;
};

/// A GPU does not reveal a race with a correct result; the simulator does, and the racy kernel must not win.
TEST_F(Measured, AKernelWithAFindingDoesNotWin) {
  options.variants = {"fused"};
  FakeScript script;
  script.step_ns = [](const FakeStep& s) { return 10e3 + s.launch.smem_bytes; };
  FakeGpu honest(script);
  const TuneReport clean = report_of(search(honest));
  const int64_t best = clean.find("fused")->kernels.at(0).smem_bytes;

  auto inner = make_sim_executor();
  ASSERT_TRUE(inner);
  simulator = std::make_unique<Suspicious>(std::move(*inner), [=](const Launch& l) { return l.smem_bytes == best; });
  FakeGpu gpu(script);
  const TuneReport r = report_of(search(gpu));
  ASSERT_FALSE(r.best_variant.empty());
  EXPECT_NE(r.find("fused")->kernels.at(0).smem_bytes, best);
  const Rejected* disproved = rejection(r, "verify");
  ASSERT_TRUE(disproved);
  EXPECT_NE(disproved->reason.find("in the simulator, though it passed on the GPU"), std::string::npos)
      << disproved->reason;
  EXPECT_NE(disproved->reason.find("race: two warps write one byte"), std::string::npos);
  EXPECT_GT(r.find("fused")->seconds, clean.find("fused")->seconds);
  // Ratios to the rejected kernel are not reported as ratios to the winner.
  EXPECT_FALSE(clean.find("fused")->kernels.at(0).finalists.empty());
  EXPECT_TRUE(r.find("fused")->kernels.at(0).finalists.empty());
}

TEST_F(Measured, ARecordedSpaceHoldsEveryPointWithItsSamples) {
  FakeScript script;
  script.step_ns = by_tile;
  FakeGpu gpu(script);
  options.evals = 6;
  const TuneReport r = report_of(search(gpu));
  const auto files_of = t4_files(r);
  ASSERT_TRUE(files_of.count("attention-fused.t4.json")) << files_of.begin()->first;
  const auto j = parse_json(files_of.at("attention-fused.t4.json"));
  EXPECT_EQ(j["schema_version"], "1.0.0");
  EXPECT_EQ(j["metadata"]["timeunit"], "milliseconds");
  size_t correct = 0, constraints = 0;
  for (const auto& p : j["results"]) {
    EXPECT_TRUE(p["configuration"].contains("BM"));
    if (p["invalidity"] == "correct") {
      ++correct;
      EXPECT_GE(p["times"]["runtimes"].size(), 10u);
      EXPECT_GT(p["measurements"][0]["value"].get<double>(), 0);
    } else {
      EXPECT_TRUE(p["measurements"][0]["value"].is_string());
      constraints += p["invalidity"] == "constraints";
    }
  }
  EXPECT_GT(correct, 1u);
  EXPECT_EQ(constraints, 0u) << "an illegal point is no result";
  TuneReport simulated;
  EXPECT_TRUE(t4_files(simulated).empty());
}

/// With any memory size, fitting variants are tuned and other variants rejected by name; the GPU is kept.
TEST_F(SlowMeasured, AVariantThatDoesNotFitCostsThatVariantOnly) {
  length = 256;  // tensors of 128 KiB in all, S and P of 256 each
  options.variants = {"fused", "unfused"};
  options.evals = 4;
  bool fused_alone = false, both = false;
  for (uint64_t kib : {150, 300, 400, 500, 600, 700, 800, 1000, 1200, 1600, 2400, 4800, 9600}) {
    FakeScript script;
    script.memory_bytes = kib << 10;
    FakeGpu gpu(script);
    warnings.clear();
    const TuneReport r = report_of(search(gpu));
    EXPECT_TRUE(warned("not used any more").empty()) << kib;
    EXPECT_TRUE(r.gpu->lost_because.empty()) << kib;
    if (kib >= 2400) {  // two heads and two batches of inputs, with gaps behind heads, are kept for each pattern
      EXPECT_TRUE(r.find("fused")->verified) << kib;
    }
    if (r.find("fused")->verified && !r.find("unfused")->verified) {
      fused_alone = true;
      EXPECT_TRUE(rejection(r, "gpu memory")) << kib;
      EXPECT_EQ(r.best_variant, "fused");
    }
    both |= r.find("fused")->verified && r.find("unfused")->verified;
  }
  EXPECT_TRUE(fused_alone);
  EXPECT_TRUE(both);
}

TEST_F(Measured, MemoryThatDoesNotSufficeIsNamedWithItsSize) {
  FakeScript script;
  script.memory_bytes = 16 << 10;
  FakeGpu gpu(script);
  options.evals = 4;
  const TuneReport r = report_of(search(gpu));
  EXPECT_TRUE(r.best_variant.empty());
  const Rejected* memory = rejection(r, "gpu memory");
  ASSERT_TRUE(memory);
  EXPECT_NE(memory->reason.find("bytes of GPU memory"), std::string::npos) << memory->reason;
}

}  // namespace
}  // namespace roofgen::measured_test

// The store's result of a finished search: when it is kept, and which other search it is not taken for.
#include "tuner/bundle/finished.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/bundle/fake_compiler.h"
#include "tuner/views/json.h"
#include "tuner/views/text.h"

namespace roofgen::test::finished_test {
namespace {

class Memory : public Evaluations {
 public:
  std::optional<std::string> lookup(const StoreKey& key) override {
    return rows.count(key) ? std::optional(rows[key]) : std::nullopt;
  }
  void put(const StoreKey& key, const std::string& payload) override {
    rows[key] = payload;
    ++puts;
  }
  void note(const StoredTrial&) override {}
  Result<std::vector<StoredTrial>> trials(const TrialFilter&) override { return std::vector<StoredTrial>(); }
  std::map<StoreKey, std::string> rows;
  int puts = 0;
};

class Finished : public testing::Test {
 protected:
  Finished() {
    options_.pins = {{"BM", int64_t{128}}};
    const auto at = *variants_of(files_, *op_, limits(device_), problem_);
    const Variant& v = *at.find("fused");
    const auto legal =
        std::get<Legal>(check_schedule(v, v.stages[0], *default_schedule(v, v.stages[0], at.scope, {}), at.scope));
    TunedKernel kernel{*generate(files_, v.stages[0], legal), {}, *make_launch(v.stages[0], legal)};
    compiler_.compile_all({&kernel.program}, [&](CompileOutcome o) {
      kernel.binary = *o.binary;
      return true;
    });
    result_.winners["fused"].push_back(kernel);
    TuneReport& report = result_.report;
    report.problem = problem_;
    report.device = device_;
    report.best_variant = "fused";
    VariantReport& variant = report.variants.emplace_back();
    variant.name = "fused";
    variant.kernels.emplace_back().stage = v.stages[0].name;
    variant.kernels.back().schedule = legal.schedule;
    variant.kernels.back().digest = kernel.binary.digest;
  }

  TuneContext context() { return {{files_, device_, compiler_, *executor_, nullptr, &store_, nullptr}, *op_}; }
  void note() { note_finished(context(), problem_, options_, result_); }
  bool known() { return recall_finished(context(), {problem_}, options_).has_value(); }

  DataFiles files_;
  const Op* op_ = *find_op("attention");
  Problem problem_ = *op_->complete({"attention", {{"L", 256}, {"d", 64}}, DType::kBf16, {}, {}});
  Device device_ = *load_device(files_, "h200-sxm");
  FakeCompiler compiler_{{}, "sm_90", true};
  std::unique_ptr<Executor> executor_ = *make_sim_executor();
  Memory store_;
  TuneOptions options_;
  TuneResult result_;
};

TEST_F(Finished, TheResultIsThatOfTheSearch) {
  EXPECT_FALSE(known());
  note();
  const auto manifest = recall_finished(context(), {problem_}, options_);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(to_string(manifest->problem), to_string(problem_));
  ASSERT_EQ(manifest->pipelines.size(), 1u);
  EXPECT_EQ(manifest->pipelines[0].result, json_line(evidence(result_.report)));
  const auto bundle = bundle_of(files_, *manifest, fake_compiler({}), [](const std::string&) {});
  ASSERT_TRUE(bundle) << to_string(bundle.error());
  EXPECT_EQ(bundle->pipelines[0]->kernels[0].program.source, result_.winners["fused"][0].program.source);
  note();
  EXPECT_EQ(store_.puts, 1) << "the same again";
}

// The views of the recalled report are the ones of the search, but for what that run did.
TEST_F(Finished, TheReportIsThatOfTheSearch) {
  TuneReport& report = result_.report;
  report.words = op_words(DataFiles(), op_->name()).value();
  report.executor_device = "h200-sxm, simulated (no GPU is used)";
  report.ended = "all evaluations done";
  report.considered = 7;
  report.compiled = 3;
  report.rejected = {{"spill", 2}};
  report.warm_starts = {{"attention bf16 L=128", "h200-sxm", 1}};
  report.untried = {{"unfused", false, 12, "not tried (--variant)"}};
  report.score = {{1e-6 / 3, "DRAM"}, {1e-7, "tensor"}, 0.1, 0.3};
  report.verdict.decision = "fuse";
  report.verdict.reason = "it is faster";
  report.verdict.speedup = 1.7;
  report.verdict.fused.emplace().registers = 128;
  report.verdict.unfused.emplace().seconds = 2e-5 / 3;
  report.verdict.causes = {{"work", 0.1, 1, 2, "less traffic"}};
  report.warnings = {{"R19", "exponentials"}};
  VariantReport& variant = report.variants[0];
  variant.verified = true;
  variant.seconds = 1e-5 / 3;
  variant.verification.not_run = {"whole grid not run"};
  KernelReport& kernel = variant.kernels[0];
  kernel.seconds = kernel.time.seconds = variant.seconds;
  kernel.counts.mma = 5;
  kernel.counts.warp_instructions = 17;
  kernel.work.ctas = 9;
  kernel.waste = 1.1;
  kernel.time.bound_by = "SFU";
  kernel.code.emplace().doubts = {"the end of some waits"};
  kernel.verification.error_over_tolerance = 0.5;
  note();
  std::optional<TuneReport> recalled = recall_report(context(), problem_, options_);
  ASSERT_TRUE(recalled);
  EXPECT_EQ(tune_json(*recalled), tune_json(report));
  EXPECT_EQ(details_text(*recalled, true), details_text(report, true));
  report.compiled_now = report.evaluated_now = report.simulated_now = 3;
  EXPECT_NE(tune_text(*recalled, true), tune_text(report, true)) << "this run did nothing, and says so";
  for (auto& [key, payload] : store_.rows) payload = R"({"report": {"arch": "sm_90"}})";
  EXPECT_FALSE(recall_report(context(), problem_, options_)) << "a damaged row is none";
}

TEST_F(Finished, AnotherSearchIsNotTakenForIt) {
  note();
  ASSERT_TRUE(known());
  const auto changed = [&](const char* what, auto change) {
    const TuneOptions options = options_;
    const Problem problem = problem_;
    const Device device = device_;
    change();
    EXPECT_FALSE(known()) << what;
    options_ = options;
    problem_ = problem;
    device_ = device;
    EXPECT_TRUE(known()) << what;
  };
  changed("size", [&] { problem_.dims["L"] = 512; });
  changed("flag", [&] { problem_.flags["causal"] = true; });
  changed("pin", [&] { options_.pins["BM"] = int64_t{64}; });
  changed("no pin", [&] { options_.pins.clear(); });
  changed("variant", [&] { options_.variants = {"fused"}; });
  changed("strategy", [&] { options_.strategy = "random"; });
  changed("evals", [&] { options_.evals = 8; });
  changed("effort", [&] { options_.effort = Effort::kFull; });
  changed("until", [&] { options_.until = 0.5; });
  changed("cold", [&] { options_.cold = true; });
  changed("seed", [&] { options_.seed = 1; });
  changed("device", [&] { device_ = *load_device(files_, "h100-sxm"); });
  changed("portable kernels only", [&] { device_.arch_specific = false; });
  changed("a cell of the device", [&] { device_.cells["dram_gb_s"].value *= 1.01; });
  FakeCompiler other{{.version = "NVRTC 13.1"}, "sm_90", true};
  EXPECT_FALSE(
      recall_finished({{files_, device_, other, *executor_, nullptr, &store_, nullptr}, *op_}, {problem_}, options_));
}

TEST_F(Finished, WhatDependsOnAClockOrDidNotEndIsNotKept) {
  result_.report.interrupted = true;
  note();
  result_.report.interrupted = false;
  options_.time_limit_s = 10;
  note();
  options_.time_limit_s = 0;
  options_.launches = 1e6;
  note();
  options_.launches = 0;
  options_.siblings = {"attention bf16 L=512"};
  note();
  options_.siblings.clear();
  result_.report.best_variant.clear();
  note();
  EXPECT_EQ(store_.puts, 0);
}

}  // namespace
}  // namespace roofgen::test::finished_test

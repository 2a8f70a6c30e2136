// roofgen calibrate on times that the model itself gives for other scalars.
#include "profile/calibrate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels.h"
#include "tests/support/compile_cache.h"

namespace roofgen::profile::calibrate_test {
namespace {

using Values = std::map<std::string, double>;

const Device& catalogue() {
  static const Result<Device> device = load_device(data_files(), "a100-sxm-80");
  return *device;
}

/// The kernels of each family, with the times that the model gives if these scalars have other values.
std::vector<TimedKernel> timed(const std::map<std::string, std::vector<std::string>>& families, const Values& hidden) {
  std::vector<TimedKernel> out;
  for (const auto& [family, names] : families)
    for (const std::string& name : names) {
      Result<check::Request> kernel_request = check::request_of(kernel(name));
      EXPECT_TRUE(kernel_request) << to_string(kernel_request.error());
      Request r{std::move(*kernel_request), catalogue(), {}};
      r.kernel.cache_dir = test::shared_compile_cache();
      r.options.by_line = false;
      for (const auto& [cell, value] : hidden) r.device.cells[cell].value = value;
      const Result<Report> report = run(r);
      EXPECT_TRUE(report) << to_string(report.error());
      if (report) out.push_back({family, report->time.event_s, 0, r.kernel, {}});
    }
  return out;
}

const std::map<std::string, std::vector<std::string>> kFamilies{
    {"shared", {"shared_latency", "transpose_conflicts"}},
    {"branches", {"divergent", "latency_reduction"}},
    {"memory", {"histogram", "copy_float4", "transpose_padded"}}};
const Values kHidden{{"smem_wavefront_cycles", 2}, {"branch_cycles", 16}};

Result<Calibration> fit(std::vector<TimedKernel> kernels, const std::function<void(CalibrateRequest&)>& change = {}) {
  CalibrateRequest r;
  r.device = catalogue();
  r.kernels = std::move(kernels);
  r.times = {{"times.json", "by the model"}};
  r.cache_dir = test::shared_compile_cache();
  if (change) change(r);
  return calibrate(std::move(r));
}

const FittedScalar& scalar(const Calibration& c, const std::string& name) {
  for (const FittedScalar& s : c.scalars)
    if (s.name == name) return s;
  ADD_FAILURE() << "no scalar " << name;
  return c.scalars.front();
}

class SlowCalibrate : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(SlowCalibrate, RecoversHiddenScalars) {
  const Result<Calibration> c = fit(timed(kFamilies, kHidden));
  ASSERT_TRUE(c) << to_string(c.error());
  for (const auto& [name, value] : kHidden) {
    EXPECT_EQ(scalar(*c, name).fitted, value) << name << "\n" << calibration_text(*c);
    EXPECT_TRUE(scalar(*c, name).determined) << name;
    EXPECT_EQ(c->cells.at(name).value, value);
    EXPECT_EQ(c->cells.at(name).origin, Origin::kModel);
    EXPECT_GE(scalar(*c, name).less.value_or(0), 0);
  }
  EXPECT_GT(c->objective_before, 1e-3);
  EXPECT_LT(c->objective_after, 1e-9);
  EXPECT_LT(c->after.most_90, 1e-6);
  ASSERT_EQ(c->families.size(), 3u);
  for (const FittedFamily& f : c->families) EXPECT_TRUE(f.after && f.held_out) << f.name;
  EXPECT_TRUE(c->held_out);
  EXPECT_EQ(c->cells.begin()->second.source.substr(0, 67),
            "fitted on 7 kernels of families branches, memory, shared (times.jso");
}

TEST_F(SlowCalibrate, WhatNoKernelExercisesStaysAsItIs) {
  // No kernel has shared memory.
  const Result<Calibration> c = fit(timed({{"memory", {"copy_float4"}}}, {{"memory_queue", 4}}));
  ASSERT_TRUE(c) << to_string(c.error());
  for (const char* name : {"smem_wavefront_cycles", "smem_instruction_cycles"}) {
    EXPECT_FALSE(scalar(*c, name).determined) << name;
    EXPECT_EQ(scalar(*c, name).fitted, scalar(*c, name).before);
    EXPECT_EQ(c->cells.count(name), 0u);
  }
  EXPECT_NE(calibration_text(*c).find("not by these kernels"), std::string::npos);
  EXPECT_FALSE(c->families[0].held_out);
  EXPECT_FALSE(c->held_out);
}

TEST_F(SlowCalibrate, FamiliesHeldOutDoNotInfluenceTheFit) {
  std::vector<TimedKernel> kernels = timed(kFamilies, kHidden);
  const auto without = [](CalibrateRequest& r) { r.hold_out = {"memory"}; };
  const Result<Calibration> first = fit(kernels, without);
  for (TimedKernel& k : kernels)
    if (k.family == "memory") k.time_s *= 3;
  const Result<Calibration> second = fit(kernels, without);
  ASSERT_TRUE(first && second);
  for (size_t i = 0; i < first->scalars.size(); ++i) {
    EXPECT_EQ(first->scalars[i].fitted, second->scalars[i].fitted) << first->scalars[i].name;
    EXPECT_EQ(first->scalars[i].more, second->scalars[i].more) << first->scalars[i].name;
  }
  EXPECT_EQ(first->objective_after, second->objective_after);
  EXPECT_EQ(first->after.most_90, second->after.most_90);
  for (const FittedFamily& f : second->families) EXPECT_EQ(f.held_out.has_value(), f.name == "memory");
  EXPECT_GT(second->held_out->mean, first->held_out->mean);
}

TEST_F(SlowCalibrate, TheReportDoesNotDependOnTheJobs) {
  const std::vector<TimedKernel> kernels = timed(kFamilies, kHidden);
  const auto with_jobs = [&](int jobs) {
    return fit(kernels, [&](CalibrateRequest& r) { r.hold_out = {"shared"}, r.jobs = jobs; });
  };
  const Result<Calibration> one = with_jobs(1), two = with_jobs(2);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(calibration_json(*one), calibration_json(*two));
  EXPECT_EQ(calibration_text(*one), calibration_text(*two));
}

TEST_F(SlowCalibrate, ScaleTakesACommonFactorAway) {
  std::vector<TimedKernel> kernels = timed(kFamilies, kHidden);
  for (TimedKernel& k : kernels) k.time_s *= 1.25;
  const Result<Calibration> c = fit(std::move(kernels), [](CalibrateRequest& r) { r.scale = true; });
  ASSERT_TRUE(c) << to_string(c.error());
  for (const auto& [name, value] : kHidden) EXPECT_EQ(scalar(*c, name).fitted, value) << name;
  EXPECT_NEAR(c->scale_after, 1.25, 1e-6);
  EXPECT_LT(c->after.most_90, 1e-6);
}

TEST_F(SlowCalibrate, ErrorsNameTheKernel) {
  std::vector<TimedKernel> kernels = timed({{"memory", {"copy_float4"}}}, {});
  const auto family = fit(kernels, [](CalibrateRequest& r) { r.hold_out = {"memry"}; });
  ASSERT_FALSE(family);
  EXPECT_EQ(to_string(family.error()),
            "error: --hold-out memry: no kernel is of this family; did you mean \"memory\"?");
  const auto none = fit(kernels, [](CalibrateRequest& r) { r.hold_out = {"memory"}; });
  ASSERT_FALSE(none);
  EXPECT_EQ(to_string(none.error()), "error: --hold-out leaves no family to fit");
  kernels[0].kernel.text = "__global__ void k() { x; }";
  kernels[0].where = {"times.json", 3, 5};
  const auto broken = fit(kernels);
  ASSERT_FALSE(broken);
  EXPECT_EQ(to_string(broken.error()), "times.json:3:5: error: copy_float4.cu:1: identifier \"x\" is undefined");
}

}  // namespace
}  // namespace roofgen::profile::calibrate_test

// Ceilings measured on a scripted GPU: rates from scripted times, the cost of a failure, and profiles that are stored,
// applied to a device or rejected.
#include "tuner/ceilings/ceilings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "roofline/analyses/figures.h"
#include "tests/support/compile_cache.h"
#include "tests/support/devices.h"
#include "tests/support/fake_gpu.h"
#include "tuner/ceilings/profile.h"

namespace roofgen::ceilings_test {
namespace {

namespace fs = std::filesystem;

const Outputs kAnyFile("", /*force=*/true);
using test::FakeFault;
using test::FakeGpu;
using test::FakeScript;
using test::FakeStep;

constexpr CeilingSizes kSmall{.dram_words = 30008, .l2_words = 4000, .clocks = 600};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class CeilingsTest : public testing::Test {
 protected:
  CeilingsTest() {
    std::string pattern = (fs::temp_directory_path() / "roofgen-ceilings-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
  }
  ~CeilingsTest() override { fs::remove_all(dir_); }
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC here";
  }

  /// An H200 with two SMs, for short simulations.
  static Device device() {
    Device d = *load_device(DataFiles(), "h200-sxm");
    d.cells["sms"].value = 2;
    return d;
  }
  static FakeScript script() {
    FakeScript s;
    s.info.driver.sms = 2;
    s.step_ns = [](const FakeStep&) { return 60'000.0; };
    s.sm_mhz = [](double) { return 1500.0; };
    return s;
  }

  Result<CeilingsReport> measure(FakeGpu& gpu, std::vector<std::string> only,
                                 const std::vector<std::string>& data_dirs = {}) {
    static const auto compiler = make_nvrtc_compiler({}, test::shared_compile_cache(), [](const std::string&) {});
    if (!compiler) return compiler.error();
    const DataFiles files(data_dirs);
    const Device d = device();
    CeilingsOptions options;
    options.sizes = kSmall;
    options.only = std::move(only);
    options.date = "2026-01-02T03:04:05Z";
    options.hooks.clock = gpu.clock();
    options.hooks.stop = &stop_;
    options.hooks.progress = [this](const char* what, uint64_t, uint64_t) {
      if (stop_at_ == what) stop_ = true;
    };
    return measure_ceilings({files, d, **compiler, gpu}, options);
  }
  CeilingsReport measured(FakeGpu& gpu, std::vector<std::string> only, const std::vector<std::string>& data_dirs = {}) {
    auto r = measure(gpu, std::move(only), data_dirs);
    EXPECT_TRUE(r) << to_string(r.error());
    return r ? std::move(*r) : CeilingsReport{};
  }

  fs::path dir_;
  std::atomic<bool> stop_{false};
  std::string stop_at_ = "never";
};

TEST_F(CeilingsTest, FiguresFollowFromScriptedTimes) {
  FakeGpu gpu(script());
  const CeilingsReport r = measured(gpu, {"dram_write", "dram_copy", "fp32_fma", "mma_bf16", "mufu_ex2"});
  ASSERT_EQ(r.results.size(), 5u);
  for (const CeilingResult& c : r.results) {
    ASSERT_TRUE(c.measured()) << c.spec->name << ": " << c.missing;
    EXPECT_NEAR(c.timing.median_ns, 60'000, 1) << c.spec->name;
    EXPECT_EQ(c.sm_mhz, 1500);
    EXPECT_GE(c.timing.samples, 10u);
    EXPECT_LE(c.low, c.rate);
    EXPECT_GE(c.high, c.rate);
  }
  // 30008 / 2 words are cut to whole sectors; each is read and written.
  EXPECT_NEAR(r.find("dram_copy")->rate, 8.0 * 15000 / 60'000, 1e-4);
  EXPECT_EQ(r.find("dram_copy")->limit->value, 4800);
  const CeilingResult& fma = *r.find("fp32_fma");
  EXPECT_NEAR(fma.rate, fma.amount / (60'000e-9 * 1500e6 * 2), 1e-3);
  EXPECT_NEAR(fma.chip_rate, fma.amount / 60'000 / 1000, 1e-6);
  EXPECT_EQ(fma.chip_unit, "TFLOP/s");
  EXPECT_EQ(fma.limit->value, 256);
  EXPECT_EQ(r.find("mma_bf16")->limit->cell, "wgmma_flops_per_clk_bf16");
  // The rate of writes is not a DRAM ceiling, and an FMA's rate has no cell.
  ASSERT_EQ(r.cells.size(), 4u);
  EXPECT_EQ(r.cells.at("dram_sustained_gb_s").value, r.find("dram_copy")->rate);
  EXPECT_EQ(r.cells.at("clock_sustained_mhz").value, 1500);
  EXPECT_EQ(r.cells.at("mma_sync_flops_per_clk_bf16").value, r.find("mma_bf16")->rate);
  EXPECT_EQ(r.cells.at("mufu_lanes").value, r.find("mufu_ex2")->rate);
  for (const auto& [name, cell] : r.cells) EXPECT_EQ(cell.origin, Origin::kMeasured) << name;
  const std::string source = r.cells.at("dram_sustained_gb_s").source;
  for (const char* part :
       {"dram_copy", "median 60 us", "120000 bytes", "at 1500 MHz", "driver 580.65.06", "GPU-00000000", "2026-01-02"})
    EXPECT_NE(source.find(part), std::string::npos) << part << " in " << source;
  EXPECT_EQ(gpu.buffers_in_use(), 0u);
}

TEST_F(CeilingsTest, TheFastestPointWins) {
  FakeScript s = script();
  s.step_ns = [](const FakeStep& step) {
    return step.launch.grid.x == 8 && step.launch.block.x == 512 ? 40'000.0 : 60'000.0;
  };
  FakeGpu gpu(s);
  const CeilingsReport r = measured(gpu, {"dram_write"});
  ASSERT_TRUE(r.results[0].measured()) << r.results[0].missing;
  EXPECT_NE(to_string(r.results[0].point).find("ctas_per_sm=4 threads=512"), std::string::npos)
      << to_string(r.results[0].point);
  EXPECT_NEAR(r.results[0].timing.median_ns, 40'000, 1);
  EXPECT_GT(r.results[0].points.size(), 3u);
  for (const CeilingPoint& p : r.results[0].points) EXPECT_LE(p.rate, r.results[0].rate * 1.0001);
}

TEST_F(CeilingsTest, MemoryIsColdAndTheRestIsHot) {
  FakeGpu gpu(script());
  measured(gpu, {"dram_write", "smem_read"});
  size_t cold = 0, hot = 0, screened = 0;
  for (const test::FakeCall* c : gpu.calls_of(test::FakeCall::Kind::kShot)) {
    const bool memory = c->steps.front().entry == "ceiling_stream";
    EXPECT_TRUE(c->flush || !memory);
    ++(memory ? cold : c->flush ? screened : hot);
  }
  EXPECT_GT(cold, 10u);
  EXPECT_GT(hot, 10 * screened);
}

TEST_F(CeilingsTest, OnlyMemoryNeedsManyBuffers) {
  const auto says = [](const CeilingsReport& r) {
    return std::any_of(r.notes.begin(), r.notes.end(), [](const std::string& note) {
      return note.find("of buffers together are less than three times L2") != std::string::npos;
    });
  };
  FakeGpu hot(script()), cold(script());
  EXPECT_FALSE(says(measured(hot, {"smem_read"})));
  EXPECT_TRUE(says(measured(cold, {"dram_write"})));  // the buffers of kSmall fit in L2
}

TEST_F(CeilingsTest, LargeInputsAreWrittenOnTheGpu) {
  FakeGpu gpu(script());
  const CeilingsReport r = measured(gpu, {"dram_write", "dram_triad"});
  EXPECT_TRUE(r.find("dram_triad")->measured()) << r.find("dram_triad")->missing;
  for (const test::FakeCall* c : gpu.calls_of(test::FakeCall::Kind::kAllocate)) EXPECT_FALSE(c->filled) << c->label;
}

TEST_F(CeilingsTest, AFaultCostsThatCeilingOnly) {
  FakeScript s = script();
  s.faults = {{Fault::kKernel, "ceiling_smem", "", 1, true}};
  FakeGpu gpu(s);
  const CeilingsReport r = measured(gpu, {"smem_read", "fp32_fma"});
  EXPECT_FALSE(r.find("smem_read")->measured());
  EXPECT_NE(r.find("smem_read")->missing.find("illegal"), std::string::npos) << r.find("smem_read")->missing;
  EXPECT_TRUE(r.find("fp32_fma")->measured()) << r.find("fp32_fma")->missing;
  EXPECT_EQ(r.cells.count("smem_bytes_per_clk"), 0u);
}

TEST_F(CeilingsTest, AFaultAtOnePointLeavesTheOthers) {
  FakeScript s = script();
  s.faults = {{Fault::kTimeout, "ceiling_smem", "", 2, false, FakeFault::Where::kRun}};
  FakeGpu gpu(s);
  const CeilingsReport r = measured(gpu, {"smem_read"});
  ASSERT_TRUE(r.results[0].measured()) << r.results[0].missing;
  size_t rejected = 0;
  for (const CeilingPoint& p : r.results[0].points) rejected += !p.rejected.empty();
  EXPECT_EQ(rejected, 1u);
}

TEST_F(CeilingsTest, AWrongResultRefusesTheCeiling) {
  // Omits the loop over the tail.
  std::string text = *DataFiles().read("templates/ceilings/stream.cu.jinja");
  const std::string tail = "for (; i < words; i += step) {";
  ASSERT_NE(text.find(tail), std::string::npos);
  text.replace(text.find(tail), tail.size(), "for (; i + 8 < words; i += step) {");
  fs::create_directories(dir_ / "templates/ceilings");
  std::ofstream(dir_ / "templates/ceilings/stream.cu.jinja") << text;
  FakeGpu gpu(script());
  const CeilingsReport r = measured(gpu, {"dram_copy", "fp32_fma"}, {dir_.string()});
  EXPECT_EQ(r.find("dram_copy")->missing.find("wrong result of dram_copy"), 0u) << r.find("dram_copy")->missing;
  EXPECT_EQ(r.cells.count("dram_sustained_gb_s"), 0u);
  EXPECT_TRUE(r.find("fp32_fma")->measured());
  EXPECT_EQ(gpu.buffers_in_use(), 0u);
}

TEST_F(CeilingsTest, AboveTheDatasheetIsABug) {
  FakeScript s = script();
  s.step_ns = [](const FakeStep& step) { return step.entry == "ceiling_smem" ? 60'000.0 : 100.0; };
  FakeGpu gpu(s);
  const CeilingsReport r = measured(gpu, {"mufu_ex2", "smem_read"});
  const CeilingResult& c = *r.find("mufu_ex2");
  EXPECT_TRUE(c.impossible);
  EXPECT_FALSE(c.measured());
  EXPECT_NE(c.missing.find("mufu_lanes of 16 at the 1500 MHz it ran at"), std::string::npos) << c.missing;
  EXPECT_NE(c.missing.find("a bug"), std::string::npos);
  EXPECT_EQ(r.cells.count("mufu_lanes"), 0u);
  EXPECT_EQ(r.cells.count("smem_bytes_per_clk"), 1u);
  EXPECT_NE(ceilings_text(r).find("the figure is discarded"), std::string::npos);
}

TEST_F(CeilingsTest, LaunchesAreCountedInStreamAndGraph) {
  FakeScript s = script();
  s.step_ns = [](const FakeStep& step) { return step.graph ? 1'100.0 : 2'300.0; };
  FakeGpu gpu(s);
  const CeilingsReport r = measured(gpu, {"launch"});
  ASSERT_TRUE(r.results[0].measured()) << r.results[0].missing;
  EXPECT_NEAR(r.results[0].rate, 2.3, 1e-3);
  ASSERT_EQ(r.results[0].extra.size(), 1u);
  EXPECT_NEAR(r.results[0].extra[0].second, 1.1, 1e-3);
  EXPECT_NEAR(r.cells.at("launch_us").value, 2.3, 1e-3);
}

TEST_F(CeilingsTest, WithoutAClockThereIsNoRatePerClock) {
  FakeScript s = script();
  s.sm_mhz = [](double) { return 0.0; };
  FakeGpu gpu(s);
  const CeilingsReport r = measured(gpu, {"mma_bf16", "dram_read"});
  EXPECT_TRUE(r.find("mma_bf16")->measured());
  EXPECT_EQ(r.cells.count("mma_sync_flops_per_clk_bf16"), 0u);
  EXPECT_EQ(r.cells.count("clock_sustained_mhz"), 0u);
  EXPECT_EQ(r.cells.count("dram_sustained_gb_s"), 1u);
}

TEST_F(CeilingsTest, UnsupportedCeilingsAreNamed) {
  FakeGpu gpu(script());
  const CeilingsReport r = measured(gpu, {"mma_fp8"});
  EXPECT_TRUE(r.results[0].not_here);
  EXPECT_EQ(r.results[0].missing, "sm_90 has no such instruction in hardware");
  const auto unknown = measure(gpu, {"dram_red"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().exit, Exit::kUsage);
  EXPECT_NE(unknown.error().message.find("dram_read"), std::string::npos);
}

TEST_F(CeilingsTest, ALostGpuKeepsFinishedResults) {
  FakeScript s = script();
  s.faults = {{Fault::kLost, "ceiling_fma", "", 1, true}};
  FakeGpu gpu(s);
  const CeilingsReport r = measured(gpu, {"smem_read", "fp32_fma", "mufu_ex2"});
  EXPECT_TRUE(r.find("smem_read")->measured()) << r.find("smem_read")->missing;
  EXPECT_TRUE(r.lost);
  EXPECT_FALSE(r.complete());
  EXPECT_NE(r.find("fp32_fma")->missing.find("lost"), std::string::npos);
  EXPECT_NE(r.find("mufu_ex2")->missing.find("lost"), std::string::npos);
}

TEST_F(CeilingsTest, AnInterruptKeepsFinishedResults) {
  stop_at_ = "FP32 FMA";
  FakeGpu gpu(script());
  const CeilingsReport r = measured(gpu, {"smem_read", "fp32_fma", "mufu_ex2"});
  EXPECT_TRUE(r.interrupted);
  EXPECT_TRUE(r.find("smem_read")->measured());
  EXPECT_EQ(r.find("fp32_fma")->missing, "interrupted");
  EXPECT_EQ(r.find("mufu_ex2")->missing, "interrupted before it");
  EXPECT_NE(parse_json(ceilings_json(r))["interrupted"], false);
}

// ---- the profile ----

class ProfileTest : public CeilingsTest {
 protected:
  void SetUp() override {}
  static CeilingsReport report(double dram = 4100) {
    CeilingsReport r;
    r.device = test::round_h200();
    r.gpu = FakeScript::h200_identity();
    r.date = "2026-01-02T03:04:05Z";
    r.cells["dram_sustained_gb_s"] = {dram, "GB/s", Origin::kMeasured, "a test that says so"};
    return r;
  }
  std::string path() const { return profile_path(dir_.string(), FakeScript::h200_identity().uuid); }
};

TEST_F(ProfileTest, IsWrittenAndLaidOver) {
  CeilingsReport r = report();
  r.cells["mma_sync_flops_per_clk_bf16"] = {2600, "FLOP/clk/SM", Origin::kMeasured, "a test that says so"};
  r.cells["clock_sustained_mhz"] = {1900, "MHz", Origin::kMeasured,
                                    "a test that says so"};  // above the tensor clock, below the highest clock
  auto kept = keep_profile(r, path(), kAnyFile);
  ASSERT_TRUE(kept) << to_string(kept.error());
  EXPECT_EQ(*kept, Kept::kWritten);
  Device d = r.device;
  EXPECT_EQ(apply_profile(d, r.gpu, path()), std::nullopt);
  EXPECT_EQ(d.at("dram_sustained_gb_s"), 4100);
  EXPECT_EQ(d.cells.at("dram_sustained_gb_s").origin, Origin::kMeasured);
  EXPECT_EQ(d.at("mma_sync_flops_per_clk_bf16"), 2600);
  EXPECT_EQ(d.at("peak_bf16_tflops"), 989.4);
  Device other = *load_device(DataFiles(), "h200-sxm");
  EXPECT_TRUE(apply_profile_file(other, path()));
  EXPECT_EQ(other.at("dram_sustained_gb_s"), 4100);
}

TEST_F(ProfileTest, TheOldOneIsKept) {
  ASSERT_TRUE(keep_profile(report(4000), path(), kAnyFile));
  const std::string first = text_of(path());
  ASSERT_TRUE(keep_profile(report(4200), path(), kAnyFile));
  EXPECT_EQ(text_of(path() + ".previous"), first);
  EXPECT_NE(text_of(path()), first);
  // No temporary file remains.
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(dir_ / "profiles")) files += entry.is_regular_file();
  EXPECT_EQ(files, 2u);
}

TEST_F(ProfileTest, APartialProfileDoesNotReplaceACompleteOne) {
  CeilingsReport partial = report(3000);
  partial.interrupted = true;
  EXPECT_EQ(*keep_profile(partial, path(), kAnyFile), Kept::kWritten);  // a partial profile is better than none
  EXPECT_EQ(*keep_profile(report(4000), path(), kAnyFile), Kept::kWritten);
  const std::string whole = text_of(path());
  for (bool CeilingsReport::*why : {&CeilingsReport::interrupted, &CeilingsReport::lost, &CeilingsReport::chosen}) {
    CeilingsReport r = report(3500);
    r.*why = true;
    EXPECT_EQ(*keep_profile(r, path(), kAnyFile), Kept::kPartialKept);
    EXPECT_EQ(text_of(path()), whole);
  }
  CeilingsReport nothing = report();
  nothing.cells.clear();
  EXPECT_EQ(*keep_profile(nothing, path(), kAnyFile), Kept::kNothingMeasured);
  EXPECT_EQ(text_of(path()), whole);
}

TEST_F(ProfileTest, ForeignProfilesAreIgnoredWithOneLine) {
  ASSERT_TRUE(keep_profile(report(), path(), kAnyFile));
  const std::string good = text_of(path());
  const Device before = report().device;
  const auto said = [&](const std::string& text, GpuIdentity gpu, const Device& device, bool laid) {
    std::ofstream(path()) << text;
    Device d = device;
    const auto line = apply_profile(d, gpu, path());
    EXPECT_EQ(d.at("dram_sustained_gb_s") == 4100, laid);
    return line.value_or("");
  };
  const GpuIdentity gpu = report().gpu;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  EXPECT_EQ(said(good, gpu, before, true), "");
  EXPECT_NE(said(good.substr(0, good.size() / 2), gpu, before, false).find("is ignored"), std::string::npos);
  EXPECT_NE(said("", gpu, before, false).find("is ignored"), std::string::npos);
  EXPECT_NE(said("[1]", gpu, before, false).find("is ignored"), std::string::npos);
  EXPECT_NE(said(std::string(3 << 20, ' '), gpu, before, false).find("over 1 MiB"), std::string::npos);
  EXPECT_NE(said(changed("4100", "9600"), gpu, before, false).find("above dram_gb_s"), std::string::npos);
  EXPECT_NE(said(changed("\"measured\"", "\"datasheet\""), gpu, before, false).find("must have the origin"),
            std::string::npos);
  GpuIdentity other = gpu;
  other.uuid = "GPU-2";
  EXPECT_NE(said(good, other, before, false).find("it is of the GPU GPU-00000000"), std::string::npos);
  EXPECT_NE(said(good, gpu, *load_device(DataFiles(), "h100-sxm"), false).find("the device is \"h100-sxm\""),
            std::string::npos);
  GpuIdentity newer = gpu;
  newer.driver = "590.10";
  const std::string line = said(good, newer, before, true);
  EXPECT_NE(line.find("under driver 580.65.06, this is 590.10"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST_F(ProfileTest, MeasuredCeilingsAreDrawnSolid) {
  Device d = report().device;
  const auto solid = [&] {
    std::vector<std::string> out;
    const plot::Roofline r = device_roofline(d, false);
    for (const plot::Slope& s : r.slopes)
      if (s.sustained && s.origin == Origin::kMeasured) out.push_back(fmt::format("{} {:g}", s.level, s.gb_s));
    for (const plot::Ceiling& c : r.ceilings)
      if (c.sustained && c.origin == Origin::kMeasured) out.push_back(fmt::format("{} {:.1f}", c.name, c.tflops));
    return out;
  };
  EXPECT_EQ(solid(), (std::vector<std::string>{"DRAM 4300", "L2 7510"}));
  CeilingsReport r = report();
  r.cells["l2_sustained_gb_s"] = {6000, "GB/s", Origin::kMeasured, "a test that says so"};
  r.cells["mma_sync_flops_per_clk_bf16"] = {2600, "FLOP/clk/SM", Origin::kMeasured, "a test that says so"};
  r.cells["clock_sustained_mhz"] = {1700, "MHz", Origin::kMeasured, "a test that says so"};
  ASSERT_TRUE(keep_profile(r, path(), kAnyFile));
  ASSERT_EQ(apply_profile(d, r.gpu, path()), std::nullopt);
  EXPECT_EQ(solid(), (std::vector<std::string>{"DRAM 4100", "L2 6000", "BF16 mma.sync 583.4"}));
}

TEST_F(ProfileTest, ATimeAboveAMeasuredCeilingIsR12) {
  Device d = *load_device(DataFiles(), "h100-sxm");
  d.cells["dram_sustained_gb_s"] = {3000, "GB/s", Origin::kMeasured, std::string(kOwnSource) + " in a test"};
  Device others = d;
  others.cells["dram_sustained_gb_s"].source = "someone, on a card of the same name";
  EXPECT_TRUE(above_measured_ceilings(others, {"k", 1e-3, 4e9, 1e12, "bf16", 1700}).empty());
  EXPECT_TRUE(above_measured_ceilings(d, {"k", 1e-3, 3.05e9, 1e15, "bf16", 1700})
                  .empty());  // its mma.sync rate has origin model
  d.cells["mma_sync_flops_per_clk_bf16"] = {2600, "FLOP/clk/SM", Origin::kMeasured,
                                            std::string(kOwnSource) + " in a test"};
  EXPECT_TRUE(above_measured_ceilings(d, {"k", 1e-3, 3.05e9, 0.59e12, "bf16", 1700}).empty());
  const auto found = above_measured_ceilings(d, {"k", 1e-3, 3.1e9, 0.6e12, "bf16", 1700});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].rule, "R12");
  EXPECT_EQ(
      found[0].text,
      "k: 3100 GB/s is above the measured dram_sustained_gb_s (3000): the ceiling, the work or the time is wrong");
}

TEST_F(ProfileTest, NoFileNoWord) {
  Device d = report().device;
  EXPECT_EQ(apply_profile(d, report().gpu, path()), std::nullopt);
  EXPECT_EQ(apply_profile(d, report().gpu, ""), std::nullopt);
  const auto asked = apply_profile_file(d, path());
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().exit, Exit::kUsage);
}

TEST_F(ProfileTest, AUuidIsAFileNameOrNone) {
  EXPECT_EQ(profile_path("/data", "GPU-1a"), "/data/profiles/GPU-1a.json");
  for (const char* bad : {"", "../x", "a/b", "GPU 1", "a.b"}) EXPECT_EQ(profile_path("/data", bad), "") << bad;
  EXPECT_EQ(profile_path("", "GPU-1a"), "");
}

TEST_F(ProfileTest, AFolderThatCannotBeWrittenIsAnError) {
  std::ofstream(dir_ / "profiles") << "in the way";
  EXPECT_FALSE(keep_profile(report(), path(), kAnyFile));
}

}  // namespace
}  // namespace roofgen::ceilings_test

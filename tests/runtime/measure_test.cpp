// The measurement protocol on a scripted GPU: one scenario per rule.
#include "runtime/measure/measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>

#include "tests/support/fake_gpu.h"

namespace roofgen::measure_test {
namespace {

using test::FakeCall;
using test::FakeFault;
using test::FakeGpu;
using test::FakeScript;
using test::FakeStep;
using Kind = FakeCall::Kind;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr uint64_t kMiB = 1 << 20;

struct Bench {
  FakeScript script;
  Protocol protocol;
  Workload workload;
  std::deque<Binary> binaries;
  std::vector<Contender> contenders;
  std::map<std::string, double> times;  ///< ns per contender
  std::unique_ptr<FakeGpu> gpu;
  std::vector<std::string> warnings;
  std::atomic<bool> stop{false};
  std::optional<double> deadline_s;
  std::function<void(const char*, uint64_t)> progress;

  Bench() {
    workload.buffers = {
        {"x", 40 * kMiB, [](uint64_t, std::span<std::byte> out) { std::fill(out.begin(), out.end(), std::byte{1}); }},
        {"y", 20 * kMiB, nullptr}};
    protocol.warmup_s = 0.01;
    script.step_ns = [this](const FakeStep& step) { return times[step.entry]; };
  }
  Contender& add(const std::string& name, double time_ns, int registers = 64) {
    Binary& binary = binaries.emplace_back();
    binary.entry = binary.digest = name;
    times[name] = time_ns;
    Contender out;
    out.name = name;
    out.registers = registers;
    Launch launch;
    launch.args = {{"x", true, 0, 8}, {"y", true, 0, 8}};
    out.kernels = {{&binary, launch}};
    return contenders.emplace_back(out);
  }
  Result<Standings> play() {
    gpu = std::make_unique<FakeGpu>(script);
    BenchHooks hooks;
    hooks.clock = gpu->clock();
    hooks.stop = &stop;
    hooks.deadline_s = deadline_s;
    hooks.warn = [this](const std::string& text) { warnings.push_back(text); };
    hooks.progress = [this](const char* phase, uint64_t done, uint64_t) {
      if (progress) progress(phase, done);
    };
    return measure(*gpu, workload, contenders, protocol, hooks);
  }
  Standings must() {
    auto out = play();
    EXPECT_TRUE(out) << to_string(out.error());
    return out ? std::move(*out) : Standings{};
  }
  std::string winner(const Standings& s) const { return s.order.empty() ? "" : contenders[s.order[0]].name; }
};

bool mentions(const std::vector<std::string>& lines, const std::string& what) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& l) { return l.find(what) != std::string::npos; });
}

TEST(Measure, TheFastestWinsAndTheRestIsOrdered) {
  Bench b;
  b.script.noise = 0.02;
  b.add("b", 30'000), b.add("a", 20'000), b.add("c", 25'000);
  Standings s = b.must();
  EXPECT_EQ(s.order, (std::vector<size_t>{1, 2, 0}));
  ASSERT_EQ(s.finalists.size(), 3u);
  EXPECT_NEAR(s.finalists[1].ratio, 1.25, 0.02);
  EXPECT_FALSE(s.finalists[1].tied);
  const Measurement& m = *s.outcomes[1].measurement;
  EXPECT_NEAR(m.cold->median_ns, 20'000, 400);
  EXPECT_EQ(m.sm_mhz, 1980);
  EXPECT_EQ(m.power_w, 500);
  EXPECT_EQ(m.batch, 1);
  EXPECT_EQ(b.gpu->buffers_in_use(), 0u);  // all buffers are released
}

TEST(Measure, OnePercentIsFoundAndNoneIsATie) {
  int found = 0, ties = 0;
  constexpr int kSeeds = 20;
  for (int seed = 0; seed < kSeeds; ++seed)
    for (double factor : {1.01, 1.0}) {
      Bench b;
      b.script.noise = 0.02;
      b.script.seed = static_cast<uint64_t>(seed);
      b.protocol.final_rounds = 200;
      b.protocol.hot = false;
      b.protocol.max_samples = 20;
      b.add("a", 20'000 * factor, 32), b.add("b", 20'000, 64);
      Standings s = b.must();
      ASSERT_EQ(s.finalists.size(), 2u);
      if (factor > 1)
        found += b.winner(s) == "b" && !s.finalists[1].tied;
      else
        ties += b.winner(s) == "a" && s.finalists[1].tied;  // among equal times, the kernel with fewer registers
    }
  EXPECT_GE(found, 18);
  EXPECT_GE(ties, 17);
}

TEST(Measure, TiesGoByRegistersThenSharedMemoryThenName) {
  for (int by = 0; by < 3; ++by) {
    Bench b;
    b.add("a", 20'000), b.add("b", 20'000), b.add("c", 20'000);
    if (by == 0) b.contenders[2].registers = 32;
    if (by == 1) b.contenders[0].smem_bytes = b.contenders[2].smem_bytes = 100;
    EXPECT_EQ(b.winner(b.must()), by == 0 ? "c" : by == 1 ? "b" : "a");
  }
}

TEST(Measure, RoundsAreInterleavedAndRotated) {
  Bench b;
  b.protocol.hot = false, b.protocol.warmup_s = 0, b.protocol.seed = 1;
  b.add("a", 20'000), b.add("b", 20'000), b.add("c", 20'000);
  b.must();
  auto order = b.gpu->shot_order();
  order.erase(order.begin(), order.begin() + 6);  // screening: twice each
  order.resize(12);
  EXPECT_EQ(order, (std::vector<std::string>{"b", "c", "a", "c", "a", "b", "a", "b", "c", "b", "c", "a"}));
  auto shots = b.gpu->calls_of(Kind::kShot);
  EXPECT_EQ(shots[6]->message, shots[8]->message);  // a round is one message
  EXPECT_NE(shots[8]->message, shots[9]->message);
}

TEST(Measure, ADriftThatFoolsOneAfterTheOtherDoesNotFoolRounds) {
  // The GPU warms up: times keep growing. `slow` is 2 % slower and comes first.
  Bench b;
  b.script.step_ns = [&](const FakeStep& step) { return b.times[step.entry] * (1 + 10 * step.now_s); };
  b.protocol.hot = false, b.protocol.warmup_s = 0;
  b.add("slow", 20'400), b.add("fast", 20'000);
  EXPECT_EQ(b.winner(b.must()), "fast");
  auto one_after_the_other =
      [&](const std::string& name) {  // the same GPU, but 100 samples of one kernel, then 100 of the next
        std::vector<Shot> shots;
        Binary binary;
        binary.entry = name;
        Step step{*b.gpu->load(binary), {}};
        for (int i = 0; i < 100; ++i) shots.push_back({{step}, true, false});
        auto samples = b.gpu->time(shots);
        return (*samples)[50].time_ns;
      };
  b.gpu->now_s = 0;
  double slow = one_after_the_other("slow"), fast = one_after_the_other("fast");
  EXPECT_LT(slow, fast);
}

TEST(Measure, StoppingRules) {
  auto stopped = [](Bench& b, size_t i) { return b.must().outcomes[i].measurement->cold->stopped; };
  Bench calm;
  calm.add("a", 20'000);
  EXPECT_EQ(stopped(calm, 0), "settled");
  Bench noisy;
  noisy.script.noise = 0.2;
  noisy.add("a", 20'000);
  EXPECT_EQ(stopped(noisy, 0), "most samples");
  Bench long_ones;
  long_ones.script.noise = 0.2;
  long_ones.add("a", 50e6);
  Standings s = long_ones.must();
  EXPECT_EQ(s.outcomes[0].measurement->cold->stopped, "out of time");
  EXPECT_NEAR(static_cast<double>(s.outcomes[0].measurement->cold->samples), 40, 6);
  Bench very_long;
  very_long.add("a", 1.5e9);
  s = very_long.must();
  EXPECT_EQ(s.outcomes[0].measurement->cold->stopped, "out of time");
  EXPECT_LT(s.outcomes[0].measurement->cold->samples, 10u);  // five times the time limit ends the measurement
}

TEST(Measure, SlowContendersAreDroppedUnlessKeptOrAmongTheBest) {
  Bench b;
  b.script.noise = 0.05;
  b.protocol.finalists = 2;
  b.add("best", 20'000), b.add("second", 40'000), b.add("behind", 60'000), b.add("default", 60'000).keep = true;
  Standings s = b.must();
  auto cold = [&](size_t i) { return *s.outcomes[i].measurement->cold; };
  EXPECT_EQ(cold(2).stopped, "behind");
  EXPECT_LT(cold(2).samples, 20u);
  EXPECT_NE(cold(1).stopped, "behind");
  EXPECT_NE(cold(3).stopped, "behind");
  EXPECT_GT(cold(3).samples, cold(2).samples);
  EXPECT_EQ(s.finalists.size(), 2u);
}

TEST(Measure, ALuckyStreakDoesNotSettleIt) {
  // The first eleven samples are equal, the others noisy: a naive rule stops after eleven.
  Bench b;
  int shots = 0;
  b.protocol.warmup_s = 0, b.protocol.hot = false;
  b.script.step_ns = [&](const FakeStep&) { return ++shots <= 2 + 11 ? 20'000.0 : 20'000.0 + 4000 * (shots % 7); };
  b.add("a", 0);
  EXPECT_GT(b.must().outcomes[0].measurement->cold->samples, 12u);
}

TEST(Measure, ThrottledSamplesAreDiscardedAndWaitedOut) {
  Bench b;
  b.protocol.warmup_s = 0;
  auto hot_phase = [](double now) { return now > 0.001 && now < 1.5; };
  b.script.sm_mhz = [=](double now) { return hot_phase(now) ? 1000.0 : 1980.0; };
  b.script.limits = [=](double now) { return hot_phase(now) ? kLimitThermalSw : uint64_t{0}; };
  b.script.step_ns = [&](const FakeStep& step) { return 20'000 * 1980 / step.sm_mhz; };
  b.add("a", 0);
  Standings s = b.must();
  const Timing cold = *s.outcomes[0].measurement->cold;
  EXPECT_GT(cold.discarded, 0u);
  EXPECT_EQ(*std::max_element(cold.times_ns.begin(), cold.times_ns.end()), 20'000);
  EXPECT_TRUE(mentions(s.notes, "discarded"));
  std::vector<double> sleeps;
  for (const FakeCall* call : b.gpu->calls_of(Kind::kSleep)) sleeps.push_back(call->seconds);
  ASSERT_GE(sleeps.size(), 3u);
  EXPECT_NEAR(sleeps[0], 0.05, 1e-9);
  EXPECT_NEAR(sleeps[1], 0.55, 1e-9);
}

TEST(Measure, APermanentlyThrottledGpuIsMeasuredWithANote) {
  Bench b;
  b.script.sm_mhz = [](double) { return 900.0; };
  b.script.limits = [](double) { return kLimitHwSlowdown; };
  b.add("a", 20'000);
  Standings s = b.must();
  EXPECT_GE(s.outcomes[0].measurement->cold->samples, 10u);
  EXPECT_TRUE(mentions(s.notes, "does not recover"));
  EXPECT_TRUE(mentions(b.warnings, "does not recover"));
  EXPECT_EQ(s.outcomes[0].measurement->cold->discarded, 20u);
  EXPECT_EQ(b.gpu->calls_of(Kind::kSleep).size(), 19u);
}

TEST(Measure, ThePowerLimitAloneDiscardsNoSamples) {
  Bench b;
  b.script.sm_mhz = [](double) { return 900.0; };
  b.script.limits = [](double) { return kLimitPowerCap; };
  b.add("a", 20'000);
  Standings s = b.must();
  const Measurement& m = *s.outcomes[0].measurement;
  EXPECT_EQ(m.cold->discarded, 0u);
  EXPECT_EQ(m.power_capped, m.cold->samples + m.hot->samples);
  EXPECT_TRUE(mentions(s.notes, "power limit"));
}

TEST(Measure, UnknownClocksDiscardNoSamples) {
  Bench b;
  b.script.identity.default_sm_mhz = 0;
  b.script.sm_mhz = [](double) { return 900.0; };
  b.script.limits = [](double) { return kLimitHwSlowdown; };
  b.add("a", 20'000);
  Standings s = b.must();
  EXPECT_EQ(s.outcomes[0].measurement->cold->discarded, 0u);
  EXPECT_TRUE(mentions(s.notes, "default clock is unknown"));
}

TEST(Measure, BurstAndQuickTakeTenAtMostAndBurstRests) {
  for (const auto mode : {Protocol::Mode::kBurst, Protocol::Mode::kQuick}) {
    SCOPED_TRACE(to_string(mode));
    Bench b;
    b.script.noise = 0.05;
    b.protocol.mode = mode, b.protocol.warmup_s = 3, b.protocol.hot = false;
    b.add("a", 20'000);
    Standings s = b.must();
    EXPECT_EQ(s.outcomes[0].measurement->cold->samples, 10u);
    EXPECT_EQ(b.gpu->calls_of(Kind::kShot).size(), 2u + 1 + 10);  // screening, one untimed shot, the samples
    auto sleeps = b.gpu->calls_of(Kind::kSleep);
    ASSERT_EQ(sleeps.size(), mode == Protocol::Mode::kBurst ? 10u : 0u);
    if (!sleeps.empty()) {
      EXPECT_EQ(sleeps[0]->seconds, 1);
    }
  }
}

TEST(Measure, SteadyWarmsUpFirst) {
  Bench b;
  b.protocol.warmup_s = 0.5;
  b.add("a", 100'000);
  double from = -1;
  b.progress = [&](const char* phase, uint64_t) {
    if (from < 0 && std::string(phase) == "cold") from = b.gpu->now_s;
  };
  b.must();
  EXPECT_GE(from, 0.5);
}

TEST(Measure, ShortKernelsAreTimedInGraphsOverRotatedBuffers) {
  Bench b;
  b.protocol.warmup_s = 0;
  b.script.step_ns = [&](const FakeStep& step) { return b.times[step.entry] * (step.cold ? 2 : 1); };
  b.add("short", 1000), b.add("near", 5000), b.add("long", 100'000);
  Standings s = b.must();
  const Measurement& m = *s.outcomes[0].measurement;
  EXPECT_EQ(m.batch, 32);                           // 2 us cold: the power of two that reaches 50 us
  EXPECT_EQ(s.outcomes[1].measurement->batch, 32);  // the same batch as the kernel it is compared with
  EXPECT_EQ(s.outcomes[2].measurement->batch, 1);
  EXPECT_NEAR(m.cold->median_ns, 2000, 1);
  bool seen = false;
  for (const FakeCall* shot : b.gpu->calls_of(Kind::kShot)) {
    if (shot->label != "short" || !shot->graph || !shot->flush) continue;
    seen = true;
    EXPECT_EQ(shot->steps.size(), 32u);
    EXPECT_NE(shot->steps[0].addresses, shot->steps[1].addresses);
    EXPECT_TRUE(shot->steps[31].cold);
  }
  EXPECT_TRUE(seen);
}

TEST(Measure, ColdIsFlushedAndRotatedHotIsNeither) {
  Bench b;
  b.workload.buffers[0].bytes = b.workload.buffers[1].bytes = 8 * kMiB;  // both fit into L2
  b.protocol.warmup_s = 0;
  b.script.step_ns = [&](const FakeStep& step) { return step.cold ? 30'000.0 : 10'000.0; };
  b.add("a", 0), b.add("b", 0);
  Standings s = b.must();
  EXPECT_EQ(s.buffer_sets, 12);  // 16 MiB each, 180 requested
  const Measurement& m = *s.outcomes[0].measurement;
  EXPECT_EQ(m.cold->median_ns, 30'000);
  EXPECT_EQ(m.hot->median_ns, 10'000);
  EXPECT_EQ(m.hot->times_ns.front(), 10'000);  // the first hot shot is untimed
  EXPECT_EQ(*std::max_element(m.hot->times_ns.begin(), m.hot->times_ns.end()), 10'000);
  std::set<std::vector<uint64_t>> cold, hot;
  for (const FakeCall* shot : b.gpu->calls_of(Kind::kShot)) (shot->flush ? cold : hot).insert(shot->steps[0].addresses);
  EXPECT_EQ(cold.size(), 12u);
  EXPECT_EQ(hot.size(), 1u);
}

TEST(Measure, FewerSetsWhenMemoryIsShortAndAnErrorWhenNotEvenOneFits) {
  Bench b;
  b.add("a", 20'000);
  b.script.memory_bytes = 140 * kMiB;  // a tenth stays free: two sets of 60
  Standings s = b.must();
  EXPECT_EQ(s.buffer_sets, 2);
  EXPECT_TRUE(mentions(s.notes, "less than three times L2"));
  b.script.memory_bytes = 50 * kMiB;
  auto none = b.play();
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("60.0 MiB"), std::string::npos) << none.error().message;
  EXPECT_NE(none.error().message.find("50.0 MiB are free; a problem of 75 %"), std::string::npos)
      << none.error().message;
}

TEST(Measure, AFaultCostsOneContenderAndEverythingIsMadeAnew) {
  for (uint64_t nth : {1, 6, 80}) {  // in screening, in a round, in the final
    Bench b;
    b.protocol.warmup_s = 0, b.protocol.hot = false;
    b.script.noise = 0.02;
    b.protocol.max_samples = 40;
    b.add("good", 20'000), b.add("bad", 15'000), b.add("fine", 30'000);
    b.script.faults = {{Fault::kKernel, "bad", "", nth}};
    Standings s = b.must();
    ASSERT_TRUE(s.outcomes[1].rejected) << nth;
    EXPECT_EQ(s.outcomes[1].rejected->stage, "gpu fault");
    EXPECT_NE(s.outcomes[1].rejected->reason.find("illegal memory access"), std::string::npos);
    EXPECT_NE(s.outcomes[1].rejected->reason.find(nth == 1   ? "screening"
                                                  : nth == 6 ? "cold"
                                                             : "final"),
              std::string::npos);
    EXPECT_FALSE(s.outcomes[1].measurement);
    EXPECT_EQ(b.winner(s), "good");
    EXPECT_EQ(s.order.size(), 2u);
    const uint64_t last = b.gpu->generation();
    size_t allocated = 0, loaded = 0;
    for (const FakeCall& call : b.gpu->calls) {
      allocated += call.generation == last && call.kind == Kind::kAllocate;
      loaded += call.generation == last && call.kind == Kind::kLoad && call.label != "bad";
    }
    EXPECT_EQ(allocated, 6u) << nth;
    EXPECT_EQ(loaded, 2u) << nth;
  }
}

TEST(Measure, TheDeathOfAnIdleWorkerBlamesNoContender) {
  Bench b;
  b.add("a", 20'000), b.add("b", 30'000);
  int deaths = 0;
  b.progress = [&](const char* phase, uint64_t) {
    if (std::string(phase) == "cold" && deaths < 2) ++deaths, b.gpu->replace_worker();
  };
  const Standings s = b.must();
  EXPECT_EQ(deaths, 2);
  EXPECT_EQ(s.order, (std::vector<size_t>{0, 1}));

  // A worker that dies repeatedly ends the wait.
  deaths = -1000;
  const Standings bad = b.must();
  EXPECT_TRUE(bad.order.size() < 2);
}

TEST(Measure, HangsAndMemoryCostOneContender) {
  Bench b;
  b.add("good", 20'000), b.add("hang", kInfinity), b.add("greedy", 20'000);
  b.script.faults = {{Fault::kMemory, "greedy"}};
  Standings s = b.must();
  EXPECT_EQ(s.outcomes[1].rejected->stage, "gpu timeout");
  EXPECT_EQ(s.outcomes[2].rejected->stage, "gpu memory");
  EXPECT_EQ(b.winner(s), "good");
}

/// A kernel that fills y must run again after a contender's first fault.
void prepares(Bench& b, const std::string& name) {
  Binary& binary = b.binaries.emplace_back();
  binary.entry = binary.digest = name;
  b.times[name] = 1000;
  Launch launch;
  launch.args = {{"y", true, 0, 8}};
  b.workload.prepare = {{&binary, launch}};
}

TEST(Measure, ARigThatCannotBeMadeAnewIsNoLostGpu) {
  Bench b;
  b.script.noise = 0.05;
  b.add("best", 20'000), b.add("bad", 30'000), b.add("other", 40'000);
  prepares(b, "prepare");
  // The good contender has finished its cold samples when the bad one faults in the hot rounds; after that, the data
  // cannot be prepared again.
  b.progress = [&](const char* phase, uint64_t) {
    if (std::string(phase) == "hot" && b.gpu->script.faults.empty())
      b.gpu->script.faults = {{Fault::kKernel, "bad"}, {Fault::kMemory, "prepare", "", 1, true}};
  };
  Standings s = b.must();
  EXPECT_FALSE(s.lost);
  EXPECT_FALSE(s.interrupted);
  EXPECT_TRUE(
      mentions(s.notes, "the measurement ended early: the buffers could not be restored after a fault: out of memory"));
  EXPECT_TRUE(mentions(b.warnings, "ended early"));
  EXPECT_EQ(s.outcomes[1].rejected->stage, "gpu fault");
  ASSERT_TRUE(s.outcomes[0].measurement);  // finished results remain valid
  EXPECT_TRUE(s.outcomes[0].measurement->cold);
  EXPECT_FALSE(s.outcomes[0].measurement->hot);
  EXPECT_EQ(b.winner(s), "best");
}

TEST(Measure, MemoryThatIsGoneAfterAFaultIsNamed) {
  Bench b;
  b.protocol.hot = false;
  b.add("bad", 20'000), b.add("waits", 20'000);
  b.script.faults = {{Fault::kKernel, "bad", "", 1}};
  // Another process takes the memory at the moment of the fault.
  b.script.step_ns = [&](const FakeStep& step) {
    b.gpu->script.memory_bytes = step.entry == "bad" ? 30 * kMiB : b.gpu->script.memory_bytes;
    return 20'000.0;
  };
  Standings s = b.must();
  EXPECT_FALSE(s.lost);
  EXPECT_EQ(s.outcomes[0].rejected->stage, "gpu fault");
  ASSERT_TRUE(s.outcomes[1].rejected);
  EXPECT_EQ(s.outcomes[1].rejected->stage, "gpu memory");
  EXPECT_NE(s.outcomes[1].rejected->reason.find("60.0 MiB of GPU memory and 30.0 MiB are free"), std::string::npos)
      << s.outcomes[1].rejected->reason;
}

TEST(Measure, HotAloneNeedsOneSet) {
  Bench b;
  b.add("a", 20'000);
  b.protocol.cold = false;
  const Standings s = b.must();
  EXPECT_EQ(s.buffer_sets, 1);
  EXPECT_EQ(b.gpu->calls_of(Kind::kAllocate).size(), 2u);
  EXPECT_TRUE(s.outcomes[0].measurement->hot);
  EXPECT_FALSE(mentions(s.notes, "of buffers together"));  // the note concerns cold samples
  b.protocol.cold = true;
  b.script.memory_bytes = 100 * kMiB;
  EXPECT_TRUE(mentions(b.must().notes, "1 set of buffers together"));
}

TEST(Measure, ALostGpuKeepsFinishedResults) {
  Bench b;
  b.script.noise = 0.05;
  b.protocol.finalists = 1;
  b.add("best", 20'000), b.add("other", 60'000);
  b.progress = [&](const char* phase, uint64_t) {
    if (std::string(phase) == "hot") b.gpu->lose("fell off the bus");
  };
  Standings s = b.must();
  EXPECT_TRUE(s.lost);
  EXPECT_EQ(s.lost_because, "fell off the bus");
  EXPECT_TRUE(s.outcomes[0].measurement->cold);
  EXPECT_FALSE(s.outcomes[0].measurement->hot);
  EXPECT_EQ(s.order.size(), 2u);
  Bench early;
  early.protocol.warmup_s = 0;
  early.add("a", 20'000);
  early.script.faults = {{Fault::kLost, "a", "", 8}};
  s = early.must();
  EXPECT_TRUE(s.lost);
  ASSERT_TRUE(s.outcomes[0].rejected);  // five samples are too few for a result
  EXPECT_EQ(s.outcomes[0].rejected->stage, "gpu");
  Bench at_once;
  at_once.add("a", 20'000);
  at_once.script.faults = {{Fault::kLost}};
  EXPECT_FALSE(at_once.play());
}

TEST(Measure, AnInterruptKeepsFinishedResults) {
  Bench b;
  b.script.noise = 0.05;
  b.add("a", 20'000), b.add("b", 30'000);
  b.progress = [&](const char* phase, uint64_t) {
    if (std::string(phase) == "hot") b.stop = true;
  };
  Standings s = b.must();
  EXPECT_TRUE(s.interrupted);
  EXPECT_EQ(b.winner(s), "a");
  EXPECT_TRUE(s.finalists.empty());
  Bench early;
  early.add("a", 20'000);
  early.stop = true;
  s = early.must();
  EXPECT_EQ(s.outcomes[0].rejected->reason, "interrupted");
}

TEST(Measure, NoContenderStartsAfterTheDeadline) {
  Bench b;
  b.add("a", 20'000'000), b.add("b", 30'000'000);  // 20 and 30 ms: seconds until both settle
  b.script.noise = 0.05;
  b.deadline_s = 2;
  const Standings s = b.must();
  EXPECT_LT(b.gpu->now_s, 2.5);
  EXPECT_FALSE(s.interrupted);
  ASSERT_EQ(s.order, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(s.outcomes[0].measurement->cold->stopped, "out of time");
  EXPECT_TRUE(mentions(s.notes, "the time was up"));
  b.deadline_s = 0.2;  // less than ten samples
  const Standings none = b.must();
  EXPECT_TRUE(none.order.empty());
  EXPECT_TRUE(none.outcomes[0].rejected);
}

TEST(Measure, PreparedOnEverySetBeforeAnythingIsTimed) {
  Bench b;
  b.add("a", 20'000);
  Binary fill;
  fill.entry = "fill";
  Launch launch;
  launch.args = {{"y", true, 0, 8}};
  b.workload.prepare = {{&fill, launch}};
  Standings s = b.must();
  EXPECT_EQ(b.gpu->calls_of(Kind::kRun).size(), static_cast<size_t>(s.buffer_sets));
  EXPECT_LT(b.gpu->calls_of(Kind::kRun).back()->now_s, b.gpu->calls_of(Kind::kShot).front()->now_s);
}

TEST(Measure, ReportsOtherProcessesAndRejectsBadArguments) {
  Bench b;
  b.script.other_processes = 2;
  b.add("a", 20'000), b.add("wrong", 20'000).kernels[0].launch.args[0].name = "z";
  Standings s = b.must();
  EXPECT_TRUE(mentions(s.notes, "2 other processes"));
  EXPECT_EQ(b.warnings.size(), 1u);
  ASSERT_TRUE(s.outcomes[1].rejected);
  EXPECT_NE(s.outcomes[1].rejected->reason.find("'z'"), std::string::npos);
}

TEST(Measure, TheSameSeedsGiveTheSameSamples) {
  auto once = [] {
    Bench b;
    b.script.noise = 0.05;
    b.add("a", 20'000), b.add("b", 20'000);
    Standings s = b.must();
    return std::pair(s.outcomes[0].measurement->cold->times_ns, s.finalists[1].ratio);
  };
  EXPECT_EQ(once(), once());
}

TEST(Measure, Modes) {
  for (const char* name : {"steady", "burst", "quick"}) EXPECT_STREQ(to_string(*parse_mode(name)), name);
  auto bad = parse_mode("bursts");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().exit, Exit::kUsage);
  EXPECT_EQ(bad.error().notes[0], "did you mean 'burst'?");
}

}  // namespace
}  // namespace roofgen::measure_test

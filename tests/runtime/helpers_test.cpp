// The timer's kernels: assembled if a toolkit is installed, and run in the simulator.
#include "runtime/cuda/helpers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/executor.h"
#include "tests/runtime/process.h"

namespace roofgen {
namespace {

class Helpers : public ::testing::Test {
 protected:
  void SetUp() override { sim_ = std::move(*make_sim_executor()); }
  Result<RunResult> run(const char* entry, Dim3 grid, Dim3 block, std::vector<Arg> args) {
    Binary binary;
    binary.entry = entry;
    binary.ptx = cuda::helper_ptx();
    auto module = sim_->load(binary);
    if (!module) return std::move(module).error();
    Launch launch;
    launch.grid = grid;
    launch.block = block;
    launch.args = std::move(args);
    return sim_->run(*module, launch, {});
  }
  template <class T>
  std::vector<T> contents(DevicePtr from, size_t count) {
    std::vector<T> out(count);
    EXPECT_TRUE(sim_->read(from, std::as_writable_bytes(std::span(out))));
    return out;
  }
  std::unique_ptr<Executor> sim_;
};

TEST_F(Helpers, AssembleForEveryGpu) {
  const std::string ptxas = "/usr/local/cuda/bin/ptxas";
  if (!std::filesystem::exists(ptxas)) GTEST_SKIP() << "no ptxas";
  testing::TempDir dir;
  testing::write_text(dir / "helpers.ptx", std::string(cuda::helper_ptx()));
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    const std::string command =
        ptxas + " -arch=" + arch + " -o " + (dir / "out.cubin") + " " + (dir / "helpers.ptx") + " 2> " + (dir / "log");
    if (std::system(command.c_str()) == 0) continue;
    const std::string log = testing::read_text(dir / "log");
    // An older toolkit does not support the newest architectures, a newer one not the oldest.
    EXPECT_NE(log.find("is not defined for option"), std::string::npos) << arch << ": " << log;
  }
}

TEST_F(Helpers, GateEndsAfterItsTime) {
  auto ran = run("roofgen_gate", {1, 1, 1}, {1, 1, 1}, {{"gate_ns", false, 500, 8}});
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_TRUE(ran->findings.empty()) << ran->findings[0].message;
  ASSERT_TRUE(ran->counts);
  EXPECT_GE(ran->counts->warp_instructions, 500u);  // the simulator's time counts instructions
  EXPECT_LT(ran->counts->warp_instructions, 600u);
}

TEST_F(Helpers, StampLeavesAPairPerSm) {
  auto to = sim_->allocate(cuda::kStamps * sizeof(cuda::Stamp), "stamps");
  ASSERT_TRUE(to);
  std::vector<cuda::Stamp> none(cuda::kStamps);
  ASSERT_TRUE(sim_->write(*to, std::as_bytes(std::span(none))));
  auto ran =
      run("roofgen_stamp", {1, 1, 1}, {1, 1, 1}, {{"to", true, to->address, 8}, {"capacity", false, cuda::kStamps, 4}});
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_TRUE(ran->findings.empty()) << ran->findings[0].message;
  int pairs = 0;
  for (const cuda::Stamp& stamp : contents<cuda::Stamp>(*to, cuda::kStamps))
    if (stamp.time_ns) {
      EXPECT_GT(stamp.clock, 0u);
      ++pairs;
    }
  EXPECT_EQ(pairs, 1);
}

TEST_F(Helpers, StampKeepsWithinItsRoom) {
  auto to = sim_->allocate(16, "stamps");
  auto ran = run("roofgen_stamp", {1, 1, 1}, {1, 1, 1}, {{"to", true, to->address, 8}, {"capacity", false, 0, 4}});
  ASSERT_TRUE(ran);
  EXPECT_TRUE(ran->findings.empty());
  std::vector<bool> written;
  std::vector<std::byte> out(16);
  ASSERT_TRUE(sim_->read(*to, out, &written));
  EXPECT_EQ(written, std::vector<bool>(16, false));
}

TEST_F(Helpers, SweepTouchesEveryLineOnce) {
  constexpr size_t kLines = 1000;  // not a multiple of 2 CTAs of 64
  auto base = sim_->allocate(kLines * 16, "scratch");
  std::vector<uint32_t> words(kLines * 4);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i);
  ASSERT_TRUE(sim_->write(*base, std::as_bytes(std::span(words))));
  const std::vector<Arg> args = {{"base", true, base->address, 8}, {"lines", false, kLines, 8}, {"write", false, 1, 4}};
  auto ran = run("roofgen_sweep", {2, 1, 1}, {64, 1, 1}, args);
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_TRUE(ran->findings.empty()) << ran->findings[0].message;
  const auto after = contents<uint32_t>(*base, words.size());
  for (size_t i = 0; i < words.size(); ++i) ASSERT_EQ(after[i], i + (i % 4 == 0 ? 1 : 0)) << i;
  EXPECT_EQ(ran->counts->unique_read_sectors, kLines / 2);
  EXPECT_EQ(ran->counts->unique_write_sectors, kLines / 2);
}

TEST_F(Helpers, SweepThatReadsChangesNothing) {
  constexpr size_t kLines = 300;
  auto base = sim_->allocate(kLines * 16, "scratch");
  std::vector<uint32_t> words(kLines * 4, 5);
  ASSERT_TRUE(sim_->write(*base, std::as_bytes(std::span(words))));
  auto ran = run("roofgen_sweep", {2, 1, 1}, {64, 1, 1},
                 {{"base", true, base->address, 8}, {"lines", false, kLines, 8}, {"write", false, 0, 4}});
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_TRUE(ran->findings.empty()) << ran->findings[0].message;
  EXPECT_EQ(contents<uint32_t>(*base, words.size()), words);
  EXPECT_EQ(ran->counts->unique_read_sectors, kLines / 2);
  EXPECT_EQ(ran->counts->unique_write_sectors, 0u);
}

}  // namespace
}  // namespace roofgen

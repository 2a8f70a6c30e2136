// Bundles written by `emit`, in C programs that use only the emitted header, on the simulated driver.
#include <gtest/gtest.h>

#include "tests/cli/program.h"

namespace roofgen::test::emitted_test {
namespace {

/// Emits a bundle, builds tests/shim/emitted/<program>.c around it and runs the program; every printed line must be ok.
void embed(const std::string& emit, const std::string& program, const std::string& defines = "") {
  const Home home;
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  const Outcome o = home.run("emit " + emit + " --executor sim --evals 3 -o out");
  ASSERT_EQ(o.exit, 0) << o.err;
  const std::string dir = home.dir().string(), sources = ROOFGEN_SOURCE_DIR "/tests/shim/emitted";
  const std::string build = "cd '" + dir + "' && cc -std=c11 -O1 -Wall -Wextra -Werror -Wno-unused-function -I. -I'" +
                            sources + "' " + defines + " '" + sources + "/" + program +
                            ".c' -o program '" ROOFGEN_SHIM_DIR "/libcuda.so.1' -lm >build.txt 2>&1";
  ASSERT_EQ(std::system(build.c_str()), 0) << home.read("build.txt");
  const int status = std::system(("cd '" + dir +
                                  "' && LD_LIBRARY_PATH='" ROOFGEN_SHIM_DIR
                                  "' ROOFGEN_SIM_LOG=sim.log ROOFGEN_SIM_STRICT=1 ./program >run.txt 2>&1")
                                     .c_str());
  const std::string out = home.read("run.txt");
  EXPECT_EQ(status, 0) << out << home.read("sim.log");
  EXPECT_EQ(out.find("FAILED"), std::string::npos) << out;
  EXPECT_NE(out.find("ok "), std::string::npos) << out;
}

TEST(Emitted, GemmWithAnEpilogueRunsAtOtherSizesToo) {
  embed(
      "gemm --M 100 --N 72 --K 80 --variant fused --epilogue 'silu(acc * scale + bias[n]) + slope[m] * residual[m,n]' "
      "--arg "
      "'slope:fp32[m]'",
      "gemm", "-DFORM=0 -DTUNED=100,72,80 -DOTHER=211,136,40");
}

TEST(Emitted, GemmInSlabs) {
  embed("gemm --M 40 --N 96 --K 520 --variant split_k2 --epilogue 'relu(acc + bias[n])'", "gemm",
        "-DFORM=1 -DTUNED=40,96,520 -DOTHER=75,96,776");
}

TEST(Emitted, GatedGemm) {
  embed("gemm --M 50 --N 128 --K 64 --variant fused --gated silu --epilogue 'acc + bias[n]'", "gemm",
        "-DFORM=2 -DTUNED=50,128,64 -DOTHER=70,256,128");
}

TEST(Emitted, GatedGemmOfWarpgroups) {
  embed("gemm --M 50 --N 128 --K 64 --variant warpgroup --gated silu --epilogue 'acc + bias[n]'", "gemm",
        "-DFORM=2 -DTUNED=50,128,64 -DOTHER=70,256,128");
}

TEST(Emitted, GatedGemmInTwoKernels) {
  embed("gemm --M 50 --N 66 --K 64 --gated silu --out-dtype fp32 --variant unfused --epilogue 'acc + bias[n]'", "gemm",
        "-DFORM=3 -DTUNED=50,66,64 -DOTHER=70,54,128");
}

TEST(Emitted, GroupedGemmRunsForOtherExpertsToo) {
  const std::string emit = "grouped_gemm --sizes 70,0,1,29 --N 72 --K 80 --epilogue 'acc + bias[n]' --variant ";
  embed(emit + "fused", "grouped_gemm", "'-DSIZES=N,K,K,K,M'");
  embed(emit + "warpgroup", "grouped_gemm", "'-DSIZES=N,K,M,K,K'");
  const std::string tokens = " --tokens 50 --topk 2 --gather --scatter weighted";
  embed(emit + "fused" + tokens, "grouped_gemm", "-DTOPK=2 '-DSIZES=N,K,K,K,M'");
  embed(emit + "warpgroup" + tokens, "grouped_gemm", "-DTOPK=2 '-DSIZES=N,K,M,K,K'");
}

TEST(Emitted, TwoKernelsOfANorm) { embed("rmsnorm --rows 5 --cols 1003 --residual --variant unfused", "rmsnorm"); }

const std::string kClusterNorm =
    "rmsnorm --cols 512 --variant cluster --data-dir '" ROOFGEN_SOURCE_DIR "/tests/support/hopper' --rows ";

TEST(Emitted, TensorMapsClustersOverlapAndAStruct) {
  embed(kClusterNorm + "20 --set ctas=2,box=64", "cluster", "-DTUNED=20,512 -DOTHER=77,512");
}

TEST(Emitted, BoxesWithoutSwizzle) {
  embed(kClusterNorm + "8 --set ctas=2,box=256", "cluster", "-DTUNED=8,512 -DOTHER=33,512");
}

TEST(Emitted, SplitSoftmaxAndItsTemporaries) { embed("softmax --rows 2 --cols 20003 --variant split", "softmax"); }

const std::string kDecode =
    "attention --L 1 --kv-len 512 --heads 8 --kv-heads 2 --d 64 --set pack_gqa=true,BM=16 --variant ";

TEST(Emitted, AttentionOfOneQuery) { embed(kDecode + "fused --batch 2", "attention"); }

TEST(Emitted, AttentionOfSplitKeys) { embed(kDecode + "split4 --batch 2 --lse", "attention", "-DSPLIT"); }

TEST(Emitted, AttentionWithPages) {
  embed(kDecode + "fused --page 16 --kv-lengths 100,512 --lse", "attention", "-DPAGE=16");
}

TEST(Emitted, AttentionThatAppendsRotatedKeysToPages) {
  embed(kDecode + "fused --page 16 --kv-lengths 100,512 --append --rotary half", "attention", "-DAPPEND -DPAGE=16");
}

TEST(Emitted, SplitAttentionThatAppendsRotatedKeysToPages) {
  embed(kDecode + "split4 --page 64 --kv-lengths 100,512 --append --rotary half", "attention",
        "-DSPLIT -DAPPEND -DPAGE=64");
}

TEST(Emitted, AttentionBehindAKernelThatAppendsRotatedKeysToPages) {
  embed(kDecode + "prologue_fused --page 16 --kv-lengths 100,512 --append --rotary half", "attention",
        "-DPROLOGUE -DAPPEND -DPAGE=16");
}

TEST(Emitted, AttentionWithPagesOfFp8) {
  embed(kDecode + "fused --page 16 --kv-lengths 100,512 --kv-dtype fp8 --kv-scales head", "attention",
        "-DFP8 -DPAGE=16");
}

TEST(Emitted, AttentionOfSplitKeysInPagesOfFp8) {
  embed(kDecode + "split4 --page 32 --kv-lengths 100,512 --kv-dtype fp8 --kv-scales head", "attention",
        "-DSPLIT -DFP8 -DPAGE=32");
}

TEST(Emitted, UnfusedAttentionOfOneQuery) {
  embed("attention --L 1 --kv-len 500 --heads 8 --kv-heads 2 --d 64 --batch 2 --variant unfused", "attention",
        "-DUNFUSED");
}

TEST(Emitted, AttentionOfSplitKeysInPages) {
  embed(kDecode + "split4 --page 16 --kv-lengths 100,512", "attention", "-DSPLIT -DPAGE=16");
}

TEST(Emitted, AttentionOfSplitKeysInLargePages) {
  embed(kDecode + "split4 --page 256 --kv-lengths 100,512 --causal", "attention", "-DSPLIT -DPAGE=256");
}

TEST(Emitted, AttentionOfMergedKeysOnTheCountersOfTheLaunchBefore) {
  embed(kDecode + "merged4 --batch 2 --lse", "attention", "-DMERGED");
}

TEST(Emitted, AttentionOfMergedKeysInPages) {
  embed(kDecode + "merged4 --page 16 --kv-lengths 100,512", "attention", "-DMERGED -DPAGE=16");
}

}  // namespace
}  // namespace roofgen::test::emitted_test

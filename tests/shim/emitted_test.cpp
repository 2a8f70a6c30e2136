// Bundles written by `emit` on the simulated driver: their own tests, and C programs around them.
#include <gtest/gtest.h>

#include <map>

#include "tests/cli/program.h"
#include "tests/support/code.h"
#include "tests/support/mutants.h"

namespace roofgen::test::emitted_test {
namespace {

/// A folder with a bundle, which compiles without warnings.
struct Bundle {
  Home home;
  Json manifest;
  std::string name;
  bool made = false;

  std::string flags;

  explicit Bundle(const std::string& emit, std::string more_flags = "") : flags(std::move(more_flags)) {
    const Outcome o = home.run("emit " + emit + " --executor sim --evals 1 -o out", kClosedForm);
    EXPECT_EQ(o.exit, 0) << o.err;
    if (o.exit != 0) return;
    manifest = parse_json(home.read("out/manifest.json"));
    manifest["name"].get_to(name);
    made = compile("out/" + name + ".c", name + ".o");
  }
  bool compile(const std::string& source, const std::string& object) const {
    const int status =
        std::system(("cd '" + home.dir().string() + "' && cc -std=c11 -O1 -Wall -Wextra -Werror -Wno-unused-function " +
                     flags + " -I. -Iout -I'" ROOFGEN_SOURCE_DIR "/tests/shim/emitted' -c '" + source + "' -o '" +
                     object + "' >build.txt 2>&1")
                        .c_str());
    EXPECT_EQ(status, 0) << home.read("build.txt");
    return status == 0;
  }
  /// Builds a program with main() and runs it on the simulated driver; every printed line must be ok.
  void run(const std::string& source, const std::string& libraries = "", const std::string& words = "") const {
    if (!made || !compile(source, "main.o")) return;
    const std::string in = "cd '" + home.dir().string() + "' && ";
    ASSERT_EQ(std::system(
                  (in + "cc " + flags + " main.o " + name + ".o -o program " + libraries + " -ldl -lm >build.txt 2>&1")
                      .c_str()),
              0)
        << home.read("build.txt");
    const int status = std::system(
        (in + "LD_LIBRARY_PATH='" ROOFGEN_SHIM_DIR "' ROOFGEN_SIM_LOG=sim.log ROOFGEN_SIM_STRICT=1 ./program " + words +
         " >run.txt 2>&1")
            .c_str());
    const std::string out = home.read("run.txt");
    EXPECT_EQ(status, 0) << out << home.read("sim.log");
    EXPECT_EQ(out.find("FAILED"), std::string::npos) << out;
    EXPECT_NE(out.find("ok "), std::string::npos) << out;
  }
};

#define SKIP_WITHOUT_NVRTC                                                            \
  {                                                                                   \
    const Home home;                                                                  \
    if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled"; \
  }

/// The bundle's own test.
void self_test(const std::string& emit) {
  SKIP_WITHOUT_NVRTC
  const Bundle bundle(emit);
  bundle.run("out/self_test.c");
  EXPECT_NE(bundle.home.read("run.txt").find(" elements"), std::string::npos) << "nothing was compared";
}

/// Writes call.h for a program around the bundle. The program's macros ARG_x are the arguments.
void write_call(const Bundle& bundle, const std::string& defines) {
  std::string call = "#include \"out/" + bundle.name + ".h\"\n#define BUNDLE(f) " + bundle.name + "_##f\n" + defines;
  std::string arguments, sizes;
  for (const Json& p : bundle.manifest["parameters"]) {
    const auto name = p["name"].get<std::string>(), type = p["type"].get<std::string>();
    const std::string cast = type.ends_with('*') ? "(" + type + ")(uintptr_t)(ARG_" + name + ")" : "(ARG_" + name + ")";
    arguments += (arguments.empty() ? "" : ", ") + cast;
  }
  for (const Json& p : bundle.manifest["workspace_parameters"])
    sizes += (sizes.empty() ? "(ARG_" : ", (ARG_") + p.get<std::string>() + ")";
  bundle.home.write("call.h", call + "#define ARGUMENTS " + arguments + "\n#define WORKSPACE_SIZES " + sizes + "\n");
}

const std::string kPrograms = ROOFGEN_SOURCE_DIR "/tests/shim/emitted/";
const std::string kDriver = "'" ROOFGEN_SHIM_DIR "/libcuda.so.1'";

/// Runs tests/shim/emitted/<program>.c around the bundle.
void embed(const std::string& emit, const std::string& program, const std::string& defines = "",
           const std::string& flags = "") {
  SKIP_WITHOUT_NVRTC
  const Bundle bundle(emit, flags);
  if (!bundle.made) return;
  write_call(bundle, defines);
  bundle.run(kPrograms + program + ".c", kDriver);
}

TEST(Emitted, GemmWithAnEpilogueRunsAtOtherSizesToo) {
  self_test(
      "gemm --M 100 --N 72 --K 80 --variant fused --epilogue 'silu(acc * scale + bias[n]) + slope[m] * residual[m,n]' "
      "--arg "
      "'slope:fp32[m]'");
}

TEST(SlowEmitted, GemmInSlabs) {
  self_test("gemm --M 40 --N 96 --K 520 --variant split_k2 --epilogue 'relu(acc + bias[n])'");
}

const std::string kIntegers =
    "gemm --M 100 --N 72 --K 512 --dtype int8 --arg 'zero:int8[n]' --out-dtype int32 --epilogue "
    "'(acc - zero[n] * row_bias[m]) * 65537 + bias[n]' --variant ";

TEST(Emitted, IntegersOfInt8Products) { self_test(kIntegers + "fused"); }

TEST(SlowEmitted, IntegersOfInt8Products) { self_test(kIntegers + "split_k2"); }

TEST(SlowEmitted, GatedGemm) {
  self_test("gemm --M 50 --N 128 --K 64 --variant fused --gated silu --epilogue 'acc + bias[n]'");
}

TEST(SlowEmitted, GatedGemmOfWarpgroups) {
  self_test("gemm --M 50 --N 128 --K 64 --variant warpgroup --gated silu --epilogue 'acc + bias[n]'");
}

TEST(SlowEmitted, GatedGemmInTwoKernels) {
  self_test("gemm --M 50 --N 66 --K 64 --gated silu --out-dtype fp32 --variant unfused --epilogue 'acc + bias[n]'");
}

const std::string kExperts = "grouped_gemm --sizes 70,0,1,29 --N 72 --K 80 --epilogue 'acc + bias[n]' --variant ";
const std::string kTokens = " --tokens 50 --topk 2 --gather --scatter weighted";

TEST(Emitted, GroupedGemmRunsForOtherExpertsToo) {
  embed(kExperts + "fused" + kTokens, "grouped_gemm", "#define TOPK 2\n");
}

TEST(SlowEmitted, GroupedGemmRunsForOtherExpertsToo) {
  embed(kExperts + "fused", "grouped_gemm");
  embed(kExperts + "warpgroup", "grouped_gemm");
  embed(kExperts + "warpgroup" + kTokens, "grouped_gemm", "#define TOPK 2\n");
}

// Outputs of other rows, and a counter that must be zero again.
TEST(Emitted, AnOperatorOfDataFiles) {
  const std::string dots = "dots --rows 300 --cols 777 --data-dir '" ROOFGEN_SOURCE_DIR "/examples/dots' --variant ";
  self_test(dots + "fused");
  self_test(dots + "unfused");
}

TEST(Emitted, TwoKernelsOfANorm) { self_test("rmsnorm --rows 5 --cols 1003 --residual --variant unfused"); }

const std::string kClusterNorm =
    "rmsnorm --cols 512 --variant cluster --data-dir '" ROOFGEN_SOURCE_DIR "/tests/support/hopper' --rows ";

TEST(Emitted, TensorMapsClustersOverlapAndAStruct) { self_test(kClusterNorm + "20 --set ctas=2,box=64"); }

TEST(SlowEmitted, BoxesWithoutSwizzle) { self_test(kClusterNorm + "8 --set ctas=2,box=256"); }

TEST(Emitted, SplitSoftmaxAndItsTemporaries) { self_test("softmax --rows 2 --cols 20003 --variant split"); }

const std::string kDecode =
    "attention --L 1 --kv-len 512 --heads 8 --kv-heads 2 --d 64 --set pack_gqa=true,BM=16 --variant ";

TEST(SlowEmitted, AttentionOfOneQuery) { embed(kDecode + "fused --batch 2", "attention"); }

TEST(SlowEmitted, AttentionOfSplitKeys) { embed(kDecode + "split4 --batch 2 --lse", "attention"); }

TEST(SlowEmitted, AttentionWithPages) {
  embed(kDecode + "fused --page 16 --kv-lengths 100,512 --lse", "attention", "#define PAGE 16\n");
}

TEST(SlowEmitted, UnfusedAttentionOfOneQuery) {
  self_test("attention --L 1 --kv-len 500 --heads 8 --kv-heads 2 --d 64 --batch 2 --variant unfused");
}

TEST(Emitted, AttentionOfSplitKeysInPages) {
  embed(kDecode + "split4 --page 16 --kv-lengths 100,512", "attention", "#define PAGE 16\n");
}

TEST(SlowEmitted, AttentionOfSplitKeysInLargePages) {
  embed(kDecode + "split4 --page 256 --kv-lengths 100,512 --causal", "attention", "#define PAGE 256\n");
}

TEST(Emitted, AttentionOfMergedKeysOnTheCountersOfTheLaunchBefore) {
  embed(kDecode + "merged4 --batch 2 --lse", "attention");
}

TEST(SlowEmitted, AttentionOfMergedKeysInPages) {
  embed(kDecode + "merged4 --page 16 --kv-lengths 100,512", "attention", "#define PAGE 16\n");
}

const std::string kCaches =
    "attention --L 4 --kv-len 512 --heads 8 --kv-heads 2 --d 64 --kv-lengths 100,512 --page 32 --causal --lse "
    "--variant ";
const std::string kAlibi =
    "attention --L 256 --d 64 --batch 1 --heads 4 --kv-heads 2 --causal --score 's + slope[h] * (k - q)' --arg "
    "'slope:fp32[h]' --lse --variant ";
const std::string kPacked = "attention --lengths 100,33,70 --d 64 --heads 4 --kv-heads 2 --causal --lse --variant ";
const std::string kFp8 = "attention --d 64 --heads 4 --kv-heads 2 --dtype fp8 --variant warpgroup ";
const std::string kFp8Pages =
    "attention --d 64 --heads 4 --kv-heads 2 --dtype fp8 --L 1 --kv-lengths 100,300 --page 64 --lse --kv-scales head "
    "--variant warpgroup_even133";
const std::string kAppend =
    "attention --L 4 --d 64 --heads 4 --kv-heads 2 --kv-lengths 100,300 --append --rotary half --variant ";
const std::string kGrouped = "grouped_gemm --sizes 70,0,1,29 --N 72 --K 80 --variant fused --epilogue 'acc + bias[n]'";

const std::string kBlocks = "gemm --M 128 --N 128 --K 1024 --dtype fp8 --scales block --variant ";
const std::string kRouted =
    "grouped_gemm --tokens 50 --topk 2 --experts 4 --N 128 --K 64 --gather --scatter weighted --gated silu --variant "
    "fused";

TEST(SlowEmitted, SelfTestOfCachesWithLengthsAndPages) { self_test(kCaches + "split4"); }

TEST(SlowEmitted, SelfTestOfScoreExpressions) {
  self_test(
      "attention --L 256 --d 64 --batch 1 --heads 4 --kv-heads 2 --variant warpgroup --score 's * t[q] + u[b,h]' --arg "
      "'t:fp32[q]' --arg 'u:bf16[b,h]'");
}

TEST(Emitted, SelfTestOfMasks) {
  self_test(
      "attention --L 4 --kv-len 512 --heads 8 --kv-heads 2 --d 64 --kv-lengths 100,512 --variant fused --lse --mask "
      "'(q - k < 64 or k < 4) and kind[k] != 1' --arg 'kind:int32[k]'");
}

TEST(SlowEmitted, SelfTestOfMasks) {
  self_test("attention --L 128 --d 64 --batch 1 --heads 2 --variant unfused --mask 'q - k < 64'");
  self_test("attention --L 128 --d 64 --batch 1 --heads 2 --variant unfused --lse --score 'min(s, 0.3)'");
}

TEST(Emitted, SelfTestOfPackedSequences) { self_test(kPacked + "unfused"); }

TEST(SlowEmitted, SelfTestOfPackedSequences) {
  self_test("attention --lengths 100,33,500 --d 64 --heads 4 --kv-heads 2 --lse --variant split2 --mask 'q - k < 64'");
}

TEST(Emitted, SelfTestOfFp8Attention) { self_test(kFp8 + "--L 128 --batch 2 --lse --causal"); }

TEST(SlowEmitted, SelfTestOfFp8Attention) {
  self_test(kFp8 + "--lengths 100,33,70 --kv-scales head");
  self_test(kFp8 +
            "--L 128 --batch 2 --lse --score 's + slope[h] * (k - q)' --arg 'slope:fp32[h]' --mask 'q - k < 50'");
}

const std::string kRotated = " --d 64 --heads 4 --kv-heads 2 --lse --variant ";

TEST(SlowEmitted, SelfTestOfRotaryPositions) {
  self_test("attention --L 128 --batch 2 --rotary interleaved --rotary-dim 32 --dtype fp16" + kRotated + "fused");
  self_test("attention --lengths 100,33,70 --rotary half --rotary-table" + kRotated + "unfused");
  self_test(
      "attention --L 128 --batch 2 --rotary half --rotary-base 500 --causal --mask 'q - k < 50' --score "
      "'s + slope[h] * (k - q)' --arg 'slope:fp32[h]'" +
      kRotated + "prologue_warpgroup");
}

TEST(Emitted, SelfTestOfCachesInFp8) {
  self_test(kDecode + "split4 --page 32 --kv-lengths 100,512 --kv-dtype fp8 --kv-scales head");
}

TEST(SlowEmitted, SelfTestOfCachesInFp8) {
  self_test("attention --lengths 100,33,70 --d 64 --heads 4 --kv-heads 2 --kv-dtype fp8 --variant prologue_fused");
}

const std::string kPages = " --page 64 --kv-lengths 100,512 --append ";

TEST(Emitted, SelfTestOfAppendedKeys) { self_test(kDecode + "fused --lse --rotary half" + kPages); }

TEST(SlowEmitted, SelfTestOfAppendedKeys) {
  self_test(kDecode + "split4 --rotary interleaved --kv-dtype fp8 --kv-scales head" + kPages);
  self_test(kDecode + "prologue_fused --kv-dtype fp8 --lse" + kPages);
  self_test("attention --L 4 --d 64 --heads 4 --kv-heads 2 --batch 2 --kv-len 300 --append --causal --variant unfused");
}

TEST(SlowEmitted, SelfTestOfGroupedProducts) {
  self_test("grouped_gemm --sizes 70,0,1,29 --N 128 --K 512 --dtype fp8 --variant warpgroup --gated silu");
  self_test("grouped_gemm --tokens 50 --topk 2 --experts 4 --N 128 --K 64 --gather --variant warpgroup");
}

TEST(SlowEmitted, SelfTestOfFp8Products) {
  self_test("gemm --M 256 --N 256 --K 512 --dtype fp8 --variant fused --epilogue 'gelu(acc + bias[n])'");
}

/// Links the self test in main.o and runs it: its exit status. The output is in run.txt.
int link_and_run(const Bundle& bundle) {
  const std::string there = "cd '" + bundle.home.dir().string() + "' && ";
  EXPECT_EQ(std::system((there + "cc main.o " + bundle.name + ".o -o program -ldl -lm").c_str()), 0);
  return std::system((there + "LD_LIBRARY_PATH='" ROOFGEN_SHIM_DIR "' ./program >run.txt 2>&1").c_str());
}

/// The self test must find a wrong element, or a call that is no error.
void expect_failure(const Bundle& bundle, const std::string& what) {
  EXPECT_NE(link_and_run(bundle), 0) << what;
  const std::string out = bundle.home.read("run.txt");
  EXPECT_NE(out.find("FAILED"), std::string::npos) << what << out;
}

TEST(Emitted, SelfTestOfScalesOfBlocks) { self_test(kBlocks + "split_k2 --epilogue 'relu(acc)'"); }

TEST(SlowEmitted, SelfTestOfScalesOfBlocks) {
  self_test(kBlocks + "unfused --epilogue 'relu(acc)'");
  self_test(
      "gemm --M 50 --N 256 --K 400 --dtype fp8 --scales block --variant warpgroup --gated silu --epilogue 'acc + "
      "bias[n]'");
}

/// Self tests in which the device has zeros in place of one input: each input counts.
void expect_inputs_count(const std::vector<std::string>& emits) {
  SKIP_WITHOUT_NVRTC
  for (const std::string& emit : emits) {
    SCOPED_TRACE(emit);
    const Bundle bundle(emit);
    bundle.run("out/self_test.c");
    if (!bundle.made) return;
    const std::string test = bundle.home.read("out/self_test.c"), made = "  upload(x);\n  return 1;";
    const size_t at = test.find(made);
    ASSERT_NE(at, std::string::npos);
    for (size_t i = 0; i < bundle.manifest["parameters"].size(); ++i) {
      const Json& p = bundle.manifest["parameters"][i];
      const auto name = p["name"].get<std::string>(), note = p["note"].get<std::string>();
      if (!note.starts_with("input") && !note.starts_with("updated")) continue;
      const std::string other = "  upload(x);\n  if (x->of->parameter == " + std::to_string(i) +
                                ") must(cuda.cuMemsetD8_v2(x->device, 0, extent_of(x)), \"cuMemsetD8\");\n  return 1;";
      bundle.home.write("self_test.c", std::string(test).replace(at, made.size(), other));
      ASSERT_TRUE(bundle.compile("self_test.c", "main.o"));
      expect_failure(bundle, name);
    }
  }
}

TEST(Emitted, SelfTestsFindKernelsThatReadSomethingElse) { expect_inputs_count({kCaches + "fused"}); }

TEST(SlowEmitted, SelfTestsFindKernelsThatReadSomethingElse) {
  expect_inputs_count({kPacked + "fused", kPacked + "warpgroup", kFp8Pages, kAppend + "fused",
                       kAppend + "fused --kv-dtype fp8", kAlibi + "fused", kBlocks + "fused", kGrouped, kRouted});
}

TEST(Emitted, ALaunchInAGraphAndLaunchesOfSeveralThreads) {
  embed("gemm --M 128 --N 128 --K 512 --variant split_k2", "concurrent", "", "-pthread -fsanitize=thread");
}

TEST(SlowEmitted, ALaunchInAGraphAndLaunchesOfSeveralThreads) {
  embed("gemm --M 128 --N 128 --K 512 --variant warpgroup", "concurrent", "", "-pthread -fsanitize=thread");
}

TEST(Emitted, MisusesAreErrorsThatNameTheArgument) {
  embed("attention --L 64 --d 64 --batch 2 --heads 4 --kv-heads 2 --variant unfused --lse", "misuse", "",
        "-fsanitize=address,undefined -fno-sanitize-recover=undefined");
}

TEST(Emitted, AFamilySelectsTheKernelsOfEachCall) {
  SKIP_WITHOUT_NVRTC
  const Bundle bundle("gemm --M 16,64 --N 64 --K 64 --variant fused --epilogue 'relu(acc)' --within 0%");
  if (!bundle.made) return;
  const Json& table = bundle.manifest["table"];
  EXPECT_EQ(table["schema"], "roofgen.dispatch.1");
  ASSERT_EQ(bundle.manifest["pipelines"].size(), 2u) << "one kernel is best for both: nothing is selected";
  const int first = table["shapes"][0]["kernel"].get<int>(), second = table["shapes"][1]["kernel"].get<int>();
  write_call(bundle, "#define FOR_16 " + std::to_string(first) + "\n#define FOR_64 " + std::to_string(second) + "\n");
  bundle.run(kPrograms + "family.c", kDriver);
  // With one wrong kernel, the sizes of that kernel have wrong results and no others.
  const std::string images = bundle.home.read("out/gemm_images.h");
  for (const int damaged : {first, second}) {
    std::string wrong = images;
    size_t at = wrong.find("ptx_" + std::to_string(damaged) + "_0[]");
    ASSERT_NE(at, std::string::npos);
    const size_t end = std::min(wrong.find("ptx_", at + 4), wrong.size());
    ASSERT_LT(wrong.find("max.NaN.f32", at), end);
    while ((at = wrong.find("max.NaN.f32", at)) < end) wrong.replace(at, 3, "min");
    bundle.home.write("out/gemm_images.h", wrong);
    ASSERT_TRUE(bundle.compile("out/gemm.c", "gemm.o"));
    bundle.run(kPrograms + "family.c", kDriver, std::to_string(damaged));
  }
}

TEST(Emitted, TheSelfTestOfAFamilyReachesEachPipeline) {
  SKIP_WITHOUT_NVRTC
  const Bundle bundle("rmsnorm --rows 8 --cols 256,1024 --within 0%");
  if (!bundle.made) return;
  ASSERT_EQ(bundle.manifest["pipelines"].size(), 2u);
  bundle.run("out/self_test.c");
  const std::string out = bundle.home.read("run.txt");
  EXPECT_EQ(out.find("note:"), std::string::npos) << out;
  EXPECT_NE(out.find("ok rows 3, cols 1024"), std::string::npos) << out;
}

/// A bundle with one other instruction.
void expect_wrong(const std::string& emit, const std::string& from, const std::string& to) {
  SKIP_WITHOUT_NVRTC
  const Bundle bundle(emit);
  const std::string file = "out/" + bundle.name + "_images.h";
  std::string images = bundle.home.read(file);
  const size_t at = images.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  bundle.home.write(file, images.replace(at, from.size(), to));
  ASSERT_TRUE(bundle.compile("out/" + bundle.name + ".c", bundle.name + ".o") &&
              bundle.compile("out/self_test.c", "main.o"));
  expect_failure(bundle, to);
}

TEST(Emitted, SelfTestsFindWrongKernels) {
  expect_wrong("attention --L 128 --d 64 --batch 1 --heads 2 --variant fused", "ex2.approx", "lg2.approx");
}

TEST(SlowEmitted, SelfTestsFindWrongKernels) {
  expect_wrong(kFp8 + "--L 128 --batch 2 --causal", "cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.satfinite.e5m2x2.f32");
  expect_wrong(kAppend + "fused", "sin.approx", "cos.approx");
  expect_wrong(kBlocks + "fused", "mul.f32", "add.f32");
}

/// The planted bugs of tests/shim/planted, those of one bundle together.
std::vector<std::vector<Mutant>> planted_bugs() {
  std::map<std::string, std::vector<Mutant>> of_bundles;
  for (const Mutant& m : mutants_below("tests/shim/planted")) of_bundles[m.run].push_back(m);
  std::vector<std::vector<Mutant>> out;
  for (auto& [run, mutants] : of_bundles) out.push_back(std::move(mutants));
  return out;
}

class PlantedBundles : public testing::TestWithParam<std::vector<Mutant>> {};

TEST_P(PlantedBundles, FailTheirSelfTests) {
  SKIP_WITHOUT_NVRTC
  const Bundle bundle(GetParam()[0].run, "-w");
  bundle.run("out/self_test.c");
  for (const Mutant& m : GetParam()) {
    SCOPED_TRACE(m.name);
    std::map<std::string, std::string> right;
    for (const Edit& edit : m.edits) {
      std::string text = bundle.home.read(edit.file);
      right.emplace(edit.file, text);
      const auto places = find_code(text, edit.from);
      ASSERT_FALSE(places.empty()) << edit.file << " does not contain " << edit.from;
      for (auto at = places.rbegin(); at != places.rend(); ++at)
        text.replace(at->first, at->second - at->first, edit.to);
      bundle.home.write(edit.file, text);
    }
    ASSERT_TRUE(bundle.compile("out/" + bundle.name + ".c", bundle.name + ".o"));
    EXPECT_NE(link_and_run(bundle), 0) << m.because << "\n" << bundle.home.read("run.txt");
    for (const auto& [file, text] : right) bundle.home.write(file, text);
  }
}

INSTANTIATE_TEST_SUITE_P(Slow, PlantedBundles, testing::ValuesIn(planted_bugs()),
                         [](const auto& test) { return test.param[0].name; });

TEST(PlantedBundleFiles, AreWellFormed) { expect_mutants_well_formed("tests/shim/planted"); }

TEST(Emitted, ADriverThatIsTooOldIsAnError) {
  SKIP_WITHOUT_NVRTC
  const Bundle bundle("map --rows 4 --cols 64 --expr 'x + 1'", "-DMAP_LINK_CUDA");
  bundle.home.write(
      "main.c",
      "#include \"out/map.h\"\n#include <stdio.h>\nint main(void) {\n  map_t* h;\n  const int error = "
      "map_create(&h, 0);\n  puts(map_error_string(error));\n  return error % 16 != MAP_NO_DRIVER || h;\n}\n");
  ASSERT_TRUE(bundle.compile("main.c", "main.o"));
  const std::string command = "cd '" + bundle.home.dir().string() +
                              "' && cc -DVERSION=12080 main.o map.o '" ROOFGEN_SOURCE_DIR
                              "/bench/bundle/driver.c' -o program && ./program >run.txt 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0) << bundle.home.read("run.txt");
  EXPECT_NE(bundle.home.read("run.txt").find("the CUDA driver is older than CUDA 13.0"), std::string::npos);
}

}  // namespace
}  // namespace roofgen::test::emitted_test

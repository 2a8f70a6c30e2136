// Input that the parser and decoder reject, with the message; and hostile text, which must never crash.
#include <gtest/gtest.h>

#include "fuzz_ptx.h"
#include "support.h"

namespace roofgen::sim_test::parse_test {
namespace {

std::string error_of(const std::string& body, const std::string& head = "") {
  Bench bench;
  return bench.load(kernel_text(0, body, head));
}

TEST(Parse, UnknownInstructionsAreNamedWithTheNearestKnownOne) {
  EXPECT_EQ(error_of("ad.s32 %r1, 1, 2;"),
            "k.ptx:13: error: unknown instruction 'ad.s32'\nthe nearest known one is 'add.s32'");
  EXPECT_EQ(error_of("fma.rn.f33 %f1, %f1, %f1, %f1;"),
            "k.ptx:13: error: unknown instruction 'fma.rn.f33'\nthe nearest known one is 'fma.rn.f32'");
  for (const auto& [wrong, right] : {std::pair{"atom.shared.addd.u32", "atom.shared.add.u32"},
                                     {"atom.global.exch.f32", "atom.global.exch.b32"},
                                     {"red.shared.xor.u64", "red.shared.xor.b64"},
                                     {"atom.cass.b32", "atom.cas.b32"}})
    EXPECT_EQ(
        error_of(std::string(wrong) + " %r1, [%rd1], %r2;"),
        std::string("k.ptx:13: error: unknown instruction '") + wrong + "'\nthe nearest known one is '" + right + "'");
  EXPECT_NE(error_of("ld.global.sideways.u32 %r1, [%rd1];"), "");
  EXPECT_NE(error_of("add.rn.s32 %r1, 1, 2;"), "");
  EXPECT_NE(error_of("mma.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%f1},{%r1},{%r1},{%f1};"), "");
  EXPECT_NE(error_of("wgmma.fence.sync.aligned;"), "");
  EXPECT_NE(error_of("prefetch.global.L7 [%rd1];"), "");
  EXPECT_EQ(error_of("prefetch.global.L2 [%rd1];"), "");
  EXPECT_NE(error_of("pack.b32.b16 %r1, %rs1, %rs2;"), "");
  // A modifier that is left out says nothing of a misspelled word.
  EXPECT_TRUE(
      error_of("fmma.ftz.f32 %f1, %f1, %f1, %f1;").starts_with("k.ptx:13: error: unknown instruction 'fmma.ftz.f32'"));
  EXPECT_NE(error_of("atom.global.add.v2.f32;"), "");
}

TEST(Parse, OperandsMustFit) {
  EXPECT_EQ(error_of("add.s32 %r1, %rd1, 2;"),
            "k.ptx:13: error: '%rd1' is a 64-bit register where 'add.s32' needs a 32-bit one");
  EXPECT_EQ(error_of("cvt.s64.s32 %rd2, %rd1;"), "");  // the low half, as in conversions
  EXPECT_EQ(error_of("add.s32 %r1, 1;"), "k.ptx:13: error: 'add.s32' takes 3 operands, found 2");
  EXPECT_EQ(error_of("add.s32 %r64, 1, 2;"), "k.ptx:13: error: '%r64' is not declared");
  EXPECT_EQ(error_of("add.f32 %f1, %f2, 1;"), "k.ptx:13: error: 'add.f32' needs a floating-point constant");
  EXPECT_EQ(error_of("mov.u32 %r1, %tid.w;"), "k.ptx:13: error: unknown special register '%tid.w'");
  EXPECT_EQ(error_of("bra NOWHERE;"), "k.ptx:13: error: unknown label 'NOWHERE'");
  EXPECT_EQ(error_of("mov.u32 %tid.x, 1;"), "k.ptx:13: error: '%tid.x' cannot take the 32-bit result of 'mov.u32'");
  EXPECT_EQ(error_of("@%r1 mov.u32 %r2, 1;"), "k.ptx:13: error: '%r1' is not a predicate");
  EXPECT_EQ(error_of("ld.param.u32 %r1, [nothing];"), "k.ptx:13: error: 'nothing' is not declared");
  EXPECT_EQ(error_of("L: L: bra L;"), "k.ptx:13: error: label 'L' is defined twice in one block");
  EXPECT_EQ(error_of("cp.async.cg.shared.global [%r1], [%rd1], 8;"),
            "k.ptx:13: error: cp.async.cg cannot copy 8 bytes");
  EXPECT_EQ(error_of("ld.shared.v4.u64 {%rd1,%rd2,%rd3,%rd4}, [%rd1];").substr(0, 28), "k.ptx:13: error: unknown ins");
}

TEST(Parse, SyntaxErrorsHaveTheirLine) {
  EXPECT_EQ(error_of("add.s32 %r1, 1, 2"), "k.ptx:14: error: expected ';', found 'ret'");
  EXPECT_EQ(error_of("mov.u32 %r1, 99999999999999999999999;"),
            "k.ptx:13: error: malformed token '99999999999999999999999'");
  EXPECT_EQ(error_of("\n\nmov.u32 %r1, \"x"), "k.ptx:15: error: malformed token '\"x\nret;\n}\n'");
  EXPECT_EQ(error_of(".sreg .b32 x;"), "k.ptx:13: error: unsupported directive '.sreg'");
  Bench bench;
  EXPECT_EQ(bench.load(kernel_text(0, ""), "other"), "other.ptx: error: the PTX has no kernel 'other'");
  EXPECT_EQ(bench.load(""), "k.ptx: error: the PTX has no kernel 'k'");
}

TEST(Parse, LimitsHold) {
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{";
  EXPECT_NE(error_of(deep).find("nested deeper than 64"), std::string::npos);
  EXPECT_NE(error_of(".reg .b32 %x<99999999999>;").find("over the limit"), std::string::npos);
  EXPECT_NE(error_of("mov.u32 %r1, big;", ".shared .align 16 .b8 big[50000000];\n").find("too large"),
            std::string::npos);
  EXPECT_NE(error_of("", ".global .b8 x[99999999999999];\n").find("limit"), std::string::npos);
  EXPECT_NE(error_of(".local .b8 x[900000];").find("512 KiB"), std::string::npos);
  std::string wide = "mov.b32 {";
  for (int i = 0; i < 1000; ++i) wide += "%rs1,";
  EXPECT_NE(error_of(wide + "%rs1}, %r1;").find("256"), std::string::npos);
}

TEST(Parse, LaunchesAreCheckedAgainstTheKernel) {
  Bench bench;
  Binary binary;
  binary.entry = "k";
  binary.ptx =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p0)\n.maxntid 64, 1, "
      "1\n{ ret; }\n";
  auto module = bench.executor().load(binary);
  ASSERT_TRUE(module) << to_string(module.error());
  Launch launch;
  launch.block = {128, 1, 1};
  launch.args.push_back({"x", false, 0, 8});
  auto message = [&] {
    auto r = bench.executor().run(*module, launch, {});
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(message(), "k: 128 threads are over the kernel's declared maximum of 64");
  launch.block = {64, 1, 1};
  EXPECT_EQ(message(), "");
  launch.args[0].bytes = 4;
  EXPECT_EQ(message(), "k: argument 'x' has 4 bytes, the parameter 8");
  launch.args.clear();
  EXPECT_EQ(message(), "k: 0 arguments given, the kernel takes 1");
  launch.grid = {1, 70000, 1};
  EXPECT_EQ(message(), "k: a grid of 1 x 70000 x 1 CTAs cannot be launched");
  launch.grid = {1, 1, 1};
  launch.smem_bytes = 300000;
  EXPECT_EQ(message(), "k: 300000 bytes of shared memory are over the limit of 232448");
  binary.ptx =
      ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n"
      "{ .reg .u32 r; .shared .b8 big[49156]; mov.u32 r, big; ret; }\n";
  module = bench.executor().load(binary);
  ASSERT_TRUE(module) << to_string(module.error());
  launch.smem_bytes = 0;
  EXPECT_EQ(message(), "k: 49156 bytes of static shared memory are over the limit of 49152");
}

TEST(Parse, TruncatedTextIsAlwaysAnError) {
  std::string text = fixture("flash.ptx");
  text.resize(text.find(".file"));
  for (size_t n = 0; n < text.size(); n += 46) fuzz_one(std::string_view(text).substr(0, n));
}

TEST(Parse, DirectivesMayStandTogether) {
  EXPECT_EQ(Bench().load(kernel_text(1, "{.reg.b32 a,b;\n.reg.pred q;\nmov.u32 a, 1;\nadd.u32 b, a, a;\n}")),
            "");  // as in cuda_fp16.hpp
}

TEST(Parse, TheCorpusIsAccepted) {
  for (const std::string& seed : fuzz_corpus()) EXPECT_EQ(Bench().load(seed), "");
}

TEST(Parse, VariablesMayHoldAddresses) {
  const std::string body =
      "ld.param.u64 %rd1, [p0];\nld.global.u64 %rd2, [p];\nld.u32 %r1, [%rd2];\nld.global.u64 %rd3, [list+8];\nld.u32 "
      "%r2, [%rd3];\nst.global.v2.u32 [%rd1], {%r1, %r2};";
  const auto with = [&](const std::string& variables) { return kernel_text(1, body, variables); };
  Bench b;
  ASSERT_EQ(b.load(with(".global .align 4 .u32 x[2] = {7, 9};\n.global .align 8 .u64 p = generic(x);\n.const .align 8 "
                        ".u64 list[2] = {0, generic(x)+4};\n")),
            "");
  const DevicePtr out = b.poisoned(8);
  EXPECT_TRUE(b.arg(out).run({1, 1, 1}, {1, 1, 1}).findings.empty());
  EXPECT_EQ(b.read<uint32_t>(out, 2), (std::vector<uint32_t>{7, 9}));
  const auto says = [&](const std::string& variables, const char* part) {
    const std::string error = Bench().load(with(variables));
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  says(".global .align 8 .u64 p = generic(list);\n.global .align 8 .u64 list[2] = {0, generic(p)};\n",
       "circular initial value of 'p'");
  EXPECT_EQ(Bench().load(with(".func f()\n{\nret;\n}\n.global .align 8 .u64 p = f;\n.global .u64 list[2];\n")), "");
  says(".global .align 8 .u64 p = nowhere;\n.global .u64 list[2];\n", "'p' holds the address of 'nowhere'");
  says(".global .align 4 .u32 p = p;\n.global .u64 list[2];\n", "the address of 'p' needs 64 bits");
}

/// Fixed-seed mutations of the corpus: token swaps, deletions, byte flips, numbers made extreme.
TEST(Parse, MutatedKernelsNeverCrash) {
  uint64_t state = 12345;
  auto random = [&](uint64_t n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (state >> 33) % n;
  };
  const char* extremes[] = {"0",          "-1",         "4294967295", "18446744073709551615",
                            "0x7fffffff", "1073741824", "{",          "}",
                            "%r1",        "_",          "[%rd1]",     "0f7FC00000"};
  for (const std::string& seed : fuzz_corpus()) {
    for (int i = 0; i < 400; ++i) {
      std::string text = seed;
      for (uint64_t edits = 1 + random(4); edits-- && !text.empty();) {
        size_t at = random(text.size());
        switch (random(5)) {
          case 0: text[at] = static_cast<char>(random(256)); break;
          case 1: text.erase(at, random(20)); break;
          case 2: text.insert(at, extremes[random(12)]); break;
          case 3: text.insert(at, text.substr(random(text.size()), random(60))); break;
          default: {
            size_t digit = text.find_first_of("0123456789", at);
            if (digit != std::string::npos) text.replace(digit, 1, extremes[random(6)]);
          }
        }
      }
      fuzz_one(text);
    }
  }
}

}  // namespace
}  // namespace roofgen::sim_test::parse_test

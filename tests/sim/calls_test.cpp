// Inlined function calls, printf and assert: PTX in NVRTC's form, or hand-written where NVRTC would not emit it.
#include <gtest/gtest.h>

#include "support.h"

namespace roofgen::sim_test::calls_test {
namespace {

const std::string kAddOne = R"(
.func (.param .b32 result) add_one(.param .b32 a)
{
.reg .b32 %r<8>;
.reg .pred %p<2>;
ld.param.u32 %r1, [a];
setp.gt.s32 %p1, %r1, 100;
@%p1 st.param.b32 [result], %r1;
@%p1 ret;
add.s32 %r2, %r1, 1;
st.param.b32 [result+0], %r2;
ret;
}
)";

/// y[tid] = the value of %r9 after `call`; %r1 is the thread.
std::string with_call(const std::string& call, const std::string& head = kAddOne) {
  return kernel_text(
      1,
      "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n" + call +
          "\nst.global.u32 [%rd3], %r9;",
      head);
}
const std::string kCallWithR2 =
    "{\n.param .b32 param0;\nst.param.b32 [param0+0], %r2;\n.param .b32 retval0;\ncall.uni (retval0), add_one, "
    "(param0);\nld.param.b32 %r9, [retval0+0];\n}\n";

std::vector<uint32_t> run32(const std::string& ptx) {
  Bench b;
  const std::string error = b.load(ptx);
  EXPECT_EQ(error, "");
  if (!error.empty()) return {};
  const DevicePtr y = b.poisoned(128);
  const RunResult r = b.arg(y).run({1, 1, 1}, {32, 1, 1});
  for (const Finding& f : r.findings) ADD_FAILURE() << f.kind << " " << f.message;
  return b.read<uint32_t>(y, 32);
}

TEST(Calls, ReturnFromTheMiddleOfADivergedFunction) {
  const auto y = run32(with_call("mul.lo.u32 %r2, %r1, 10;\n" + kCallWithR2));
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], i > 10 ? 10 * i : 10 * i + 1);
}

TEST(Calls, OfSomeLanesOnly) {
  const std::string guarded =
      "mov.u32 %r2, %r1;\nmov.u32 %r9, 77;\nsetp.lt.u32 %p1, %r1, 5;\n{\n.param .b32 param0;\nst.param.b32 [param0], "
      "%r2;\n.param .b32 retval0;\n"
      "@%p1 call (retval0), add_one, (param0);\n@%p1 ld.param.b32 %r9, [retval0];\n}\n";
  const auto y = run32(with_call(guarded));
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], i < 5 ? i + 1 : 77);
}

TEST(Calls, InALoopAndTwice) {
  const std::string loop = "mov.u32 %r2, %r1;\nmov.u32 %r5, 0;\nL:\n" + kCallWithR2 + "mov.u32 %r2, %r9;\n" +
                           kCallWithR2 +
                           "mov.u32 %r2, %r9;\nadd.s32 %r5, %r5, 1;\nsetp.le.u32 %p1, %r5, %r1;\n@%p1 bra L;\n";
  const auto y = run32(with_call(loop));
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], i + 2 * (i + 1));
}

TEST(Calls, AFunctionCallsAnother) {
  const std::string two =
      kAddOne + ".func (.param .b32 result) add_two(.param .b32 a)\n{\n.reg .b32 %r<10>;\nld.param.u32 %r2, [a];\n" +
      kCallWithR2 + "mov.u32 %r2, %r9;\n" + kCallWithR2 + "st.param.b32 [result], %r9;\nret;\n}\n";
  std::string call = kCallWithR2;
  call.replace(call.find("add_one"), 7, "add_two");
  const auto y = run32(with_call("mov.u32 %r2, %r1;\n" + call, two));
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(y[i], i + 2);
}

std::string error_of(const std::string& ptx) { return Bench().load(ptx); }

TEST(Calls, UnsupportedCallsAreRefused) {
  const auto says = [](const std::string& ptx, const char* part) {
    const std::string error = error_of(ptx);
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(error.compare(0, 6, "k.ptx:"), 0) << error;  // includes the line
  };
  const std::string itself = ".func f()\n{\ncall.uni f;\nret;\n}\n";
  says(with_call("call.uni f;", itself), "'f' calls itself; recursion is not supported");
  const std::string other = ".func g();\n.func f()\n{\ncall.uni g;\nret;\n}\n.func g()\n{\ncall.uni f;\nret;\n}\n";
  says(with_call("call.uni f;", other), "'f' calls itself; recursion is not supported");
  says(with_call("call.uni nowhere;"), "function 'nowhere' has no body here");
  says(with_call("call.uni add_one;"), "'add_one' has 1 results, the call 0");
  says(with_call("mov.u32 %r2, %r1;\ncall.uni (%r9), add_one, (%r2);"),
       "arguments and results of a call must be .param variables");
  std::string chain;  // each calls the next one twice
  for (int i = 0; i < 40; ++i)
    chain += ".func f" + std::to_string(i) + "()\n{\n" +
             (i ? "call.uni f" + std::to_string(i - 1) + ";\ncall.uni f" + std::to_string(i - 1) + ";\n" : "") +
             "ret;\n}\n";
  says(with_call("call.uni f39;", chain), "more than 100000 calls");
  std::string deep;
  for (int i = 0; i < 100; ++i)
    deep += ".func f" + std::to_string(i) + "()\n{\n" + (i ? "call.uni f" + std::to_string(i - 1) + ";\n" : "") +
            "ret;\n}\n";
  says(with_call("call.uni f99;", deep), "calls are nested deeper than 64");
}

// ---- printf and assert ---------------------------------------------------------------------------------

std::string bytes_of(const std::string& text) {
  std::string out;
  for (const char c : text) out += std::to_string(static_cast<int>(static_cast<unsigned char>(c))) + ", ";
  return "[" + std::to_string(text.size() + 1) + "] = {" + out + "0}";
}

/// One warp prints `format`; `stores` writes the values to [%rd5], 64 bytes of local memory. %r1 is the lane.
std::string printed(const std::string& format, const std::string& stores, uint32_t* count = nullptr) {
  const std::string head =
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .align 1 .b8 text" +
      bytes_of(format) + ";\n.global .align 1 .b8 word" + bytes_of("warp") + ";\n";
  const std::string body =
      ".local .align 8 .b8 values[64];\nmov.u64 %rd4, values;\ncvta.local.u64 %rd5, %rd4;\n" + stores +
      "mov.u64 %rd6, text;\ncvta.global.u64 %rd7, %rd6;\n{\n.param .b64 param0;\nst.param.b64 [param0], %rd7;\n.param "
      ".b64 param1;\nst.param.b64 [param1], %rd5;\n"
      ".param .b32 retval0;\ncall.uni (retval0), vprintf, (param0, param1);\nld.param.b32 %r9, [retval0];\n}\n";
  Bench b;
  const std::string error = b.load(with_call(body, head));
  EXPECT_EQ(error, "");
  if (!error.empty()) return "";
  const DevicePtr y = b.poisoned(128);
  std::string out;
  RunOptions options;
  options.printed = &out;
  const RunResult r = b.arg(y).run({1, 1, 1}, {2, 1, 1}, 0, options);
  for (const Finding& f : r.findings) ADD_FAILURE() << f.kind << " " << f.message;
  if (count) *count = b.read<uint32_t>(y, 1)[0];
  return out;
}

TEST(Printf, LanesInOrder) {
  uint32_t count = 0;
  EXPECT_EQ(printed("%d\n", "st.u32 [%rd5], %r1;\n", &count), "0\n1\n");
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(printed("hi\n", "", &count), "hi\nhi\n");
  EXPECT_EQ(count, 0u);
}

TEST(Printf, Conversions) {
  const std::string one = "setp.ne.s32 %p1, %r1, 0;\n@%p1 exit;\n";
  EXPECT_EQ(printed("100%% %5d|%-5d|%05d|%+d %u %x %#X %o %c",
                    one + "st.v4.u32 [%rd5], {7, 8, -9, 10};\nst.v4.u32 [%rd5+16], {0xffffffff, 255, 255, 8};\nst.u32 "
                          "[%rd5+32], 65;\n"),
            "100%     7|8    |-0009|+10 4294967295 ff 0XFF 10 A");
  EXPECT_EQ(
      printed("%lld %llx %zu %hd",
              one + "st.v2.u64 [%rd5], {-5000000000, 0xffffffffffff};\nst.u64 [%rd5+16], 12;\nst.u32 [%rd5+24], 3;\n"),
      "-5000000000 ffffffffffff 12 3");
  EXPECT_EQ(printed("%d %f %.2e %g", one + "st.u32 [%rd5], 1;\nst.f64 [%rd5+8], 0d3FF8000000000000;\nst.f64 [%rd5+16], "
                                           "0d40C81C8000000000;\nst.f64 [%rd5+24], 0d7FF0000000000000;\n"),
            "1 1.500000 1.23e+04 inf");
  EXPECT_EQ(printed("%s-%6s|%.2s|%*d|%-*d|",
                    one + "mov.u64 %rd8, word;\nst.v2.u64 [%rd5], {%rd8, %rd8};\nst.u64 [%rd5+16], %rd8;\nst.v4.u32 "
                          "[%rd5+32], {3, 4, 2, 5};\nst.v2.u32 [%rd5+24], {4, 5};\n"),
            "warp-  warp|wa|   5|4  |");
  EXPECT_EQ(printed("%p", one + "st.u64 [%rd5], 4096;\n"), "0x1000");
  EXPECT_EQ(printed("%n %y %", one), "%n %y %");
}

TEST(Printf, AnInvalidArgumentPointerIsAFinding) {
  const std::string head =
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .align 1 .b8 text" +
      bytes_of("%d") + ";\n";
  const std::string body =
      "mov.u64 %rd7, text;\nmov.u64 %rd5, 0;\nmov.u32 %r9, 0;\n{\n.param .b64 param0;\nst.param.b64 [param0], "
      "%rd7;\n.param .b64 param1;\nst.param.b64 [param1], %rd5;\n"
      ".param .b32 retval0;\ncall.uni (retval0), vprintf, (param0, param1);\n}\n";
  Bench b;
  ASSERT_EQ(b.load(with_call(body, head)), "");
  EXPECT_EQ(b.arg(b.poisoned(128)).kind({1, 1, 1}, {1, 1, 1}), "out-of-bounds");
}

TEST(Printf, IsCut) {
  const std::string head =
      ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global .align 1 .b8 text" +
      bytes_of(std::string(1000, 'x')) + ";\n";
  const std::string body =
      "mov.u64 %rd7, text;\nmov.u64 %rd5, 0;\nmov.u32 %r9, 0;\nL:\n{\n.param .b64 param0;\nst.param.b64 [param0], "
      "%rd7;\n.param .b64 param1;\nst.param.b64 [param1], %rd5;\n"
      ".param .b32 retval0;\ncall.uni (retval0), vprintf, (param0, param1);\n}\nadd.s32 %r9, %r9, 1;\nsetp.lt.s32 %p1, "
      "%r9, 50;\n@%p1 bra L;\n";
  Bench b;
  ASSERT_EQ(b.load(with_call(body, head)), "");
  std::string out;
  RunOptions options;
  options.printed = &out;
  b.arg(b.poisoned(128)).run({1, 1, 1}, {32, 1, 1}, 0, options);
  EXPECT_EQ(out.size(), kMaxPrintedBytes);
}

TEST(Assert, ReportsTheConditionAndItsPosition) {
  const std::string head =
      ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n.global "
      ".align 1 .b8 text" +
      bytes_of("i < 3") + ";\n.global .align 1 .b8 file" + bytes_of("k.cu") + ";\n.global .align 1 .b8 name" +
      bytes_of("f") + ";\n";
  const std::string body =
      "mov.u32 %r9, 0;\nsetp.lt.u32 %p1, %r1, 3;\n@%p1 bra OK;\n{\n.param .b64 param0;\nmov.u64 %rd4, "
      "text;\nst.param.b64 [param0], %rd4;\n.param .b64 param1;\nmov.u64 %rd5, file;\n"
      "st.param.b64 [param1], %rd5;\n.param .b32 param2;\nst.param.b32 [param2], 12;\n.param .b64 "
      "param3;\nst.param.b64 [param3], %rd4;\n.param .b64 param4;\nst.param.b64 [param4], 1;\n"
      "call.uni __assertfail, (param0, param1, param2, param3, param4);\n}\nOK:\n";
  Bench b;
  ASSERT_EQ(b.load(with_call(body, head)), "");
  const RunResult r = b.arg(b.poisoned(128)).run({1, 1, 1}, {32, 1, 1});
  ASSERT_EQ(r.findings.size(), 1u);
  EXPECT_EQ(r.findings[0].kind, "assert");
  EXPECT_EQ(r.findings[0].message, "assertion 'i < 3' failed at k.cu:12");
  EXPECT_EQ(r.findings[0].thread, 3u);
}

}  // namespace
}  // namespace roofgen::sim_test::calls_test

// The file of times: what it says, and one-line errors for bad input.
#include "profile/times.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace roofgen::profile::times_test {
namespace {

Result<std::string> read(const std::string& path) {
  static const std::map<std::string, std::string> kFiles{{"in/k.cu", "__global__ void k() {}"},
                                                         {"in/args.json", R"([{"type": "i32", "value": 7}])"},
                                                         {"in/bad.json", R"([{"type": "i33", "value": 7}])"}};
  const auto at = kFiles.find(path);
  if (at == kFiles.end()) return Error{Exit::kUsage, "cannot be read: No such file or directory", {path}};
  return at->second;
}

Result<Times> parse(const std::string& text) { return parse_times(text, "in/times.json", read); }

/// A file with one kernel, whose members are `members`.
std::string file_of(const std::string& members) {
  return "{\"schema\": \"roofgen.times.1\", \"measured\": \"by a test\", \"kernels\": [\n{" + members + "}]}";
}

const std::string kWhole = R"("family": "a", "file": "k.cu", "grid": [4], "block": [32, 2], "time_us": 12.5)";

TEST(Times, AreRead) {
  const auto times = parse(R"({"schema": "roofgen.times.1", "measured": "events on one GPU", "sm_mhz": 1400,
    "kernels": [{"family": "a", "file": "k.cu", "kernel": "k", "grid": [4, 5, 6], "block": [32], "smem_bytes": 1024,
                 "args": "args.json", "defines": ["A=1", "B"], "include_dirs": ["x"], "time_us": 12.5},
                {"family": "b", "file": "k.cu", "grid": [1], "block": [64], "time_us": 3, "sm_mhz": 1005}]})");
  ASSERT_TRUE(times) << to_string(times.error());
  EXPECT_EQ(times->measured, "events on one GPU");
  ASSERT_EQ(times->kernels.size(), 2u);
  const TimedKernel& first = times->kernels[0];
  EXPECT_EQ(first.family, "a");
  EXPECT_DOUBLE_EQ(first.time_s, 12.5e-6);
  EXPECT_EQ(first.sm_mhz, 1400);
  EXPECT_EQ(first.where.line, 2);
  EXPECT_EQ(first.kernel.file, "in/k.cu");
  EXPECT_EQ(first.kernel.text, "__global__ void k() {}");
  EXPECT_EQ(first.kernel.kernel, "k");
  EXPECT_EQ(first.kernel.grid.count(), 120u);
  EXPECT_EQ(first.kernel.block.count(), 32u);
  EXPECT_EQ(first.kernel.smem_bytes, 1024u);
  EXPECT_EQ(first.kernel.args.size(), 1u);
  EXPECT_EQ(first.kernel.compiler_flags, (std::vector<std::string>{"--define-macro=A=1", "--define-macro=B"}));
  EXPECT_EQ(first.kernel.include_dirs, (std::vector<std::string>{"in", "in/x"}));
  EXPECT_EQ(times->kernels[1].sm_mhz, 1005);
}

TEST(Times, BadInputIsOneLineWithThePlace) {
  const std::string grid = "\"grid\" is a list of one to three numbers from 1 to 2147483647, 65535 and 65535";
  const std::string block =
      "\"block\" is a list of one to three numbers from 1 to 1024, 1024 and 64, with a product up to 1024";
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kWhole;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return file_of(text.replace(at, from.size(), to));
  };
  const auto more = [](const std::string& member) { return file_of(kWhole + ", " + member); };
  const struct {
    std::string text, message;
  } bad[] = {
      {"[]", "in/times.json:1:1: error: an object was expected"},
      {"{\"schema\": 1}", "in/times.json:1:3: error: \"schema\" must be a string"},
      {R"({"schema": "roofgen.times.2"})",
       "in/times.json:1:3: error: schema \"roofgen.times.2\"; \"roofgen.times.1\" was expected"},
      {R"({"schema": "roofgen.times.1", "mesured": ""})",
       "in/times.json:1:32: error: unknown key \"mesured\"; did you mean \"measured\"?"},
      {R"({"schema": "roofgen.times.1"})", "in/times.json:1:1: error: \"measured\" is missing"},
      {R"({"schema": "roofgen.times.1", "measured": "", "kernels": []})",
       "in/times.json:1:48: error: \"kernels\" is a list of one kernel or more"},
      {R"({"schema": "roofgen.times.1", "measured": "", "sm_mhz": 0, "kernels": []})",
       "in/times.json:1:48: error: \"sm_mhz\" is a clock in MHz above 0, up to 10000"},
      {with("\"family\": \"a\"", "\"familly\": \"a\""),
       "in/times.json:2:3: error: kernel 1: unknown key \"familly\"; did you mean \"family\"?"},
      {with("\"family\": \"a\", ", ""), "in/times.json:2:1: error: kernel 1: \"family\" is missing"},
      {with("\"a\"", "\"\""), "in/times.json:2:3: error: kernel 1: \"family\" is a name of 1 to 100 bytes"},
      {with("12.5", "0"),
       "in/times.json:2:65: error: kernel 1: \"time_us\" is a time in microseconds above 0, up to 1e+09"},
      {with(", \"time_us\": 12.5", ""),
       "in/times.json:2:1: error: kernel 1: \"time_us\" is a time in microseconds above 0, up to 1e+09"},
      {with("[4]", "4"), "in/times.json:2:34: error: kernel 1: " + grid},
      {with("[4]", "[4, 65536]"), "in/times.json:2:34: error: kernel 1: " + grid},
      {with("[32, 2]", "[32, 2.5]"), "in/times.json:2:47: error: kernel 1: " + block},
      {with("[32, 2]", "[1024, 2]"), "in/times.json:2:47: error: kernel 1: " + block},
      {with("[32, 2]", "[]"), "in/times.json:2:47: error: kernel 1: " + block},
      {with("k.cu", "n.cu"), "in/times.json:2:18: error: kernel 1: in/n.cu: cannot be read: No such file or directory"},
      {with("k.cu", "k.ptx"),
       "in/times.json:2:18: error: kernel 1: \"file\" is PTX; CUDA C++ was expected: the machine code decides"},
      {more("\"smem_bytes\": -1"),
       "in/times.json:2:82: error: kernel 1: \"smem_bytes\" is a number of bytes up to 232448"},
      {more("\"defines\": [1]"), "in/times.json:2:82: error: kernel 1: \"defines\" is a list of strings"},
      {more("\"args\": \"bad.json\""),
       "in/bad.json:1:11: error: kernel 1: argument 1: unknown type \"i33\"; did you mean \"i32\"?"},
      {more("\"sm_mhz\": true"),
       "in/times.json:2:82: error: kernel 1: \"sm_mhz\" is a clock in MHz above 0, up to 10000"},
  };
  for (const auto& [text, message] : bad) {
    const auto times = parse(text);
    ASSERT_FALSE(times) << text;
    EXPECT_EQ(to_string(times.error()), message) << text;
    EXPECT_EQ(times.error().exit, Exit::kUsage);
  }
  EXPECT_TRUE(parse(file_of(kWhole)));
}

TEST(Times, OfAtMostAThousandKernels) {
  std::string kernels = "{" + kWhole + "}";
  std::string text = "{\"schema\": \"roofgen.times.1\", \"measured\": \"\", \"kernels\": [" + kernels;
  for (size_t i = 1; i < kMaxTimedKernels; ++i) text += ", " + kernels;
  EXPECT_TRUE(parse(text + "]}"));
  const auto times = parse(text + ", " + kernels + "]}");
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().message, "1001 kernels are too many; at most 1000 were expected");
}

// Errors, but no crash, on edited files.
TEST(Times, FuzzSmoke) {
  const std::string whole =
      file_of(kWhole + R"(, "args": "args.json", "defines": ["A=1"], "smem_bytes": 16, "sm_mhz": 9)");
  static const std::string kTokens[] = {"{", "}", "[", "]", ",", ":", "\"", "-1", "1e999", "null", "\\u0000", "\xFF"};
  std::mt19937_64 bits(7);
  int good = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = whole;
    for (uint64_t edits = 1 + bits() % 3; edits > 0; --edits) {
      const size_t at = bits() % text.size();
      switch (bits() % 3) {
        case 0: text[at] = static_cast<char>(bits()); break;
        case 1: text.insert(at, kTokens[bits() % std::size(kTokens)]); break;
        default: text.erase(at, bits() % 20);
      }
    }
    const auto times = parse(text);
    good += static_cast<bool>(times);
    if (!times) {
      EXPECT_EQ(times.error().exit, Exit::kUsage) << text;
      EXPECT_NE(times.error().message, "") << text;
    }
  }
  EXPECT_GT(good, 0);
}

}  // namespace
}  // namespace roofgen::profile::times_test

// Files with host code and user headers: the checked program is the one that a C++ compiler would build.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "check/check.h"
#include "runtime/compiler.h"

namespace roofgen::check::host_code_test {
namespace {

namespace fs = std::filesystem;

const std::string kHostCode = "#include <iostream>\ninline int host_only() { std::cout << 1; return 2; }\n";

class HostCode : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
    directory_ = fs::temp_directory_path() / ("roofgen_host_code_" + std::to_string(getpid())) / "targets" / "own";
    fs::create_directories(directory_);
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_.parent_path().parent_path());
  }
  void add(const std::map<std::string, std::string>& headers) {
    for (const auto& [name, text] : headers) std::ofstream(directory_ / name) << text;
  }
  Result<Report> check(const std::string& text, const std::string& args = "[]", const std::string& kernel = "") {
    Request r;
    r.file = file_.empty() ? (directory_ / "user.cu").string() : file_;
    r.text = text;
    r.kernel = kernel;
    r.include_dirs = {directory_.string()};
    r.cache_dir = cache_;
    auto parsed = parse_arguments(args, "args.json", ".");
    EXPECT_TRUE(parsed) << to_string(parsed.error());
    r.args = *parsed;
    return run(r);
  }
  /// Expects o[0] == value after running kernel k(int* o).
  void expect(int value, const std::string& text) {
    const auto report =
        check(text, R"([{"name": "o", "type": "i32", "size": 1, "expect": )" + std::to_string(value) + "}]");
    ASSERT_TRUE(report) << to_string(report.error());
    EXPECT_NE(report->verdict(), Verdict::kFindings) << check_text(*report, 0);
    EXPECT_FALSE(report->left_out.empty());
  }
  fs::path directory_;
  std::string file_;  ///< empty: one in the directory
  std::string cache_;
};

const std::string kScale = "#ifndef SCALE\n#define SCALE 1\n#endif\n__global__ void k(int* o) { *o = SCALE; }\n";

TEST_F(HostCode, OfHeadersTheCopyThatCountsIsTheCompilersToTell) {
  add({{"once.h", "#pragma once\n" + kHostCode + "#define SCALE 4\n"},
       {"guard.h", "// a comment\n#ifndef G\n#define G\n" + kHostCode + "#define SCALE 4\n#endif\n"},
       {"both.h", "#pragma once\n#ifndef B\n#define B\n#include \"once.h\"\n#endif\n"},
       {"each.h", "#ifdef N\n#undef N\n#define N 2\n#else\n#define N 1\n#endif\n"},
       {"host.h", kHostCode}});
  for (const std::string name : {"once.h", "guard.h", "both.h"}) {
    const std::string include = "#include \"" + name + "\"\n";
    expect(4, "#ifdef NOPE\n" + include + "#endif\n" + include + kScale);
    expect(4, include + "#ifdef NOPE\n" + include + "#else\n" + include + "#endif\n" + include + kScale);
    expect(1, include + "#undef SCALE\n" + include + kScale);  // the second is empty
  }
  expect(1, "#include \"host.h\"\n#ifdef NOPE\n#include \"once.h\"\n#endif\n" + kScale);
  expect(2, "#include \"host.h\"\n#include \"each.h\"\n#include \"each.h\"\n__global__ void k(int* o) { *o = N; }\n");
  // Another header has defined the guard macro, so the header's text and its includes are skipped.
  add({{"outer.h", "#ifndef OTHER\n#define OTHER\n#include \"once.h\"\n#endif\n"}});
  expect(4, "#define OTHER\n#include \"host.h\"\n#include \"outer.h\"\n#include \"once.h\"\n" + kScale);
}

TEST_F(HostCode, OnlyPragmaOnceIsThat) {
  add({{"packed.h", kHostCode + "#pragma pack(push, 1)  // once\nstruct S { int i; char c; };\n#pragma pack(pop)  // "
                                "once\n#  pragma  once // so\n"}});
  expect(5, "#include \"packed.h\"\n#include \"packed.h\"\n__global__ void k(int* o) { *o = sizeof(S); }\n");
}

TEST_F(HostCode, IsLeftOutOfAllCopiesOfAHeader) {
  const auto guarded = [](const std::string& name, const std::string& text) {
    return "#ifndef " + name + "\n#define " + name + "\n" + text + "#endif\n";
  };
  add({{"host.h", guarded("H", kHostCode)},
       {"x.h", guarded("X", "#include \"y.h\"\n#include \"z.h\"\n")},
       {"y.h", guarded("Y", "#include \"x.h\"\n#include \"z.h\"\n")},
       {"z.h", guarded("Z",
                       "#include \"x.h\"\n#include \"y.h\"\n__host__ inline int g() { return 1; }\n#include "
                       "<iostream>\n#define SCALE 7\n")}});
  expect(1, "#ifdef NOPE\n#include \"host.h\"\n#endif\n#include \"host.h\"\n" + kScale);
  expect(7, "#include \"x.h\"\n" + kScale);
  const auto report = check("#ifdef NOPE\n#include \"z.h\"\n#endif\n#include \"x.h\"\n__global__ void k() {}\n");
  ASSERT_TRUE(report) << to_string(report.error());
  ASSERT_EQ(report->left_out.size(), 2u);  // each is reported once
  for (const LeftOut& l : report->left_out) EXPECT_EQ(l.where.file, (directory_ / "z.h").string());
}

TEST_F(HostCode, AByteOrderMarkIsNoPartOfAFile) {
  const std::string mark = "\xEF\xBB\xBF";
  add({{"marked.h", mark + "#define SCALE 3\n" + kHostCode}});
  expect(3, mark + "#include \"marked.h\"\n" + kScale);
}

TEST_F(HostCode, PlacesAreOfTheFileAsItIs) {
  expect(3, "#line 100 \"other.cu\"\n#define SCALE 3\n# 7 \"another.cu\" 2\n" + kHostCode + kScale);
}

// A quote in a name would end the string of PTX that holds it.
TEST(HostCodeText, NamesOfFilesFitIntoPtx) {
  const std::string text = check::Source("a\"b\\c\nd.cu", "int x;\n", {}).text();
  EXPECT_NE(text.find("#line 1 \"a'b\\\\c?d.cu\"\n"), std::string::npos) << text;
}

TEST_F(HostCode, ManyHeadersThatIncludeEachOther) {
  std::string all;
  for (int i = 0; i < 12; ++i) all += "#include \"h" + std::to_string(i) + ".h\"\n";
  for (int i = 0; i < 12; ++i)
    add({{"h" + std::to_string(i) + ".h",
          (i % 2 ? "#pragma once\n" + all
                 : "#ifndef G" + std::to_string(i) + "\n#define G" + std::to_string(i) + "\n" + all) +
              (i ? "" : kHostCode) + (i % 2 ? "" : "#endif\n")}});
  expect(1, all + kScale);
}

TEST_F(HostCode, CommentsAroundAnIncludeStay) {
  add({{"host.h", "#pragma once\n" + kHostCode}, {"d.h", "#define SCALE 3\n"}});
  expect(3, "#include \"host.h\"\n/* here\n */ #include \"d.h\" /* a comment\n   that { goes on */\n" + kScale);
  // The next line keeps its number.
  const auto report = check("#include \"host.h\"\n#include \"d.h\" /* a\n*/\n__global__ void k() {\n  int a = b;\n}\n");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().where.line, 5);
}

TEST_F(HostCode, LinesBehindACopyThatIsNotTakenAreRight) {
  add({{"host.h", "#pragma once\n" + kHostCode}});
  const std::string include = "#include \"host.h\"\n";
  const auto report = check(include + include + "#ifdef NOPE\n" + include +
                            "#else  // as it is\nint a = c;\n#endif\n__global__ void k() {\n  int a = b;\n}\n");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().where.line, 9) << to_string(report.error());
  ASSERT_FALSE(report.error().notes.empty());
  EXPECT_NE(to_string(report.error()).find("a (line 6)"), std::string::npos) << to_string(report.error());
}

TEST_F(HostCode, DirectivesInItStay) {
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "#ifdef A" + std::to_string(i) + "\nint a;\n#endif\n";
  expect(6, "int main() {\n  std::vector<int> v;\n" + many + "#define SCALE 6\n}\n" + kScale);
}

TEST_F(HostCode, OfAHeaderTooLargeToBeTaken) {
  add({{"huge.h", ""}});
  fs::resize_file(directory_ / "huge.h", uintmax_t{1} << 36);
  add({{"host.h", kHostCode}});
  expect(1, "#include \"host.h\"\n#ifdef NOPE\n#include \"huge.h\"\n#endif\n" + kScale);
}

TEST_F(HostCode, FindingsHaveTheGivenPathAndTheCallers) {
  file_ = "../user.cu";
  for (const std::string& host : {std::string(), kHostCode}) {
    const auto report = check(
        "__device__ int inner(int* p) { return *p; }\n__device__ int outer(int* p) {\n"
        "  return inner(p) + 1;\n}\n__global__ void k(int* o) {\n  *o = outer(nullptr);\n}\n" +
            host,
        R"([{"type": "i32", "size": 1}])");
    ASSERT_TRUE(report) << to_string(report.error());
    ASSERT_EQ(report->findings.size(), 1u);
    const Finding& f = report->findings[0];
    EXPECT_EQ(f.source.file + ":" + std::to_string(f.source.line), "../user.cu:1");
    EXPECT_NE(f.message.find(" (in inner, called at ../user.cu:3, ../user.cu:6)"), std::string::npos) << f.message;
  }
}

TEST_F(HostCode, ResultsAreKeptForTheTextOfAllFiles) {
  cache_ = (directory_ / "cache").string();
  const auto entries = [&] {
    return std::distance(fs::recursive_directory_iterator(cache_), fs::recursive_directory_iterator());
  };
  const auto expect_of_header = [&](int value) {
    add({{"outer.h", "#pragma once\n#include \"inner.h\"\n"},
         {"inner.h", kHostCode + "#define SCALE " + std::to_string(value) + "\n"}});
    expect(value, "#include \"outer.h\"\n" + kScale);
  };
  expect_of_header(2);
  expect_of_header(3);
  const auto kept = entries();
  expect_of_header(2);
  EXPECT_EQ(entries(), kept);
  // The compiler decides which file this is.
  fs::remove_all(cache_);
  add({{"plain.h", "#define SCALE 5\n"}});
  expect(5, kHostCode + "#define HEADER \"plain.h\"\n#include HEADER\n" + kScale);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(HostCode, LargeHeadersComeFirst) {
  if (nvrtc_info().include_dir.empty()) GTEST_SKIP() << "no toolkit on this machine";
  add({{"own.h", "#include <cooperative_groups.h>\n"}});
  const auto large = [&](const std::string& text) {
    return Source((directory_ / "user.cu").string(), text, {directory_.string()}).large_includes();
  };
  const std::string group = "#include <cooperative_groups.h>\n";
  EXPECT_EQ(large("#include <stdio.h>\n#define SIZE_OF_MINE 3\n#include \"own.h\"\n" + group), group);
  EXPECT_EQ(large("#include <stdio.h>\n"), "");
  EXPECT_EQ(large("#if SIZE\n" + group + "#endif\n"), "");
  EXPECT_EQ(large("#define __CUDA_ARCH__ 900\n" + group), "");  // the header names the macro
}

TEST_F(HostCode, AKernelThatIsNoneLeavesTheSourceAsItIs) {
  if (nvrtc_info().include_dir.empty()) GTEST_SKIP() << "no toolkit on this machine";
  add({{"t.h", "template <class T> __global__ void t(T* y) { *y = 1; }\n"}});
  const std::string text =
                        "#include <cuda_runtime_api.h>\n#include \"t.h\"\ntemplate __global__ void t<float>(float*);\n",
                    args = R"([{"type": "f32", "size": 1}])";
  const auto report = check(text, args, "void t<float>(float*)");  // not an expression, but the kernel's name
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(report->left_out.empty());
  const auto wrong = check(text, args, "u<float>");
  ASSERT_FALSE(wrong);
  EXPECT_NE(to_string(wrong.error()).find("the file's templates of kernels: t"), std::string::npos)
      << to_string(wrong.error());
}

using SlowHostCode = HostCode;
TEST_F(SlowHostCode, DevicePartsOfCubsUmbrellaHeader) {
  const std::string& toolkit = nvrtc_info().include_dir;
  if (toolkit.empty() || (!fs::exists(fs::path(toolkit) / "cccl" / "cub") && !fs::exists(fs::path(toolkit) / "cub")))
    GTEST_SKIP() << "no CUB on this machine";
  const std::string text =
      "#include <cub/cub.cuh>\n#include <iostream>\n"
      "__global__ void k(int* o) {\n  using Sum = cub::BlockReduce<int, 32>;\n  using Least = cub::WarpReduce<int>;\n"
      "  __shared__ typename Sum::TempStorage sum;\n  __shared__ typename Least::TempStorage least;\n"
      "  const int all = Sum(sum).Sum(threadIdx.x), first = Least(least).Sum(1);\n  if (threadIdx.x == 0) *o = all + "
      "first;\n}\n"
      "int main() {\n  size_t bytes = 0;\n  cub::DeviceReduce::Sum(nullptr, bytes, (int*)nullptr, (int*)nullptr, 3);\n "
      " std::cout << bytes;\n}\n";
  const std::string args = R"([{"name": "o", "type": "i32", "size": 1, "expect": 528}])";  // 31 * 32 / 2 + 32
  Request r;
  r.file = "user.cu";
  r.text = text;
  r.block.x = 32;
  r.args = *parse_arguments(args, "args.json", ".");
  const auto report = run(r);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_NE(report->verdict(), Verdict::kFindings) << check_text(*report, 0);
}

TEST_F(HostCode, FindingsInAUsersHeaderKeepTheirPosition) {
  file_ = "user.cu";  // the directory given by -I has the name of a toolkit directory
  add({{"store.h", "__device__ inline void store(int* o, int i) {\n  o[i] = 1;\n}\n"}});
  for (const std::string host : {"", "#include <iostream>\nint main() { std::cout << 1; }\n"}) {
    const auto report = check("#include \"store.h\"\n__global__ void k(int* o) { store(o, 1000000); }\n" + host,
                              R"([{"type": "i32", "size": 1}])");
    ASSERT_TRUE(report) << to_string(report.error());
    ASSERT_EQ(report->findings.size(), 1u);
    EXPECT_EQ(report->findings[0].source.file, (directory_ / "store.h").string());
    EXPECT_EQ(report->findings[0].source.line, 2);
  }
}

}  // namespace
}  // namespace roofgen::check::host_code_test

// An operator of data files alone, examples/dots, whose two outputs have rows of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cli/program.h"
#include "tests/support/json_schema.h"

namespace roofgen::test::own_op_test {
namespace {

using testing::HasSubstr;

const std::string kFolder = ROOFGEN_SOURCE_DIR "/examples/dots";
const std::string kSizes = " dots --rows 300 --cols 777 --executor sim ";

class OwnOp : public Compiling {};

TEST_F(OwnOp, HasFiveFilesAndIsTuned) {
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kFolder)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string name = entry.path().filename().string();
    EXPECT_TRUE(name.ends_with(".json") || name.ends_with(".cu.jinja")) << name;
  }
  EXPECT_LE(files, 5u);
  const Json r = parse(home.run("tune" + kSizes + "--evals 6 --json --data-dir " + kFolder));
  expect_schema("tune", r);
  EXPECT_EQ(r["problem"]["op"], "dots");
  ASSERT_EQ(r["variants"].size(), 2u);
  for (const Json& v : r["variants"]) {
    EXPECT_TRUE(v["time_us"].is_number()) << v["name"];
    EXPECT_LE(v["verification"]["error_over_tolerance"], 1.0) << v["name"];
    uint64_t rows = 0;
    for (const Json& k : v["kernels"]) rows += k["verification"]["rows_checked"].get<uint64_t>();
    // Every row and every column, with three kinds of inputs.
    EXPECT_GE(rows, 3u * (300 + 777)) << v["name"];
    EXPECT_EQ(v["kernels"].size(), v["name"] == "fused" ? 1u : 2u);
  }
}

TEST_F(OwnOp, WhatFusionSaves) {
  const Json r = parse(home.run("whatif" + kSizes + "--evals 6 --json --data-dir " + kFolder));
  expect_schema("whatif", r);
  EXPECT_EQ(r["steps"], Json({"rows", "columns"}));
  ASSERT_EQ(r["partitions"].size(), 2u);
  std::map<std::string, double> bytes;
  for (const Json& p : r["partitions"]) {
    EXPECT_GT(p["time_us"], 0) << p["plan"];
    bytes[p["plan"].get<std::string>()] = p["dram_bytes"].get<double>();
  }
  ASSERT_EQ(r["edges"].size(), 1u);
  // x and y are read once instead of twice.
  EXPECT_NEAR(bytes.at("rows | columns") - bytes.at("rows+columns"), 2 * 2 * 300 * 777, 0.01 * 2 * 2 * 300 * 777);
  EXPECT_THAT(home.run("whatif" + kSizes + "--plan rows+colums --data-dir " + kFolder).err,
              HasSubstr("no partition of dots; did you mean \"rows+columns\"?"));
}

/// Each is a fault that only one of the outputs shows, or only some CTAs.
TEST_F(OwnOp, PlantedFaultsAreRejected) {
  for (const auto& [file, right, wrong, variant] :
       {std::tuple{"templates/dots/rows.cu.jinja", "part = 0; part <", "part = 1; part <", "fused"},
        {"templates/dots/rows.cu.jinja", "column_dots[n] = sum;", "if (n < cols - 1) column_dots[n] = sum;", "fused"},
        {"templates/dots/rows.cu.jinja", "if (!is_last) return;", "", "fused"},
        {"templates/dots/rows.cu.jinja", "arrive(arrivals, gridDim.x - 1)", "arrive(arrivals, gridDim.x)", "fused"},
        {"templates/dots/columns.cu.jinja", "int m = group;", "int m = group + 1;", "unfused"},
        {"search_spaces/ops/dots.json", "\"is\": \"sum(product)\"}\n", "\"is\": \"max(product)\"}\n", "unfused"}}) {
    fs::remove_all(home.dir() / "mine");
    fs::copy(kFolder, home.dir() / "mine", fs::copy_options::recursive);
    std::string text = home.read(std::string("mine/") + file);
    const size_t at = text.find(right);
    ASSERT_NE(at, std::string::npos) << right;
    home.write(std::string("mine/") + file, text.replace(at, std::string(right).size(), wrong));
    const Outcome o = home.run("tune" + kSizes + "--evals 2 --data-dir mine --variant " + variant, kClosedForm);
    EXPECT_EQ(o.exit, 1) << wrong << o.out;
    EXPECT_THAT(o.err + o.out, HasSubstr("nothing was verified")) << wrong;
  }
}

/// The kernels are the same: what was verified by another formula must not stand.
TEST_F(OwnOp, AnotherFormulaIsVerifiedAnew) {
  fs::copy(kFolder, home.dir() / "mine", fs::copy_options::recursive);
  const std::string run = "tune" + kSizes + "--evals 2 --data-dir mine --variant unfused";
  const Outcome right = home.run(run, kClosedForm);
  ASSERT_EQ(right.exit, 0) << right.err;
  const std::string name = "mine/search_spaces/ops/dots.json", sum = "\"is\": \"sum(";
  std::string text = home.read(name);
  ASSERT_NE(text.rfind(sum), std::string::npos);
  home.write(name, text.replace(text.rfind(sum), sum.size(), "\"is\": \"max("));
  const Outcome wrong = home.run(run, kClosedForm);
  EXPECT_EQ(wrong.exit, 1) << wrong.out;
  EXPECT_THAT(wrong.err + wrong.out, HasSubstr("nothing was verified"));
}

/// A temporary is compared by what is made of it, and what the first kernel writes beside it by itself.
TEST_F(OwnOp, ATemporaryBetweenKernels) {
  fs::copy(ROOFGEN_SOURCE_DIR "/tests/support/dots_staged", home.dir() / "mine", fs::copy_options::recursive);
  const std::string run = "tune" + kSizes + "--evals 2 --variant staged --data-dir mine --data-dir " + kFolder;
  const Json r = parse(home.run(run + " --json", kClosedForm));
  ASSERT_EQ(r["variants"].size(), 1u);
  EXPECT_EQ(r["variants"][0]["verified"], true);
  const std::string name = "mine/templates/dots/parts.cu.jinja", right = home.read(name);
  for (const auto& [what, fault] : {std::pair{"cols + n] = sum", "cols + n] = n == 5 ? 0.0f : sum"},
                                    {"+ threadIdx.x] = sum", "+ threadIdx.x] = sum + 1.0f"}}) {
    std::string text = right;
    const size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << what;
    home.write(name, text.replace(at, std::string(what).size(), fault));
    const Outcome o = home.run(run, kClosedForm);
    EXPECT_EQ(o.exit, 1) << fault << o.out;
    EXPECT_THAT(o.err + o.out, HasSubstr("nothing was verified")) << fault;
  }
}

TEST_F(OwnOp, FlagsAreThoseOfItsFile) {
  const std::string with = " --data-dir " + kFolder;
  EXPECT_THAT(home.run("tune --help" + with).out, HasSubstr("softmax, map, dots"));
  EXPECT_EQ(home.run("tune --help").out.find("dots"), std::string::npos);
  EXPECT_THAT(home.run("tune dots --rows 4 --cols 4 --causal" + with).err,
              HasSubstr("dots has no --causal; it has --rows, --cols"));
  EXPECT_THAT(home.run("tune dots --rows 4" + with).err, HasSubstr("dots needs cols"));
  EXPECT_THAT(home.run("completion bash" + with).out, HasSubstr("dots"));
  home.write("two/search_spaces/ops/two.json", R"({"schema": "roofgen.op.1", "op": "two",
 "dims": [{"name": "device", "help": "a size"}]})");
  const Outcome o = home.run("tune two --device 4 --data-dir two");
  EXPECT_THAT(o.err, HasSubstr("the file of an op declares --device, which tune has for another purpose"));
  EXPECT_EQ(home.run("devices --data-dir two").exit, 0);
}

}  // namespace
}  // namespace roofgen::test::own_op_test

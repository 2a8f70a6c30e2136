// explain, devices, roofline and report as a user runs them: the contents of the output, and one-line errors for bad
// input.
#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/support/patterns.h"

namespace roofgen::test::roofline_test {

namespace {

class RooflineCli : public ::testing::Test {
 protected:
  Json json(const std::string& arguments) { return parse(home.run(arguments)); }
  /// Expects an exit code and a one-line error.
  void refused(const std::string& arguments, int exit, const std::string& line) {
    const Outcome o = home.run(arguments);
    EXPECT_EQ(o.exit, exit) << arguments;
    EXPECT_EQ(o.out, "") << arguments;
    EXPECT_NE(o.err.find(line), std::string::npos) << arguments << "\n" << o.err;
  }
  Home home;
};

std::vector<std::string> rules(const Json& explanation) {
  std::vector<std::string> out;
  for (const Json& w : explanation["warnings"]) out.push_back(w["rule"].get<std::string>());
  return out;
}

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

}  // namespace

TEST_F(RooflineCli, ExplainsNaiveAttentionOfOneHead) {
  const Json e = json("explain attention --L 2048 --d 64 --batch 1 --heads 1 --passes 4 --json");
  EXPECT_NEAR(e["dram_bytes"].get<double>(), 34.6e6, 0.01e6);
  EXPECT_NEAR(e["arithmetic_intensity"].get<double>(), 31.0, 0.05);
  EXPECT_TRUE(contains(rules(e), "R09"));
  EXPECT_TRUE(contains(rules(e), "R10"));
  for (const char* key : {"flops", "ridge", "regime", "binding_roof", "attainable_tflops"})
    EXPECT_TRUE(e.contains(key)) << key;
  ASSERT_EQ(e["passes"].size(), 3u);
  EXPECT_EQ(e["passes"][1]["operands"].size(), 2u);
}

TEST_F(RooflineCli, ExplainsMixedPrecisionGemm) {
  const Json mixed = json("explain gemm --M 128 --N 24576 --K 1536 --b-dtype fp4 --device b200 --json");
  EXPECT_NEAR(mixed["arithmetic_intensity"].get<double>(), 378.1, 0.05);
  EXPECT_EQ(mixed["regime"], "compute-bound");
  EXPECT_EQ(mixed["math_dtype"], "bf16");
  const Json narrow = json(
      "explain gemm --M 128 --N 24576 --K 1536 --a-dtype nvfp4 --b-dtype nvfp4 --out-dtype bf16 --device b200 --json");
  EXPECT_NEAR(narrow["arithmetic_intensity"].get<double>(), 349.7, 0.05);
  EXPECT_EQ(narrow["regime"], "memory-bound");
}

TEST_F(RooflineCli, DimsMayBeGivenInOneFlag) {
  EXPECT_EQ(json("explain gemm --dims M=4k,N=4096,K=4096 --json")["dims"],
            json("explain gemm --M 4096 --N=4096 --K 4096 --json")["dims"]);
}

TEST_F(RooflineCli, DevicesHaveASourceInEachCell) {
  const Json all = json("devices --json");
  EXPECT_GE(all["devices"].size(), 19u);
  for (const Json& d : all["devices"])
    for (const auto& [name, cell] : d["cells"].items())
      EXPECT_GE(cell["source"].get<std::string>().size(), 8u) << d["name"] << " " << name;
  const std::string one = home.run("devices h100-sxm").out;
  EXPECT_NE(one.find("BF16 tensor, FP32 accumulate"), std::string::npos);
  EXPECT_NE(one.find("295.2"), std::string::npos);
}

TEST_F(RooflineCli, RooflineDrawsCeilingsAndOperators) {
  const Json page = json("roofline --device a100-sxm-80 --json");
  const Json& figure = page["blocks"][0];
  EXPECT_GE(figure["ceilings"].size(), 5u);
  EXPECT_GE(figure["points"].size(), 4u);
  EXPECT_EQ(figure["arrows"].size(), 1u);
  const Outcome text = home.run("roofline --device a100-sxm-80", "COLUMNS=80");
  EXPECT_EQ(text.exit, 0);
  EXPECT_NE(text.out.find("312"), std::string::npos);
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
}

TEST_F(RooflineCli, RooflineWritesPageSvgAndPng) {
  const Outcome o = home.run("roofline --device a100-sxm-80 --html r.html --svg r.svg --png r.png");
  ASSERT_EQ(o.exit, 0) << o.err;
  EXPECT_NE(home.read("r.html").find("roofgen.page/1"), std::string::npos);
  EXPECT_NE(home.read("r.svg").find("</svg>"), std::string::npos);
  EXPECT_EQ(home.read("r.png").substr(1, 3), "PNG");
}

TEST_F(RooflineCli, PointsOfATable) {
  home.write("p.csv",
             "name,op,flags,ai,tflops,time_us,origin,from\nmine,gemm,--M 64 --N 4096 --K "
             "4096,,,20,measured,\ndot,,,100,50,,measured,mine\n");
  const Json page = json("roofline --points p.csv --json");
  const Json& points = page["blocks"][0]["points"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_NEAR(points[0]["tflops"].get<double>(), 2.0 * 64 * 4096 * 4096 / 20e-6 / 1e12, 1e-6);
  EXPECT_EQ(points[0]["origin"], "measured");
  EXPECT_EQ(points[1]["ai"], 100.0);
}

TEST_F(RooflineCli, BadInput) {
  refused("explain gem --M 1", 2, "unknown operator \"gem\"; did you mean \"gemm\"?");
  refused("explain gemm --M 1 --N 2", 2, "gemm needs --K: the summed dimension");
  refused("explain gemm --M x", 2, "--M x: a whole number up to 2^40 was expected");
  refused("explain gemm --M", 2, "--M needs a value");
  refused("explain gemm --M 1 --M 2", 2, "--M is given twice");
  refused("explain gemm --batsh 4", 2, "gemm has no flag --batsh; did you mean");
  refused("explain gemm --M 1 --N 2 --K 3 --b-dtype fp5", 2, "unknown dtype \"fp5\"");
  refused("explain gemm --M 1 --N 2 --K 3 --device h20", 2, "unknown device \"h20\"");
  refused("explain gemm --M 1 --N 2 --K 3 --ceilings measured", 2, "unknown ceilings \"measured\"");
  refused("explain gemm --M 1 --N 2 --K 3 --softmax-flops nan", 2, "softmax-flops");
  refused("explain elementwise --expr 'relu(x' --rows 2 --cols 2", 2, "1:7: error");
  refused("devices h10", 2, "unknown device \"h10\"");
  home.write("p.csv", "name,op,flags\na,gemm,--M 1\n");
  refused("roofline --points p.csv", 2, "p.csv:2:8: error: gemm needs --N");
  home.write("p.csv", "name,ai,tflops\na,nan,1\n");
  refused("roofline --points p.csv", 2, "p.csv:2:3: error: ai is \"nan\"; a number from 1e-12 to 1e12 was expected");
  home.write("p.csv", "nam,ai,tflops\na,1,1\n");
  refused("roofline --points p.csv", 2, "p.csv:1:1: error: unknown column \"nam\"; did you mean \"name\"?");
  refused("roofline --points missing.csv", 2, "missing.csv");
  refused("roofline --png nowhere/r.png", 1, "nowhere/r.png");
  home.write("r.json", "{\"schema\": \"roofgen.tunes.1\"}");
  refused("report r.json", 2, "no report is drawn of schema \"roofgen.tunes.1\"");
  home.write("r.json", "[]");
  refused("report r.json", 2, "a member \"schema\" was expected");
  home.write("r.json", "{\"schema\": \"roofgen.tune.1\"}");
  refused("report r.json", 2, "not a whole tuning result");
}

TEST_F(RooflineCli, ReportShowsAnExplanationAgain) {
  home.write("e.json", home.run("explain attention --L 2048 --d 64 --passes 4 --json").out);
  const Outcome text = home.run("report e.json");
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("softmax"), std::string::npos);
  home.write("c.json",
             home.run("explain elementwise --expr 'relu(x + b[n])' --rows 64 --cols 64 --unfused --json").out);
  EXPECT_EQ(home.run("report c.json --html c.html").exit, 0);
  EXPECT_NE(home.read("c.html").find("relu"), std::string::npos);
}

TEST_F(RooflineCli, ReportRefusesModifiedFiles) {
  const std::string text = home.run("explain gemm --M 64 --N 64 --K 64 --json").out;
  home.write("e.json", test::substituted(text, "\"flops\": 524288.0", "\"flops\": 1.0"));
  refused("report e.json", 2, "flops is 1 here and 524288 by the formulas");
  home.write("m.json", "{\"schema\": \"roofgen.model-run.1\", \"model\": \"generic-7b\", \"phase\": \"decode\"}");
  refused("report m.json", 2, "not a whole model run");
}

TEST_F(RooflineCli, OutputGoesWhereALinkPoints) {
  home.write("target.html", "");
  fs::create_symlink("target.html", home.dir() / "link.html");
  ASSERT_EQ(home.run("roofline --html link.html").exit, 0);
  EXPECT_TRUE(fs::is_symlink(home.dir() / "link.html"));
  EXPECT_NE(home.read("target.html").find("roofgen.page/1"), std::string::npos);
  // Writing to a pipe keeps the pipe; its reader gets the page.
  const Outcome o = home.run("roofline --html pipe & cat pipe > got.html; wait $!; test -p pipe", "mkfifo pipe;");
  EXPECT_EQ(o.exit, 0) << o.err;
}

TEST_F(RooflineCli, DotsAboveTheirRoofAreSaid) {
  home.write("p.csv", "name,ai,tflops,origin\na,10,50000,measured\n");
  const Outcome o = home.run("roofline --points p.csv");
  EXPECT_EQ(o.exit, 0);
  EXPECT_NE(o.err.find("R12 a: 5e+04 TFLOP/s is above the roof of 48 (DRAM)"), std::string::npos) << o.err;
}

TEST_F(RooflineCli, ReportDrawsARooflineAgain) {
  home.write("r.json", home.run("roofline --device b200 --json").out);
  ASSERT_EQ(home.run("roofline --device b200 --html r.html").exit, 0);
  const Outcome again = home.run("report r.json --html again.html");
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(home.read("again.html"), home.read("r.html"));
  home.write("r.json",
             "{\"schema\": \"roofgen.page/1\", \"title\": \"t\", \"facts\": [], \"warnings\": [], \"blocks\": "
             "[{\"kind\": \"pie\"}]}");
  refused("report r.json", 2, "unknown kind of figure \"pie\"");
}

TEST_F(RooflineCli, ReportShowsAModelRunAgain) {
  const std::string command =
      "model generic-7b --phase decode --batch 1,4 --kv 256,2048 --device h100-sxm --mem-eff 0.9";
  home.write("m.json", home.run(command + " --json").out);
  ASSERT_EQ(home.run(command + " --html m.html").exit, 0);
  const Outcome again = home.run("report m.json --html again.html");
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(home.read("again.html"), home.read("m.html"));
}

TEST_F(RooflineCli, TheGpuOfTheMachineNeedsADriver) {
  const Outcome o = home.run("devices gpu", "ROOFGEN_LIBCUDA=/nonexistent/libcuda.so.1");
  EXPECT_EQ(o.exit, 3);
  EXPECT_NE(o.err.find("no CUDA driver"), std::string::npos) << o.err;
}

TEST_F(RooflineCli, ReportShowsATuningResultAgain) {
  if (!has_nvrtc(home)) GTEST_SKIP() << "NVRTC not found: nothing can be compiled";
  // Without a disassembler: else the page of `tune` also explains the time of the machine code, which no JSON holds.
  const Outcome tuned =
      home.run("tune attention --L 200 --d 64 --batch 2 --heads 2 --evals 2 --executor sim --json --html t.html",
               "ROOFGEN_NVDISASM=/nonexistent");
  ASSERT_EQ(tuned.exit, 0) << tuned.err;
  home.write("t.json", tuned.out);
  const Outcome text = home.run("report t.json");
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_NE(text.out.find("waste"), std::string::npos);
  ASSERT_EQ(home.run("report t.json --html again.html").exit, 0);
  EXPECT_EQ(home.read("again.html"), home.read("t.html"));
}

TEST_F(RooflineCli, MeasuringNeedsAGpu) {
  for (const char* arguments :
       {"roofline --measure", "roofline --measure --json --only dram_copy --output mine.json"}) {
    const Outcome o = home.run(arguments);
    if (o.exit != 3) GTEST_SKIP() << "there is a GPU here";
    EXPECT_EQ(o.out, "");
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << o.err;
    EXPECT_FALSE(fs::exists(home.dir() / "data")) << "nothing is written";
    EXPECT_FALSE(fs::exists(home.dir() / "mine.json"));
  }
  refused("roofline --measure --protocol rapid", 2, "'rapid' is not a mode");
  refused("roofline --only dram_copy", 2, "--only requires --measure");
}

TEST_F(RooflineCli, AProfileIsLaidOverADeviceOfItsName) {
  const std::string text =
      R"({"schema": "roofgen.device/1", "name": "h200-sxm", "provenance": {"uuid": "GPU-1"}, "ceilings": [],
    "cells": {"dram_sustained_gb_s": {"value": 4123, "unit": "GB/s", "origin": "measured", "source": "a test that says so"}}})";
  home.write("mine.json", text);
  const Json d = json("devices h200-sxm --profile mine.json --json");
  EXPECT_EQ(d["cells"]["dram_sustained_gb_s"]["value"], 4123);
  EXPECT_EQ(d["cells"]["dram_sustained_gb_s"]["origin"], "measured");
  EXPECT_NE(
      json(
          "explain gemm --M 16 --N 4096 --K 4096 --ceilings sustained --profile mine.json --json")["attainable_tflops"],
      json("explain gemm --M 16 --N 4096 --K 4096 --ceilings sustained --json")["attainable_tflops"]);
  EXPECT_EQ(json("devices h200-sxm --no-profile --json")["cells"]["dram_sustained_gb_s"]["value"], 4621);
  refused("roofline --device h100-sxm --profile mine.json", 2,
          "the profile is of \"h200-sxm\", the device is \"h100-sxm\"");
  refused("roofline --profile nothing.json", 2, "no such file");
  home.write("half.json", text.substr(0, 100));
  refused("roofline --profile half.json", 2, "half.json");
}

}  // namespace roofgen::test::roofline_test

// Interpretation of columns, units, shapes and names in a table.
#include <gmock/gmock.h>

#include "lint_support.h"
#include "roofline/lint/columns.h"
#include "roofline/lint/shape.h"
#include "roofline/views/views.h"

namespace roofgen::lint_file_test {
using ::testing::HasSubstr;

namespace {

Column column(const std::string& header) {
  const auto c = read_column({header, 1, 1}, "t.csv", lint_knowledge().dims, lint_knowledge().flags);
  EXPECT_TRUE(c) << (c ? "" : to_string(c.error()));
  return c ? *c : Column{};
}

Claim claim(const std::string& header, const std::string& row) {
  const LintReport report = lint_report(header + "\n" + row + "\n");
  EXPECT_EQ(report.rows.size(), 1u);
  return report.rows.empty() ? Claim{} : report.rows[0].claim;
}

std::string error_of(const std::string& table, const std::string& device = "") {
  const auto report = lint_file(table, "t.csv", lint_knowledge(), {device});
  if (!report) return to_string(report.error());
  return report->errors.empty() ? "" : to_string(report->errors.front());
}

std::vector<std::string> names(const std::vector<const Device*>& devices) {
  std::vector<std::string> out;
  for (const Device* d : devices) out.push_back(d->name);
  return out;
}

}  // namespace

TEST(LintColumns, NamesAndUnits) {
  struct Case {
    const char* header;
    const char* key;
    const char* unit;
  };
  for (const Case& c :
       {Case{"AI (FLOP/byte)", "ai", "FLOP/byte"}, Case{"Arithmetic Intensity", "ai", "FLOP/byte"},
        Case{"attainable_tflops", "attainable", "TFLOPS"}, Case{"Attainable [GFLOP/s]", "attainable", "GFLOPS"},
        Case{"bytes_mb", "bytes", "MB"}, Case{"Bytes (MiB)", "bytes", "MiB"}, Case{"time-us", "time", "us"},
        Case{"TIME (ms)", "time", "ms"}, Case{"bandwidth_gb_s", "bandwidth", "GB/s"},
        Case{"BW (TB/s)", "bandwidth", "TB/s"}, Case{"flops", "flops", "FLOP"}, Case{"FLOPs (GFLOP)", "flops", "GFLOP"},
        Case{"GFLOPS", "achieved", "GFLOPS"}, Case{"Peak (dense)", "peak", "TFLOPS"}}) {
    EXPECT_EQ(column(c.header).key, c.key) << c.header;
    ASSERT_TRUE(column(c.header).unit) << c.header;
    EXPECT_STREQ(column(c.header).unit->shown, c.unit) << c.header;
  }
  EXPECT_EQ(column("peak_fp16 (TFLOPS)").detail, "fp16");
  EXPECT_EQ(column("Peak (fp8)").detail, "fp8");
  EXPECT_EQ(column("a_dtype").detail, "a");
  for (const auto& [header, dim] : {std::pair{"M", "M"},
                                    {"m", "M"},
                                    {"seq len", "L"},
                                    {"head_dim", "d"},
                                    {"kv", "kv_len"},
                                    {"Batch Size", "batch"},
                                    {"num_heads", "heads"}}) {
    EXPECT_EQ(column(header).key, "dim") << header;
    EXPECT_EQ(column(header).detail, dim) << header;
  }
  EXPECT_EQ(column("colour").key, "");
  EXPECT_FALSE(read_column({"ai (GB/s)", 1, 1}, "t.csv", {}, {}));
}

TEST(LintColumns, NumbersAndUnitsInCells) {
  const Claim c = claim("kernel,ai,attainable (TFLOPS),bytes (MB),time (us),peak", "a,~1.5,10 GFLOPS,2e3 kB,1.5 ms,-");
  EXPECT_DOUBLE_EQ(*c.ai, 1.5);
  EXPECT_DOUBLE_EQ(*c.attainable_tflops, 0.01);
  EXPECT_DOUBLE_EQ(*c.bytes, 2e6);
  EXPECT_DOUBLE_EQ(*c.time_us, 1500);
  EXPECT_FALSE(c.peak_tflops);
  ASSERT_EQ(c.restated.size(), 3u);
  for (const char* nothing : {"", "-", "n/a", "varies", "\xE2\x80\x94"})
    EXPECT_FALSE(claim("kernel,ai,peak", std::string("a,1,") + nothing).peak_tflops) << nothing;
}

TEST(LintColumns, BadCells) {
  const std::string head = "kernel,ai,bytes (GB)\n";
  EXPECT_EQ(error_of(head + "a,abc,1\n"),
            "t.csv:2:3: error: \"abc\" is not a number; a number (FLOP/byte) was expected, or nothing");
  EXPECT_THAT(error_of(head + "a,1 apple,1\n"), HasSubstr("is not a number"));
  EXPECT_THAT(error_of(head + "a,inf,1\n"), HasSubstr("finite"));
  EXPECT_THAT(error_of(head + "a,NaN,1\n"), HasSubstr("finite"));
  EXPECT_THAT(error_of(head + "a,1e999,1\n"), HasSubstr("out of range"));
  EXPECT_THAT(error_of(head + "a,1,-1\n"), HasSubstr("t.csv:2:5: error: \"-1\" is negative"));
  EXPECT_THAT(error_of(head + "a,1,\"1,000\"\n"), HasSubstr("without thousands separators"));
  EXPECT_THAT(error_of(head + "a,1,3 GB/s\n"), HasSubstr("another kind of number"));
  EXPECT_THAT(error_of(head + "a,1,1\nb,1,2 GiB\n"), HasSubstr("t.csv:3:5: error: GB and GiB in one column"));
  EXPECT_THAT(error_of("kernel,ai,fused\na,1,perhaps\n"), HasSubstr("yes or no"));
  EXPECT_THAT(error_of("kernel,ai,M\na,1,1.5\n"), HasSubstr("whole number"));
  EXPECT_THAT(error_of("kernel,ai,M,N,K\ngemm,1,0,1,1\n"), HasSubstr("t.csv:2:1: error: gemm: this does not hold"));
  EXPECT_THAT(error_of("kernel,ai,shape\ngemm,1,wide\n"), HasSubstr("is not the shape of a matrix product"));
  EXPECT_THAT(error_of("kernel,ai\n,1\n"), HasSubstr("no name"));
}

TEST(LintFile, HeaderFaultsEndTheReading) {
  EXPECT_THAT(error_of("ai\n1\n"), HasSubstr("t.csv:1:1: error: no column names the rows"));
  EXPECT_THAT(error_of("kernel,flops\na,1\n"), HasSubstr("\"flops\" with \"bytes\" was expected"));
  EXPECT_THAT(error_of("kernel,ai,AI (FLOP/byte)\na,1,2\n"),
              HasSubstr("t.csv:1:11: error: column \"AI (FLOP/byte)\" repeats another column"));
  EXPECT_THAT(error_of("kernel,ai\na,1\n", "h10-sxm"),
              HasSubstr("unknown device \"h10-sxm\"; did you mean \"h100-sxm\"?"));
}

TEST(LintFile, AColumnNearlyOursIsNamed) {
  const LintReport report = lint_report("kernel,ai,attainble,colour\na,1,2,red\n");
  ASSERT_EQ(report.ignored.size(), 1u);
  EXPECT_THAT(report.ignored[0].message, HasSubstr("did you mean \"attainable\""));
}

TEST(LintFile, TheRegimeNamedFirst) {
  for (const auto& [stated, read] : {std::pair{"Compute-bound", "compute"},
                                     {"memory-bound, far from compute", "memory"},
                                     {"compute, not memory", "compute"},
                                     {"bandwidth (compute is idle)", "memory"},
                                     {"Mixed", ""},
                                     {"-", ""}})
    EXPECT_EQ(claim("kernel,ai,bound", std::string("a,1,\"") + stated + "\"").bound, read) << stated;
}

TEST(LintFile, JsonOfAnyPathWithItsNotes) {
  auto report = lint_file("kernel,ai,attainble\na,1,2\n", "caf\xE9.csv", lint_knowledge());
  ASSERT_TRUE(report);
  const std::string json = lint_json(*report);
  EXPECT_THAT(json, HasSubstr("\"file\": \"caf\xEF\xBF\xBD.csv\""));
  EXPECT_THAT(json, HasSubstr("\"ignored\": ["));
  EXPECT_THAT(json, HasSubstr("did you mean \\\"attainable\\\""));
}

TEST(LintFile, TablesOfOtherThingsArePassedOver) {
  const LintReport report =
      lint_report("| Metric | Value |\n|---|---|\n| Peak | 1 |\n\n| Kernel | AI |\n|---|---|\n| a | 2 |\n");
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.rows[0].claim.name, "a");
}

TEST(LintFile, WorkFromShapesAndColumns) {
  const Claim open = claim("kernel,ai,notes", "mm,1,\"FP4 GEMM [B, 1536] \xE2\x86\x92 [B, 24576]\"");
  EXPECT_EQ(open.dtype, "fp4");
  EXPECT_FALSE(open.work);
  EXPECT_NEAR(*open.ai_limit, 1536.0 * 24576 / (1536 + 24576), 0.1);
  // The batch column gives the open dimension a value.
  const LintReport closed = lint_report("kernel,ai,batch,notes\nmm,1,128,\"FP4 GEMM [B, 1536] -> [B, 24576]\"\n");
  ASSERT_TRUE(closed.rows[0].claim.work);
  EXPECT_NEAR(closed.rows[0].work->arithmetic_intensity(), 378.1, 0.1);
  const LintReport stated =
      lint_report("kernel,dtype,a_dtype,out_dtype,M,N,K,ai\nmm,nvfp4,nvfp4,bf16,128,24576,1536,1\n");
  EXPECT_NEAR(stated.rows[0].work->arithmetic_intensity(), 349.7, 0.1);
  EXPECT_FALSE(claim("kernel,ai,M", "mm,1,128").work);
}

TEST(LintShape, Notations) {
  const auto a = find_shape("FP8 BMM [128, B, 128] \xC3\x97 [128, 128, 512]");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->dims, (std::map<std::string, int64_t>{{"batch", 128}, {"K", 128}, {"N", 512}}));
  EXPECT_EQ(a->open, (std::map<std::string, std::string>{{"M", "B"}}));
  EXPECT_EQ(find_shape("x: [16,32]->[16,64]")->dims, (std::map<std::string, int64_t>{{"M", 16}, {"K", 32}, {"N", 64}}));
  for (const char* none : {"", "[1, 2]", "[1, 2] [3, 4]", "[2, 3] x [4, 5]", "[B, 3] -> [C, 5]", "[1, 2, 3] -> [1, 2]",
                           "[0, 2] -> [0, 3]", "[B, K] -> [B, N]", "[1,2] -> [1", "[B/2, 3] -> [B/2, 5]"})
    EXPECT_FALSE(find_shape(none)) << none;
}

TEST(LintShape, OperatorsByName) {
  for (const auto& [name, op] : {std::pair{"cutlass_scaled_fp4_mm", "gemm"},
                                 {"bmm_fp8", "gemm"},
                                 {"dsv3_fused_a_gemm", "gemm"},
                                 {"fused_add_rmsnorm", "rmsnorm"},
                                 {"topk_softmax", "topk_softmax"},
                                 {"silu_and_mul", "silu_and_mul"},
                                 {"cutlass_mla_decode", "mla"},
                                 {"attention_naive", "attention"},
                                 {"FlashAttention-3", "attention"}}) {
    const auto found = infer_op(name, lint_knowledge().formulas);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(found->op, op) << name;
    EXPECT_TRUE(lint_knowledge().formulas.count(found->op)) << name;
  }
  EXPECT_FALSE(infer_op("commit", lint_knowledge().formulas));
  EXPECT_EQ(infer_dtype("bmm_fp8"), "fp8");
  EXPECT_EQ(infer_dtype("fp8 to bf16"), "");
}

TEST(LintDevice, Names) {
  const auto& all = lint_knowledge().devices;
  EXPECT_EQ(names(devices_named(all, "NVIDIA H100 SXM5")), std::vector<std::string>{"h100-sxm"});
  EXPECT_EQ(names(devices_named(all, "GB200")), std::vector<std::string>{"gb200"});
  EXPECT_EQ(names(devices_named(all, "B200")), std::vector<std::string>{"b200"});
  EXPECT_EQ(names(devices_named(all, "RTX4090")), std::vector<std::string>{"rtx-4090"});
  EXPECT_EQ(names(devices_named(all, "A100 80GB PCIe")), std::vector<std::string>{"a100-pcie-80"});
  EXPECT_EQ(devices_named(all, "A100").size(), 4u);
  EXPECT_TRUE(devices_named(all, "A1").empty());
  EXPECT_TRUE(devices_named(all, "").empty());
}

}  // namespace roofgen::lint_file_test

// Counting under a stand-in for ncu; the bundle and its run on the fake driver.

#include "tuner/views/counters.h"

#include "base/json.h"
#include "base/subprocess.h"
#include "generator/ops/elements.h"
#include "tests/tuner/counters_fixture.h"
#include "tuner/evidence/expected.h"
#include "tuner/evidence/replay.h"

namespace roofgen::counters_test {
namespace {

using testing::read_text;
using testing::replay_of_two;
using testing::script;
using testing::TempDir;
using testing::Tools;
using testing::write_text;

// ---- The bundle ----------------------------------------------------------------------------------

TEST(Replay, SurvivesTheRoundTrip) {
  const TempDir dir;
  Replay r = replay_of_two();
  r.pattern = InputPattern::kOneHot;
  r.buffers.back().zeroed = true;
  r.kernels[0].launch.cluster = {2, 1, 1};
  r.kernels[0].launch.overlap = true;
  r.kernels[0].launch.args[0].map =
      std::make_shared<const TensorMap>(TensorMap{DType::kBf16, {64, 128}, {128}, {64, 32}, 128, true, 256});
  r.kernels[0].launch.args[1].bits = 0xfedcba9876543210;
  Arg sizes{"sizes", false, 0, 3};
  sizes.data = {std::byte{1}, std::byte{0}, std::byte{255}};
  r.kernels[0].launch.args.push_back(sizes);
  ASSERT_TRUE(write_replay(r, dir / "a/b"));
  for (const char* name : {"a/b", "a/b/replay.json"}) {
    const auto back = read_replay(dir / name);
    ASSERT_TRUE(back) << to_string(back.error());
    EXPECT_EQ(replay_json(*back), replay_json(r));
    EXPECT_EQ(back->kernels[1].binary.cubin, r.kernels[1].binary.cubin);
    EXPECT_EQ(back->kernels[1].binary.ptx, r.kernels[1].binary.ptx);
    ASSERT_TRUE(back->kernels[0].launch.args[0].map);
    EXPECT_EQ(back->kernels[0].launch.args[0].map->box, (std::vector<uint32_t>{64, 32}));
    EXPECT_EQ(back->kernels[0].launch.args[1].bits, 0xfedcba9876543210);
    EXPECT_EQ(back->kernels[0].launch.args.back().data, sizes.data);
    EXPECT_EQ(back->kernels[0].launch.args.back().bytes, 3u);
    EXPECT_EQ(back->problem.dims, r.problem.dims);
    EXPECT_TRUE(back->buffers.back().zeroed);
    EXPECT_FALSE(back->buffers.front().zeroed);
  }
}

TEST(Replay, ErrorsInTheFileAreNamed) {
  const std::string good = replay_json(replay_of_two());
  const auto parsed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    auto result = parse_replay(text, "r.json", [](const std::string&) { return Result<std::string>("x"); });
    return result ? "" : to_string(result.error());
  };
  EXPECT_EQ(parsed("roofgen.replay.1", "roofgen.replay.1"), "");
  EXPECT_NE(parsed("roofgen.replay.1", "roofgen.replay.9").find("\"roofgen.replay.1\" was expected"),
            std::string::npos);
  EXPECT_NE(parsed("\"k0.cubin\"", "\"../k0.cubin\"").find("in the same folder"), std::string::npos);
  EXPECT_NE(parsed("\"k1.ptx\"", "\"/etc/passwd\"").find("in the same folder"), std::string::npos);
  EXPECT_NE(parsed("\"role\"", "\"rule\"").find("\"role\" is missing"), std::string::npos);
  EXPECT_NE(parsed("\"temporary\"", "\"other\"").find("\"other\" is not known"), std::string::npos);
  EXPECT_NE(parsed("\"smem_bytes\": 1024", "\"smem_bytes\": -1").find("\"smem_bytes\""), std::string::npos);
  EXPECT_NE(parsed("\"bits\": 7", "\"bits\": 7.5").find("\"bits\""), std::string::npos);
  EXPECT_NE(parsed("{", "").find("no JSON"), std::string::npos);
  const auto no_kernels = parse_replay("[]", "r.json", nullptr);
  ASSERT_FALSE(no_kernels);
  EXPECT_EQ(no_kernels.error().exit, Exit::kUsage);
}

TEST(Replay, GivesInputsAndExpectedElements) {
  Replay r;
  r.problem = *(*find_op("gemm"))
                   ->complete({.op = "gemm", .dims = {{"M", 40}, {"N", 24}, {"K", 32}}, .flags = {}, .reals = {}});
  r.variant = "fused";
  r.buffers = (*find_op("gemm"))->buffers(r.problem);
  r.kernels.push_back({"gemm", {}, {}});
  const auto a = input_bytes(r, "A");
  ASSERT_TRUE(a) << to_string(a.error());
  std::vector<std::byte> filled(40 * 32 * 2);
  (*find_op("gemm"))->fill(r.problem, r.pattern, "A", 0, filled);
  EXPECT_EQ(*a, filled);
  EXPECT_EQ(input_bytes(r, "C").error().message, "gemm has no input \"C\"");

  const auto text = expected_json(r, 2);
  ASSERT_TRUE(text) << to_string(text.error());
  const auto expected = parse_json(*text);
  uint64_t elements = 0, end = 0;
  for (const Json& run : expected["C"]) {
    EXPECT_GE(run["first"].get<uint64_t>(), end);
    end = run["first"].get<uint64_t>() + run["expected"].size();
    elements += run["expected"].size();
    EXPECT_EQ(run["tolerance"].size(), run["expected"].size());
  }
  EXPECT_EQ(elements, 3u * 2 * 24) << "two whole rows at the beginning, in the middle and at the end";
  EXPECT_EQ(end, 40u * 24);
  // The first element is the product of the first rows of A and B, in double precision.
  const std::vector<std::byte> b = *input_bytes(r, "B");
  double sum = 0;
  for (size_t k = 0; k < 32; ++k)
    sum += load_element(a->data(), k, DType::kBf16) * load_element(b.data(), k, DType::kBf16);
  EXPECT_NEAR(expected["C"][0]["expected"][0].get<double>(), sum, 1e-6);
}

TEST_F(Tools, ReplayRunsOnADriver) {
  const Replay r = replay_of_two();
  const auto gpu = make_cuda_executor();
  ASSERT_TRUE(gpu) << to_string(gpu.error());
  const auto times = run_replay(r, **gpu, 3);
  ASSERT_TRUE(times) << to_string(times.error());
  ASSERT_EQ(times->ns.size(), 2u);
  EXPECT_GT(times->ns[1], 0);

  Replay missing = r;
  missing.kernels[0].launch.args[0].name = "scoers";
  const auto failed = run_replay(missing, **gpu, 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "kernel fill takes a buffer \"scoers\" that is not there");
  Replay small = r;
  small.buffers[0].bytes -= 2;
  EXPECT_FALSE(run_replay(small, **gpu, 1));
}

TEST(Replay, ComesFromATunedResult) {
  Replay want = replay_of_two();
  TuneResult result;
  result.report.problem = want.problem;
  result.report.device = *load_device(DataFiles(), "h200-sxm");
  VariantReport v;
  v.name = "unfused";
  for (const ReplayKernel& k : want.kernels) {
    KernelReport r;
    r.stage = k.stage;
    r.registers = 99;
    r.work.mma_flops = 5;
    v.kernels.push_back(r);
    Launch launch = k.launch;
    launch.args[0].name = "S";
    launch.args.push_back({"LSE", true, 0, 8});
    result.winners["unfused"].push_back({{}, k.binary, launch});
  }
  result.report.variants.push_back(v);
  const auto request = counter_request(DataFiles(), **find_op("attention"), result, "unfused");
  ASSERT_TRUE(request) << to_string(request.error());
  ASSERT_EQ(request->replay.kernels.size(), 2u);
  const std::vector<Arg>& args = request->replay.kernels[1].launch.args;
  EXPECT_TRUE(args[0].is_buffer) << "S is a temporary of the variant";
  EXPECT_FALSE(args[3].is_buffer) << "log-sum-exp was not asked for";
  EXPECT_EQ(args[3].bits, 0u);
  EXPECT_EQ(request->expected[1].work.mma_flops, 5);
  EXPECT_GT(request->required->mma_flops, 0);
  EXPECT_FALSE(counter_request(DataFiles(), **find_op("attention"), result, "fused"));
}

TEST_F(Tools, ReplayIsAProgramOfItsOwn) {
  ASSERT_TRUE(write_replay(replay_of_two(), dir_ / "r"));
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {replay_program(""), "__replay"});
    return *run_process({.argv = arguments, .environment = {}});
  };
  const ProcessResult good = run({dir_ / "r", "--repeat", "2", "--gpu", "1"});
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_EQ(good.out.find("fill "), 0u) << good.out;
  EXPECT_EQ(run({dir_ / "absent"}).exit, 2);
  EXPECT_EQ(run({}).exit, 2);
  EXPECT_EQ(run({dir_ / "r", "--repeat", "0"}).exit, 2);
  EXPECT_EQ(run({dir_ / "r", "--gpu", "7"}).exit, 2);
  EXPECT_EQ(run({dir_ / "r", "--what"}).exit, 2);
  setenv("ROOFGEN_LIBCUDA", "/no/such/libcuda.so.1", 1);
  EXPECT_EQ(run({dir_ / "r"}).exit, 3);
}

// ---- Processes -----------------------------------------------------------------------------------

TEST(Subprocess, OutputErrorsAndStatusAreKeptApart) {
  const auto run =
      run_process({.argv = {"sh", "-c", "echo out; echo \"$WORD\" >&2; exit 7"}, .environment = {{"WORD", "err"}}});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->out, "out\n");
  EXPECT_EQ(run->err, "err\n");
  EXPECT_EQ(run->exit, 7);
  EXPECT_EQ(run_process({.argv = {"sh", "-c", "kill -9 $$"}, .environment = {}})->signal, 9);
  EXPECT_FALSE(run_process({.argv = {"/no/such/program"}, .environment = {}}));
}

TEST(Subprocess, ProgramThatClosesItsOutputIsWaitedFor) {
  EXPECT_EQ(run_process({.argv = {"sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 5"}, .environment = {}})->exit, 5);
}

TEST(Subprocess, TimeOutTakesTheWholeGroup) {
  const TempDir dir;
  // The grandchild keeps the pipes open and would write the file half a minute later.
  const auto run = run_process({.argv = {"sh", "-c", "(sleep 30; touch '" + (dir / "late") + "') & echo $! ; wait"},
                                .environment = {},
                                .timeout_s = 0.3});
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->timed_out);
  const pid_t grandchild = std::atoi(run->out.c_str());
  ASSERT_GT(grandchild, 0);
  EXPECT_TRUE(testing::eventually([&] {
    const std::string state = read_text("/proc/" + std::to_string(grandchild) + "/stat");
    return state.empty() || state.find(") Z") != std::string::npos;
  }));
}

TEST(Subprocess, FloodIsStopped) {
  const auto run =
      run_process({.argv = {"sh", "-c", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"},
                   .environment = {},
                   .most_output = 1 << 16});
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->flooded);
  EXPECT_EQ(run->out.size(), size_t{1} << 16);
}

// ---- ncu's output --------------------------------------------------------------------------------

constexpr const char* kHead =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid "
    "Size\",\"Device\",\"CC\"";

/// A page of `ncu --csv --page raw --print-units base` with output of ncu and of the program around it.
std::string page(const std::string& kernel = "fill") {
  return "==PROF== Connected to process 4711 (/opt/roofgen/bin/roofgen)\n"
         "==PROF== Profiling \"" +
         kernel +
         "\" - 0: 0%....50%....100% - 9 passes\n"
         "==PROF== Profiling \"" +
         kernel +
         "\" - 1: 0%....50%....100% - 9 passes\n"
         "fill 12.000 us\n"
         "==PROF== Disconnected from process 4711\n" +
         kHead +
         ",\"dram__bytes_read.sum\",\"dram__bytes_write.sum\",\"gpu__time_duration.sum\",\"l1tex__t_bytes.sum\","
         "\"launch__registers_per_thread\",\"lts__t_bytes.sum\","
         "\"lts__t_sectors_srcunit_tex.sum\",\"sm__cycles_elapsed.max\",\"sm__ops_path_tensor_src_bf16_dst_fp32.sum\","
         "\"sm__warps_active.avg.pct_of_peak_sustained_active\","
         "\"smsp__inst_executed_op_local_ld.sum\",\"smsp__inst_executed_op_local_st.sum\",\"smsp__sass_thread_inst_"
         "executed_op_fadd_pred_on.sum\","
         "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\",\"smsp__sass_thread_inst_executed_op_fmul_pred_on."
         "sum\"\n"
         "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"byte\",\"byte\",\"ns\",\"byte\",\"register/"
         "thread\",\"byte\",\"sector\",\"cycle\",\"\",\"%\",\"inst\",\"inst\",\"inst\",\"inst\",\"inst\"\n"
         "\"0\",\"4711\",\"roofgen\",\"127.0.0.1\",\"" +
         kernel +
         "\",\"1\",\"7\",\"(128, 1, 1)\",\"(4, 2, 1)\",\"0\",\"9.0\","
         "\"2,097,152\",\"1,048,576\",\"24,320\",\"9,437,184\",\"168\",\"5,242,880\",\"131,072\",\"45,000\",\"1,073,"
         "741,824\",\"24.50\",\"0\",\"0\",\"1,000\",\"3,000\",\"500\"\n"
         "\"1\",\"4711\",\"roofgen\",\"127.0.0.1\",\"" +
         kernel +
         "\",\"1\",\"7\",\"(128, 1, 1)\",\"(4, 2, 1)\",\"0\",\"9.0\","
         "\"4096\",\"n/"
         "a\",\"3,008\",\"64\",\"168\",\"128\",\"4\",\"5,000\",\"536,870,912\",\"12.25\",\"8\",\"4\",\"0\",\"0\","
         "\"0\"\n";
}

TEST(CounterTable, SeveralKernelsWithUnitsAndThousands) {
  const auto k = parse_counters(page(), "sm_90", DType::kBf16);
  ASSERT_TRUE(k) << to_string(k.error());
  ASSERT_EQ(k->size(), 2u);
  const CountedWork& a = k->front();
  EXPECT_EQ(a.entry, "fill");
  EXPECT_EQ(a.dram_read_bytes, 2097152.0);
  EXPECT_EQ(a.dram_bytes(), 3145728.0);
  EXPECT_EQ(a.time_ns, 24320.0);
  EXPECT_EQ(a.l2_bytes, 5242880.0);
  EXPECT_EQ(a.l2_request_bytes, 32 * 131072.0);
  EXPECT_EQ(a.tensor_flops, 1073741824.0);
  EXPECT_EQ(a.fp32_flops, 1000 + 500 + 2 * 3000.0);
  EXPECT_EQ(a.registers, 168.0);
  EXPECT_EQ(a.warps_active_pct, 24.5);
  EXPECT_EQ(a.spill_instructions, 0.0);
  EXPECT_NEAR(*a.arithmetic_intensity(), 341.33, 0.01);
  const CountedWork& b = k->back();
  EXPECT_FALSE(b.dram_write_bytes);
  EXPECT_FALSE(b.dram_bytes());
  EXPECT_FALSE(b.arithmetic_intensity());
  EXPECT_EQ(b.spill_instructions, 12.0);
}

TEST(CounterTable, UnitsOfOtherVersions) {
  EXPECT_EQ(parse_counter("1.5", "usecond"), 1500.0);
  EXPECT_EQ(parse_counter("4.0e-05", "second"), 4e4);
  EXPECT_EQ(parse_counter("10.24", "Mbyte"), 10.24e6);
  EXPECT_EQ(parse_counter("12", "furlong"), std::nullopt);
}

TEST(CounterTable, OnlyNumbersAreNumbers) {
  EXPECT_EQ(parse_counter("1,234,567.25", "byte"), 1234567.25);
  EXPECT_EQ(parse_counter("999", "byte"), 999.0);
  EXPECT_EQ(parse_counter("12,345", "byte"), 12345.0);
  for (const char* text : {"", "n/a", "nan", "inf", "-1", "1,23", "1,2345", "1234,567", ",123", "27.595.520", "65,77",
                           "1.2,345", "0x10", "1 000", "5 (!)"})
    EXPECT_EQ(parse_counter(text, "byte"), std::nullopt) << text;
}

TEST(CounterTable, GarbageIsAnErrorAndNeverZero) {
  const std::string head = kHead;
  for (const std::string& text : {std::string(), std::string("==ERROR== something\n"), std::string("\"ID\",\"x\n"),
                                  head + "\n", head + "\n\"\",\"\"\n", std::string("\"ID\",\"Metric\"\n\"0\",\"1\"\n"),
                                  head + "\n\"0\",\"1\"\n", std::string("\"ID\",\xff\xfe\n\"0\",\"1\"\n")})
    EXPECT_FALSE(parse_counters(text, "sm_90", DType::kBf16)) << text;
  EXPECT_FALSE(parse_counters("\"ID\",\"Kernel Name\"\n" + std::string(size_t{8} << 20, '"'), "sm_90", DType::kBf16));
}

TEST(CounterTable, TensorInstructionsStandInOnSm80) {
  const std::string text =
      "\"ID\",\"Kernel Name\",\"sm__inst_executed_pipe_tensor.sum\"\n\"\",\"\",\"inst\"\n\"0\",\"k\",\"1,000\"\n";
  const auto a100 = parse_counters(text, "sm_80", DType::kFp16);
  ASSERT_TRUE(a100);
  EXPECT_EQ(a100->front().tensor_flops, 4096e3);
  EXPECT_TRUE(a100->front().tensor_flops_from_instructions);
  // A warpgroup instruction is not an m16n8k16, so no FLOP count is derived.
  EXPECT_FALSE(parse_counters(text, "sm_90", DType::kFp16)->front().tensor_flops);
  EXPECT_FALSE(parse_counters(text, "sm_80", DType::kFp32)->front().tensor_flops);
}

TEST(CounterMetrics, OnlyKnownOnesAreAskedFor) {
  const auto all = counter_metrics("sm_90", DType::kBf16, {});
  EXPECT_NE(std::find(all.begin(), all.end(), "dram__bytes_op_read.sum"), all.end());
  const auto known = parse_metric_names(
      "Device NVIDIA H200 (GH100)\n-------------- ----\nMetric Name    Metric Type    Metric Description\n"
      "dram__bytes_read                Counter     # of bytes read from DRAM\n"
      "dram__bytes_write               Counter     # of bytes written\n"
      "gpu__time_duration              Counter     incremental duration in nanoseconds\n");
  EXPECT_EQ(known, (std::vector<std::string>{"dram__bytes_read", "dram__bytes_write", "gpu__time_duration"}));
  EXPECT_EQ(counter_metrics("sm_90", DType::kBf16, known),
            (std::vector<std::string>{"gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
                                      "launch__registers_per_thread"}));
}

// ---- Runs of a stand-in --------------------------------------------------------------------------

class Ncu : public Tools {
 protected:
  /// The stand-in's script for profiling; the file "arguments" receives its arguments.
  CounterRequest request(const std::string& body, const std::string& query = "exit 1") {
    CounterRequest r;
    r.replay = replay_of_two();
    r.timeout_s = 20;
    r.ncu = script(dir_ / "ncu",
                   "case \"$1\" in --version) echo 'NVIDIA (R) Nsight Compute Command Line Profiler'; echo 'Version "
                   "2025.3.1.0 (build 1)'; exit 0;; "
                   "--query-metrics) " +
                       query +
                       ";; esac\n"
                       "echo \"$@\" >> '" +
                       (dir_ / "arguments") + "'\n" + body);
    return r;
  }
  std::string prints(const std::string& text) {
    write_text(dir_ / "page", text);
    return "cat '" + (dir_ / "page") + "'\n";
  }
  /// The program follows the options: runs it, like ncu.
  static constexpr const char* kRunTarget =
      "while [ \"${1#--}\" != \"$1\" ]; do case \"$1\" in --csv) shift;; *) shift 2;; esac; done\n\"$@\" || { echo "
      "\"==ERROR== The application returned an error code ($?).\"; exit 1; }\n";
  Error failure(const std::string& body) {
    const auto result = count_on_gpu(request(body));
    EXPECT_FALSE(result) << body;
    return result ? Error{} : result.error();
  }
};

TEST_F(Ncu, CountsAndCompares) {
  CounterRequest r = request(kRunTarget + prints(page()));
  ExpectedWork same;
  same.stage = "qk";
  same.work.mma_flops = 1073741824;
  same.work.dram_bytes = 3145728 * 1.2;
  same.work.l2_bytes = 32 * 131072 * 0.99;
  same.registers = 168;
  ExpectedWork wrong = same;
  wrong.stage = "pv";
  wrong.work.mma_flops = 536870912 - 4096;
  wrong.registers = 166;
  r.expected = {same, wrong};
  r.required = RequiredWork{1.5e9, 0, 1};
  const auto report = count_on_gpu(r);
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_EQ(report->version, "Version 2025.3.1.0 (build 1)");
  ASSERT_EQ(report->kernels.size(), 2u);
  EXPECT_EQ(report->kernels[1].stage, "pv");
  std::map<std::string, const CountedDifference*> by;
  for (const CountedDifference& d : report->differences) by[d.stage + " " + d.quantity] = &d;
  EXPECT_FALSE(by.at("qk tensor FLOPs")->flagged);
  EXPECT_TRUE(by.at("qk DRAM bytes")->flagged);
  EXPECT_NE(by.at("qk DRAM bytes")->reason.find("L2"), std::string::npos);
  EXPECT_FALSE(by.at("qk L2 request bytes")->flagged);
  EXPECT_TRUE(by.at("pv tensor FLOPs")->flagged) << "FLOPs must be equal";
  EXPECT_TRUE(by.at("pv registers")->flagged);
  EXPECT_EQ(by.count("pv DRAM bytes"), 0u) << "written bytes were not counted";
  EXPECT_TRUE(by.at("total tensor FLOPs")->flagged);
  EXPECT_EQ(by.count("total DRAM bytes"), 0u);

  const std::string arguments = read_text(dir_ / "arguments");
  for (const char* part : {"--csv --page raw --print-units base --metrics ", "--clock-control none --cache-control all",
                           "--kernel-name regex:^(fill)$", "--launch-count 2", "__replay "})
    EXPECT_NE(arguments.find(part), std::string::npos) << arguments;
  const std::string text = counters_text(*report);
  EXPECT_NE(text.find("2.10 MB"), std::string::npos) << text;
  EXPECT_NE(text.find("not measurements"), std::string::npos);
  const auto json = counters_json(*report);
  EXPECT_EQ(json["schema"], "roofgen.counters.1");
  EXPECT_EQ(json["kernels"][0]["dram_read_bytes"], 2097152);
  EXPECT_TRUE(json["kernels"][1]["dram_write_bytes"].is_null());
  EXPECT_EQ(json["differences"].size(), report->differences.size());
}

TEST_F(Ncu, NoFolderIsLeftBehind) {
  setenv("TMPDIR", dir_.path().c_str(), 1);
  EXPECT_TRUE(count_on_gpu(request(kRunTarget + prints(page()))));
  unsetenv("TMPDIR");
  EXPECT_TRUE(testing::find_files(dir_.path(), "replay.json").empty());
}

TEST_F(Ncu, UnknownMetricCostsOnlyItself) {
  const std::string body =
      "case \"$*\" in *dram__bytes_op_read*|*sm__ops_path_tensor_src_bf16*) "
      "echo '==ERROR== Failed to find metric regex:^dram__bytes_op_read(.*)$'; "
      "echo '==ERROR== Failed to find metric sm__ops_path_tensor_src_bf16_dst_fp32.sum'; exit 1;; esac\n";
  const auto report = count_on_gpu(request(body + prints(page())));
  ASSERT_TRUE(report) << to_string(report.error());
  const std::string last = report->command;
  EXPECT_EQ(last.find("dram__bytes_op_read"), std::string::npos);
  EXPECT_NE(last.find("dram__bytes_read.sum"), std::string::npos);
  EXPECT_NE(std::find(report->notes.begin(), report->notes.end(), "dram__bytes_op_read.sum is not known to this ncu"),
            report->notes.end());
}

TEST_F(Ncu, QueriedMetricsAreUsed) {
  const auto report = count_on_gpu(
      request(prints(page()), "echo 'gpu__time_duration Counter ns'; echo 'dram__bytes_read Counter byte'; exit 0"));
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_NE(report->command.find("--metrics gpu__time_duration.sum,dram__bytes_read.sum,launch__registers_per_thread "),
            std::string::npos)
      << report->command;
}

TEST_F(Ncu, MissingCountersAreNotedNotZero) {
  const std::string small =
      "\"ID\",\"Kernel "
      "Name\",\"gpu__time_duration.sum\"\n\"\",\"\",\"ns\"\n\"0\",\"fill\",\"5\"\n\"1\",\"fill\",\"6\"\n";
  const auto report = count_on_gpu(request(prints(small)));
  ASSERT_TRUE(report) << to_string(report.error());
  EXPECT_FALSE(report->kernels[0].tensor_flops);
  EXPECT_EQ(report->notes.front(), "qk: no counter of tensor operations on sm_90");
}

TEST_F(Ncu, MissingPermissionSuggestsTheFix) {
  const Error e = failure(
      "echo '==PROF== Connected to process 42 (roofgen)'; echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have "
      "permission to access NVIDIA GPU Performance Counters on the target device 0.'; "
      "echo '==PROF== Disconnected from process 42'; echo '==WARNING== No kernels were profiled.'; exit 1");
  EXPECT_EQ(e.exit, Exit::kUnavailable);
  EXPECT_NE(e.message.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
  EXPECT_EQ(e.message.find('\n'), std::string::npos);
}

TEST_F(Ncu, EachFaultIsOneLine) {
  const Error library = failure("echo '==ERROR== Failed to profile \"fill\": LibraryNotLoaded' >&2; exit 1");
  EXPECT_EQ(library.exit, Exit::kUnavailable);
  EXPECT_NE(library.message.find("LibraryNotLoaded"), std::string::npos);
  const Error driver = failure("echo '==ERROR== Cuda driver is not compatible with Nsight Compute.'; exit 1");
  EXPECT_EQ(driver.exit, Exit::kUnavailable);
  EXPECT_NE(driver.message.find("does not work with the installed CUDA driver"), std::string::npos);
  EXPECT_EQ(failure("echo '==ERROR== Unknown Error on device 0.'; exit 1").message, "ncu: Unknown Error on device 0.");
  EXPECT_EQ(failure("echo '==WARNING== No kernels were profiled.'; exit 0").message, "ncu saw none of the kernels");
  EXPECT_EQ(failure("exit 9").message, "ncu ended with status 9");
  EXPECT_EQ(failure("kill -11 $$").message, "ncu was ended by signal 11");
  EXPECT_EQ(failure("echo hello").message, "ncu printed no table");
  EXPECT_NE(failure("yes 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' | head -c 20000000")
                .message.find("too much"),
            std::string::npos);
}

TEST_F(Ncu, ReportsWhyTheProgramFailed) {
  setenv("ROOFGEN_LIBCUDA", "/no/such/libcuda.so.1", 1);
  const Error e = failure(kRunTarget);
  EXPECT_NE(e.message.find("the kernels did not run under ncu: roofgen: error: no CUDA driver"), std::string::npos)
      << e.message;
}

TEST_F(Ncu, HangIsEnded) {
  CounterRequest r = request("sleep 60");
  r.timeout_s = 0.3;
  const auto result = count_on_gpu(r);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "ncu did not end within 0.3 s");
}

TEST_F(Ncu, OtherKernelsThanLaunchedAreRefused) {
  EXPECT_NE(failure(prints(page("other"))).message.find("counted kernel \"other\" where fill was launched"),
            std::string::npos);
  CounterRequest r = request(prints(page()));
  r.replay.kernels.pop_back();
  const auto more = count_on_gpu(r);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "ncu counted 2 kernels; the variant has 1");
}

TEST_F(Ncu, AbsentIsUnavailable) {
  CounterRequest r;
  r.replay = replay_of_two();
  r.ncu = dir_ / "no-such-ncu";
  const auto result = count_on_gpu(r);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().exit, Exit::kUnavailable);
  setenv("ROOFGEN_NCU", script(dir_ / "mine", "exit 0").c_str(), 1);
  EXPECT_EQ(*find_ncu(""), dir_ / "mine");
  unsetenv("ROOFGEN_NCU");
}

TEST(CounterComparison, ThresholdIsFivePercentForBytes) {
  CountedWork c;
  c.dram_read_bytes = 104.9;
  c.dram_write_bytes = 0;
  ExpectedWork e;
  e.work.dram_bytes = 100;
  EXPECT_FALSE(compare_counted({c}, {e}, {}).at(0).flagged);
  c.dram_read_bytes = 105.1;
  EXPECT_TRUE(compare_counted({c}, {e}, {}).at(0).flagged);
  c.dram_read_bytes = 94.9;
  const CountedDifference d = compare_counted({c}, {e}, {}).at(0);
  EXPECT_TRUE(d.flagged);
  EXPECT_NE(d.reason.find("not written to DRAM yet"), std::string::npos);
  EXPECT_TRUE(compare_counted({c}, {}, {}).empty());
}

TEST(CounterComparison, ExtrapolatedFlopsMayDiffer) {
  CountedWork c;
  c.tensor_flops = 103;
  ExpectedWork e;
  e.work.mma_flops = 100;
  EXPECT_TRUE(compare_counted({c}, {e}, {}).at(0).flagged);
  e.exact = false;
  EXPECT_FALSE(compare_counted({c}, {e}, {}).at(0).flagged);
}

}  // namespace
}  // namespace roofgen::counters_test

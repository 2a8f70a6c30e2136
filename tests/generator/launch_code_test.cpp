// The launch code in headers of `emit` must compute the same launch as make_launch for all accepted sizes.
#include "generator/launch_code.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace roofgen::launch_code_test {
namespace {

namespace fs = std::filesystem;
using Dims = std::map<std::string, int64_t>;

struct Case {
  Problem problem;
  std::vector<Dims> others;
};

Problem problem(const std::string& op, Dims dims, std::map<std::string, bool> flags = {},
                std::map<std::string, std::string> texts = {}) {
  Problem p{op, std::move(dims), DType::kBf16, std::move(flags), {}};
  p.texts = std::move(texts);
  return p;
}

expr::Map limits() {
  return {{"smem_per_block", 232448},
          {"smem_per_sm", 233472},
          {"regs_per_sm", 65536},
          {"max_threads_per_sm", 2048},
          {"sms", 132},
          {"arch", 90}};
}

/// A number for the sizes of a tensor map, as cuTensorMapEncodeTiled of the program below computes it.
uint64_t digest(const TensorMap& map) {
  uint64_t out = map.dims.size();
  const auto add = [&](uint64_t x) { out = (out ^ x) * 0x100000001b3; };
  for (uint64_t x : map.dims) add(x);
  for (uint64_t x : map.stride_bytes) add(x);
  for (uint64_t x : map.box) add(x);
  return out;
}

/// The launch in the output format of the program below.
std::string text(const Launch& launch) {
  std::string out = fmt::format("{} {} {} {}", launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x);
  for (const Arg& a : launch.args) out += fmt::format(" {:x}", a.map ? digest(*a.map) : a.is_buffer ? 0 : a.bits);
  return out;
}

/// A C program with all headers and launches, and its expected output.
class Program {
 public:
  void add(const Case& c) {
    const Op& op = **find_op(c.problem.op);
    const Problem tuned = *op.complete(c.problem);
    const expr::Map scope = *problem_scope(op, tuned, limits());
    auto loaded = op.variants(files_, tuned);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const auto variants = expand(std::move(*loaded), scope);
    ASSERT_TRUE(variants) << variants.error().message;
    for (const Variant& v : *variants)
      for (const Stage& stage : v.stages) {
        const auto schedule = default_schedule(v, stage, scope, {});
        ASSERT_TRUE(schedule) << schedule.error().message;
        const auto checked = check_schedule(v, stage, *schedule, scope);
        if (!std::holds_alternative<Legal>(checked)) continue;
        const std::string name = fmt::format("k{}", kernels_++);
        emitted(name, op, tuned, v, stage, std::get<Legal>(checked));
        call(name, op, tuned, v, stage, *schedule, false);
        for (const Dims& dims : c.others) {
          Problem other = c.problem;
          other.dims = dims;
          call(name, op, *op.complete(other), v, stage, *schedule, true);
        }
      }
  }

  /// Runs the program: "tuned" launches must succeed, others may be rejected. `made` counts the other successful
  /// launches.
  void run(size_t& made) {
    std::string pattern = (fs::temp_directory_path() / "roofgen-launch-XXXXXX").string();
    const fs::path dir = mkdtemp(pattern.data());
    std::ofstream(dir / "program.c") << head() << headers_ << "int main(void) {\n" << calls_ << "  return 0;\n}\n";
    const std::string command = fmt::format(
        "cd '{}' && cc -std=c11 -Wall -Werror -Wno-unused-function -I. -I'{}/tests/shim/emitted' program.c -o program "
        "2>build.txt && ./program >out.txt",
        dir.string(), ROOFGEN_SOURCE_DIR);
    const int status = std::system(command.c_str());
    std::stringstream build, out;
    build << std::ifstream(dir / "build.txt").rdbuf();
    EXPECT_EQ(status, 0) << build.str();
    std::ifstream in(dir / "out.txt");
    for (const auto& [what, expected, smem, may_refuse] : expected_) {
      std::string line;
      EXPECT_TRUE(std::getline(in, line)) << what;
      if (may_refuse && line == "refused") continue;
      made += may_refuse;
      const size_t space = line.find(' ');
      ASSERT_NE(space, std::string::npos) << what;
      EXPECT_GE(std::stoul(line), smem) << what << ": a shorter row may leave some of it unused";
      EXPECT_EQ(line.substr(space + 1), expected) << what;
    }
    fs::remove_all(dir);
  }

 private:
  static std::string head() {
    return R"(#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <cuda.h>
static const int* sizes;
CUresult cuFuncSetAttribute(CUfunction f, int a, int v) { (void)f; (void)a; (void)v; return CUDA_SUCCESS; }
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, int dtype, cuuint32_t rank, void* address, const cuuint64_t* dims, const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps, int interleave, int swizzle, int promotion, int fill) {
  uint64_t digest = rank;
  (void)dtype; (void)address; (void)steps; (void)interleave; (void)swizzle; (void)promotion; (void)fill;
  for (cuuint32_t i = 0; i < rank; ++i) digest = (digest ^ dims[i]) * 0x100000001b3;
  for (cuuint32_t i = 0; i + 1 < rank; ++i) digest = (digest ^ strides[i]) * 0x100000001b3;
  for (cuuint32_t i = 0; i < rank; ++i) digest = (digest ^ box[i]) * 0x100000001b3;
  memcpy(map, &digest, sizeof digest);
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned smem, CUstream s, void** args, void** extra) {
  (void)f; (void)by; (void)bz; (void)s; (void)extra;
  printf("%u %u %u %u %u", smem, x, y, z, bx);
  for (int i = 0; sizes[i]; ++i) {
    uint64_t bits = 0;
    memcpy(&bits, args[i], (size_t)sizes[i]);
    printf(" %llx", (unsigned long long)bits);
  }
  printf("\n");
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** args, void** extra) {
  return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream, args, extra);
}
static void done(CUresult r) { if (r != CUDA_SUCCESS) printf("refused\n"); }
)";
  }

  void emitted(const std::string& name, const Op& op, const Problem& tuned, const Variant& v, const Stage& stage,
               const Legal& legal) {
    const auto launch = make_launch(stage, legal);
    ASSERT_TRUE(launch) << launch.error().message;
    const roofgen::Program program{legal.schedule, "", stage.entry, {}};
    const Binary binary;
    Variant one = v;
    EmitRequest request{name,
                        &tuned,
                        &one,
                        op.buffers(tuned),
                        *problem_scope(op, tuned, limits()),
                        {{&stage, &program, &binary, &*launch, legal.scope}},
                        "{}"};
    const auto files = emit(request);
    ASSERT_TRUE(files) << stage.name << ": " << files.error().message;
    std::string header = files->at(name + ".h");
    header.erase(header.find("#pragma once"), strlen("#pragma once"));
    headers_ += header;
    code_ = *launch_code(request, request.kernels[0]);
  }

  void call(const std::string& name, const Op& op, const Problem& p, const Variant& v, const Stage& stage,
            const Schedule& schedule, bool other) {
    const expr::Map scope = *problem_scope(op, p, limits());
    const auto checked = check_schedule(v, stage, schedule, scope, false);
    if (!std::holds_alternative<Legal>(checked)) return;
    const Legal& legal = std::get<Legal>(checked);
    const auto launch = make_launch(stage, legal);
    ASSERT_TRUE(launch) << launch.error().message;
    std::string arguments, bytes;
    for (const Arg& a : launch->args) bytes += fmt::format("{}, ", a.is_buffer ? 8 : a.bytes);
    for (const CParameter& c : code_.parameters) {
      std::string value = "0";
      for (size_t i = 0; i < code_.arguments.size(); ++i) {
        if (code_.arguments[i].value || code_.arguments[i].name != c.name || c.type == "CUdeviceptr") continue;
        float f;
        memcpy(&f, &launch->args[i].bits, 4);
        value = c.type == "float" ? fmt::format("{}f", fmt::format("{:.9e}", f))
                                  : fmt::format("{}", static_cast<int64_t>(launch->args[i].bits));
      }
      if (const auto at = scope.find(c.name); at != scope.end() && value == "0" && at->second.as<int64_t>())
        value = at->second.str();
      arguments += ", " + value;
    }
    calls_ += fmt::format("  {{ static const int s[] = {{{}0}}; sizes = s; done({}_launch(0, 0{})); }}\n", bytes,
                          code_.name, arguments);
    expected_.emplace_back(fmt::format("{} for {}", to_string(schedule), to_string(p)), text(*launch),
                           launch->smem_bytes, other);
  }

  DataFiles files_;
  std::string headers_, calls_;
  LaunchCode code_;  // of the last kernel
  std::vector<std::tuple<std::string, std::string, uint32_t, bool>> expected_;
  int kernels_ = 0;
};

TEST(LaunchCode, IsThatOfMakeLaunchAtEverySizeItTakes) {
  const std::vector<Case> cases = {
      {problem("gemm", {{"M", 4096}, {"N", 4096}, {"K", 4096}}, {}, {{"epilogue", "gelu(acc + bias[n]) * scale"}}),
       {{{"M", 128}, {"N", 256}, {"K", 64}},
        {{"M", 1000}, {"N", 4096}, {"K", 4096}},
        {{"M", 8192}, {"N", 1024}, {"K", 96}},
        {{"M", 128}, {"N", 128}, {"K", 4097}}}},
      {problem("gemm", {{"M", 127}, {"N", 65}, {"K", 2033}}, {},
               {{"a_layout", "col"}, {"epilogue", "acc + row_bias[m]"}}),
       {{{"M", 1}, {"N", 1}, {"K", 300}},
        {{"M", 513}, {"N", 129}, {"K", 3000}},
        {{"M", 100000}, {"N", 50001}, {"K", 1024}}}},
      {problem("gemm", {{"M", 256}, {"N", 512}, {"K", 128}}, {}, {{"gated", "silu"}}),
       {{{"M", 7}, {"N", 96}, {"K", 64}}, {{"M", 512}, {"N", 1024}, {"K", 256}}}},
      {problem("gemm", {{"M", 256}, {"N", 200}, {"K", 128}}, {}, {{"epilogue", "acc / amax(acc)"}}),
       {{{"M", 7}, {"N", 256}, {"K", 64}}, {{"M", 7}, {"N", 264}, {"K", 64}}}},
      {problem("rmsnorm", {{"rows", 8192}, {"cols", 4096}}, {{"residual", true}}, {{"quant", "fp8"}}),
       {{{"rows", 1}, {"cols", 4096}},
        {{"rows", 100}, {"cols", 2048}},
        {{"rows", 100}, {"cols", 4097}},
        {{"rows", 3}, {"cols", 1 << 20}}}},
      {problem("layernorm", {{"rows", 33}, {"cols", 4097}}, {{"bias", true}}),
       {{{"rows", 1}, {"cols", 1}}, {{"rows", 7}, {"cols", 4000}}, {{"rows", 7}, {"cols", 5000}}}},
      {problem("softmax", {{"rows", 4}, {"cols", 100003}}),
       {{{"rows", 4}, {"cols", 8193}}, {{"rows", 1}, {"cols", 99999}}, {{"rows", 3}, {"cols", 1000003}}}},
      {problem("map", {{"rows", 100}, {"cols", 1024}}, {}, {{"expr", "gelu(x) * scale"}}),
       {{{"rows", 1}, {"cols", 1024}}, {{"rows", 2}, {"cols", 3072}}, {{"rows", 2}, {"cols", 77}}}},
      {problem("attention", {{"L", 200}, {"d", 64}, {"heads", 6}, {"kv_heads", 2}}),
       {{{"L", 999}, {"d", 64}, {"heads", 4}, {"kv_heads", 4}}, {{"L", 64}, {"d", 64}, {"heads", 6}, {"kv_heads", 3}}}},
      {problem("attention", {{"L", 4}, {"d", 64}, {"heads", 8}, {"kv_heads", 2}, {"page", 16}}, {},
               {{"kv_lengths", "100,300,33"}, {"kv_layout", "hnd"}}),
       {{{"L", 1}, {"d", 64}, {"heads", 6}, {"kv_heads", 3}, {"kv_len", 777}, {"page", 16}}}},
  };
  Program program;
  for (const Case& c : cases) program.add(c);
  size_t made = 0;
  program.run(made);
  EXPECT_GT(made, 20u) << "a header that refuses everything would pass, and be of no use";
}

/// The kernels of unfused attention: whether each is launched as a dependent one, and its code has a wait and a
/// trigger.
std::string dependent_launches(expr::Map device, const std::map<std::string, ParamValue>& pins = {}) {
  const DataFiles files;
  const Op& op = **find_op("attention");
  const Problem tuned = *op.complete(problem("attention", {{"L", 256}, {"d", 64}}));
  const expr::Map scope = *problem_scope(op, tuned, device);
  const std::vector<Variant> variants = *expand(*op.variants(files, tuned), scope);
  const Variant& v =
      *std::find_if(variants.begin(), variants.end(), [](const Variant& each) { return each.name == "unfused"; });
  std::string out;
  for (const Stage& stage : v.stages) {
    const auto checked = check_schedule(v, stage, *default_schedule(v, stage, scope, pins), scope, false);
    if (const Rejected* rejected = std::get_if<Rejected>(&checked)) return out + rejected->reason;
    const Legal& legal = std::get<Legal>(checked);
    const std::string source = generate(files, stage, legal)->source;
    out += fmt::format("{}{}{}{} ", stage.name, make_launch(stage, legal)->overlap ? " dependent" : "",
                       source.find("griddepcontrol.wait") != std::string::npos ? " waits" : "",
                       source.find("griddepcontrol.launch_dependents") != std::string::npos ? " triggers" : "");
  }
  return out;
}

TEST(DependentLaunch, KernelsBehindTheFirstMayBe) {
  expr::Map device = limits();
  EXPECT_EQ(dependent_launches(device), "scores triggers softmax triggers pv ");
  EXPECT_EQ(dependent_launches(device, {{"dependent", true}}),
            "scores triggers softmax dependent waits triggers pv dependent waits ");
  device["dependent_launch"] = true;
  EXPECT_EQ(dependent_launches(device), "scores triggers softmax dependent waits triggers pv dependent waits ");
  EXPECT_EQ(dependent_launches(device, {{"dependent", false}}), "scores triggers softmax triggers pv ");
  device = limits();
  device["arch"] = 80;
  EXPECT_EQ(dependent_launches(device), "scores softmax pv ");
  EXPECT_EQ(dependent_launches(device, {{"dependent", true}}),
            "scores device.arch >= 90 (80 < 90): launches may overlap from sm_90 on");
}

/// The variant of tests/support/hopper: tensor maps, a cluster, overlap, a struct.
struct ClusterNorm {
  DataFiles files{{ROOFGEN_SOURCE_DIR "/tests/support/hopper"}};
  const Op& op = **find_op("rmsnorm");
  Problem tuned = *op.complete(problem("rmsnorm", {{"rows", 20}, {"cols", 512}}));
  Variant variant;
  ClusterNorm() {
    auto variants = *op.variants(files, tuned);
    for (Variant& v : variants)
      if (v.name == "cluster") variant = std::move(v);
  }
  std::variant<Legal, Rejected, Error> check(const std::map<std::string, ParamValue>& pins, expr::Map device) const {
    const expr::Map scope = *problem_scope(op, tuned, device);
    return check_schedule(variant, variant.stages[0], *default_schedule(variant, variant.stages[0], scope, pins),
                          scope);
  }
};

TEST(ClusterLaunch, HasMapsAttributesAndTheBytesOfTheStruct) {
  const ClusterNorm norm;
  const auto checked = norm.check({}, limits());
  ASSERT_TRUE(std::holds_alternative<Legal>(checked));
  const auto launch = make_launch(norm.variant.stages[0], std::get<Legal>(checked));
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->grid.x, 6u);
  EXPECT_EQ(launch->cluster.x, 2u);
  EXPECT_TRUE(launch->overlap);
  ASSERT_EQ(launch->args.size(), 4u);
  const Arg &x = launch->args[0], &sizes = launch->args[3];
  EXPECT_EQ(x.name, "x");
  ASSERT_TRUE(x.map);
  EXPECT_EQ(x.map->dims, (std::vector<uint64_t>{512, 20}));
  EXPECT_EQ(x.map->stride_bytes, (std::vector<uint64_t>{1024}));
  EXPECT_EQ(x.map->box, (std::vector<uint32_t>{64, 8}));
  EXPECT_EQ(x.map->swizzle_bytes, 128);
  EXPECT_EQ(x.map->l2_promotion_bytes, 128);
  const struct {
    int32_t rows;
    int64_t elements;
    float inv_cols, eps;
  } expected{20, 20 * 512, 1.0f / 512, 1e-6f};
  ASSERT_EQ(sizes.data.size(), sizeof expected);
  int64_t elements = 0;
  memcpy(&elements, sizes.data.data() + 8, sizeof elements);
  EXPECT_EQ(elements, expected.elements);
  EXPECT_EQ(memcmp(sizes.data.data() + 16, &expected.inv_cols, 8), 0);
}

TEST(ClusterLaunch, BrokenRulesRejectTheSchedule) {
  const ClusterNorm norm;
  const auto reason = [&](const std::map<std::string, ParamValue>& pins, expr::Map device) {
    const auto checked = norm.check(pins, std::move(device));
    const auto* rejected = std::get_if<Rejected>(&checked);
    return rejected ? rejected->stage + ": " + rejected->reason : "";
  };
  EXPECT_EQ(reason({{"box", int64_t{512}}, {"ctas", int64_t{1}}}, limits()),
            "constraint: tensor map of x: side 0 of the box is 512; 1 to 256 are possible");
  expr::Map old = limits();
  old["arch"] = 80;
  EXPECT_EQ(reason({}, old), "constraint: device.arch >= 90 (80 < 90): devices have tensor maps from sm_90 on");
}

}  // namespace
}  // namespace roofgen::launch_code_test

// The launch code of `emit`, and the library's launches, must be those of make_launch for all accepted sizes.
#include "generator/launch_code.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "tests/support/c_program.h"

namespace roofgen::launch_code_test {
namespace {

namespace fs = std::filesystem;
using Dims = std::map<std::string, int64_t>;

/// Other sizes of a problem, with the example lengths that go with them.
struct Other {
  Other(std::initializer_list<Dims::value_type> sizes, std::map<std::string, std::string> examples = {})
      : dims(sizes), texts(std::move(examples)) {}
  Dims dims;
  std::map<std::string, std::string> texts;
};
struct Case {
  Problem problem;
  std::vector<Other> others;
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

/// A C program with a bundle of each kernel, and its expected output.
class Program {
 public:
  Program() {
    std::string pattern = (fs::temp_directory_path() / "roofgen-launch-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
  }
  ~Program() { fs::remove_all(dir_); }
  Program(const Program&) = delete;

  void add(const Case& c) {
    const Op& op = **find_op(c.problem.op);
    const Problem tuned = *op.complete(c.problem);
    const auto at = variants_of(files_, op, limits(), tuned);
    ASSERT_TRUE(at) << at.error().message;
    const expr::Map& scope = at->scope;
    for (const Variant& v : at->variants)
      for (const Stage& stage : v.stages) {
        const auto schedule = default_schedule(v, stage, scope, {});
        ASSERT_TRUE(schedule) << schedule.error().message;
        const auto checked = check_schedule(v, stage, *schedule, scope);
        if (!std::holds_alternative<Legal>(checked)) continue;
        const std::string name = fmt::format("k{}", kernels_++);
        emitted(name, op, tuned, v, stage, std::get<Legal>(checked));
        call(name, op, tuned, v, stage, *schedule, false);
        for (const auto& [dims, texts] : c.others) {
          Problem other = c.problem;
          other.dims = dims;
          for (const auto& [key, text] : texts) other.texts[key] = text;
          call(name, op, *op.complete(other), v, stage, *schedule, true);
        }
      }
  }

  /// Runs the program: "tuned" launches must succeed, others may be rejected. `made` counts the other successful
  /// launches, `emptied` those of nothing.
  void run(size_t& made, int& emptied) {
    emptied = emptied_;
    std::ofstream(dir_ / "program.c") << includes_ << head() << "int main(void) {\n" << calls_ << "  return 0;\n}\n";
    test::build_and_run_c(dir_, "*.c");
    std::ifstream in(dir_ / "out.txt");
    for (const auto& [what, expected, in_process, smem, may_refuse] : expected_) {
      std::string line;
      EXPECT_TRUE(std::getline(in, line)) << what;
      if (in_process.empty()) {
        EXPECT_EQ(line, expected) << what;
        continue;
      }
      EXPECT_EQ(in_process.substr(0, 7), line.starts_with("refused") ? "refused" : expected.substr(0, 7))
          << what << ": " << line << "; in this process: " << in_process;
      if (may_refuse && line.starts_with("refused")) continue;
      EXPECT_EQ(in_process, expected) << what;
      made += may_refuse;
      const size_t space = line.find(' ');
      ASSERT_TRUE(space != std::string::npos && !line.starts_with("refused")) << what << ": " << line;
      EXPECT_GE(std::stoul(line), smem) << what << ": a shorter row may leave some of it unused";
      EXPECT_EQ(line.substr(space + 1), expected) << what;
    }
  }

 private:
  /// The driver's functions, in the shape in which the bundles declare them.
  static std::string head() {
    return R"(#include <stdio.h>
#include <string.h>
static const int* sizes;  /* bytes of the arguments; a pointer is negative */
typedef struct { uint64_t opaque[16]; } Map;
typedef struct { unsigned x, y, z, bx, by, bz, smem; CUstream stream; void* attrs; unsigned count; } Config;
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuInit(unsigned flags) { (void)flags; return 0; }
int cuCtxGetCurrent(CUcontext* c) { *c = (CUcontext)8; return 0; }
int cuCtxPushCurrent_v2(CUcontext c) { (void)c; return 0; }
int cuCtxPopCurrent_v2(CUcontext* c) { (void)c; return 0; }
int cuCtxGetDevice(int* d) { *d = 0; return 0; }
int cuDeviceGetAttribute(int* out, int which, int d) { (void)d; *out = which == 75 ? 9 : 0; return 0; }
int cuModuleLoadDataEx(void** m, const void* i, unsigned n, void* o, void** v) { (void)i, (void)n, (void)o, (void)v; *m = (void*)8; return 0; }
int cuModuleUnload(void* m) { (void)m; return 0; }
int cuModuleGetFunction(void** f, void* m, const char* n) { (void)m, (void)n; *f = (void*)8; return 0; }
int cuFuncSetAttribute(void* f, int a, int v) { (void)f, (void)a, (void)v; return 0; }
int cuMemsetD8Async(uint64_t p, unsigned char v, size_t n, CUstream s) { (void)p, (void)v, (void)n, (void)s; return 0; }
int cuTensorMapEncodeTiled(Map* map, int dtype, uint32_t rank, void* address, const uint64_t* dims, const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int promotion, int fill) {
  uint64_t digest = rank;
  (void)dtype, (void)address, (void)steps, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
  for (uint32_t i = 0; i < rank; ++i) digest = (digest ^ dims[i]) * 0x100000001b3;
  for (uint32_t i = 0; i + 1 < rank; ++i) digest = (digest ^ strides[i]) * 0x100000001b3;
  for (uint32_t i = 0; i < rank; ++i) digest = (digest ^ box[i]) * 0x100000001b3;
  map->opaque[0] = digest;
  return 0;
}
int cuLaunchKernelEx(const Config* c, void* f, void** args, void** extra) {
  (void)f, (void)extra;
  printf("%u %u %u %u %u", c->smem, c->x, c->y, c->z, c->bx);
  for (int i = 0; sizes[i]; ++i) {
    uint64_t bits = 0;
    if (sizes[i] > 0) memcpy(&bits, args[i], (size_t)sizes[i]);
    printf(" %llx", (unsigned long long)bits);
  }
  printf("\n");
  return 0;
}
)";
  }

  void emitted(const std::string& name, const Op& op, const Problem& tuned, const Variant& v, const Stage& stage,
               const Legal& legal) {
    const auto launch = make_launch(stage, legal);
    ASSERT_TRUE(launch) << launch.error().message;
    const roofgen::Program program{legal.schedule, "", stage.entry, {}};
    const Binary binary;
    const expr::Map scope = *problem_scope(op, tuned, limits());
    EmitRequest request{
        name,
        &files_,
        &tuned,
        op.buffers(tuned),
        {{"sm_90", &v, *temporaries(v, scope), scope, {{&stage, &program, &binary, &*launch, legal.scope}}, "{}"}},
        {{tuned.dims, 0}},
        "none",
        ""};
    request.self_test_cases = false;  // one kernel of several computes no whole problem
    const auto files = emit(request);
    ASSERT_TRUE(files) << stage.name << ": " << files.error().message;
    std::ofstream(dir_ / (name + ".h")) << files->at(name + ".h");
    std::ofstream(dir_ / (name + "_images.h")) << files->at(name + "_images.h");
    std::ofstream(dir_ / (name + ".c")) << "#define K" << name.substr(1) << "_LINK_CUDA\n" << files->at(name + ".c");
    includes_ += "#include \"" + name + ".h\"\n";
    parameters_ = parse_json(files->at("manifest.json"))["parameters"];
    interface_ = *Interface::load(files_, tuned, scope, carried_names(request));
    conditions_ = launch_code(*interface_, request, request.pipelines[0], request.pipelines[0].kernels[0])->conditions;
    for (const Buffer& b : request.buffers)
      if (interface_->has_tensor(b.name)) {
        EXPECT_TRUE(interface_->layout(b));
      }
    for (const Variant::Temporary& t : v.temporaries) EXPECT_TRUE(bytes_code(*interface_, request.pipelines[0], t));
    EXPECT_TRUE(interface_->rules());
    numbers_ = interface_->parameters(request.buffers);
    tuned_ = legal;
    compiled_ = *launch;
  }

  /// The launch in this process, whose strides follow from the sizes; or why there is none.
  std::string in_process(const Problem& p, const Variant& v, const Stage& stage, const expr::Map& there) const {
    expr::Map given;
    for (const Parameter& parameter : numbers_) {
      if (parameter.kind == Parameter::Kind::kSize) given[parameter.key] = there.at(parameter.key);
      if (parameter.kind == Parameter::Kind::kReal) given[parameter.key] = p.reals.at(parameter.key);
    }
    const auto scope = interface_->scope_of(given);
    if (!scope) return "refused: " + scope.error().message;
    const auto launch = launch_in_call(v, stage, tuned_, compiled_, conditions_, *scope);
    return launch ? text(*launch) : "refused: " + launch.error().message;
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
    for (const Arg& a : launch->args)
      bytes += fmt::format("{}, ", a.is_buffer && !a.map ? -8 : static_cast<int>(a.bytes));
    uint64_t tensors = 0;
    for (const Json& parameter : parameters_) {
      const auto key = parameter["name"].get<std::string>(), type = parameter["type"].get<std::string>();
      arguments += ", ";
      if (type == "float")
        arguments += fmt::format("(float){:.17g}", p.reals.at(key));
      else if (type == "int64_t")
        arguments += scope.at(key).str();
      else
        arguments += fmt::format("(void*)(uintptr_t)(UINT64_C({}) << 52)", ++tensors);
    }
    calls_ += fmt::format(
        "  {{ static const int s[] = {{{0}0}}; sizes = s; {1}_t* h; int error = {1}_create(&h, 0);\n"
        "    if (!error) error = {1}_launch(h, 0{2}, (void*)(UINT64_C(1) << 62), INT64_MAX);\n"
        "    if (error) {{ printf(\"refused: %s\\n\", {1}_error_string(error)); }} {1}_destroy(h); }}\n",
        bytes, name, arguments);
    const std::string what = fmt::format("{} for {}", to_string(schedule), to_string(p));
    expected_.emplace_back(what, text(*launch), in_process(p, v, stage, scope), launch->smem_bytes, other);
    for (size_t i = 0; i < numbers_.size() && !other; ++i)
      if (numbers_[i].kind == Parameter::Kind::kSize) call_without(name, i, scope, what);
  }

  /// With null pointers and 0 of one size: there is nothing to do, or the size is refused.
  void call_without(const std::string& name, size_t size, const expr::Map& scope, const std::string& what) {
    std::string arguments, sizes;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const Parameter& p = numbers_[i];
      const bool number = p.kind == Parameter::Kind::kSize || p.kind == Parameter::Kind::kStride;
      arguments += ", " + (i == size || !number ? "0" : scope.at(p.key).str());
    }
    const std::string& key = numbers_[size].key;
    calls_ += fmt::format(
        "  {{ {0}_t* h; int error = {0}_create(&h, 0);\n    if (!error) error = {0}_launch(h, 0{1}, 0, 0);\n"
        "    puts(error ? {0}_error_string(error) : \"nothing to do\"); {0}_destroy(h); }}\n",
        name, arguments);
    const bool may = interface_->may_be_empty(key);
    const std::string text = may ? "nothing to do" : key + " is not from 1 to 2147483647";
    expected_.push_back({fmt::format("{} without {}", what, key), text, "", 0, false});
    const auto here = interface_->scope_of({{key, 0}});
    EXPECT_EQ(may, here && interface_->is_empty(*here)) << what << ": without " << key;
    emptied_ += may;
  }

  DataFiles files_;
  fs::path dir_;
  std::string includes_, calls_;
  // Of the last kernel.
  Json parameters_;
  std::optional<Interface> interface_;
  std::vector<Parameter> numbers_;
  std::vector<LaunchCode::Condition> conditions_;
  Legal tuned_;
  Launch compiled_;
  std::vector<std::tuple<std::string, std::string, std::string, uint32_t, bool>> expected_;
  int kernels_ = 0, emptied_ = 0;
};

std::vector<Case> cases() {
  return {
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
       {{{{"L", 1}, {"d", 64}, {"heads", 6}, {"kv_heads", 3}, {"kv_len", 777}, {"page", 16}}},
        {{{"L", 4}, {"d", 64}, {"heads", 8}, {"kv_heads", 2}, {"page", 16}}, {{"kv_lengths", "1,2,3,4,5000"}}}}},
      {problem("attention", {{"L", 1}, {"d", 64}, {"heads", 8}, {"kv_heads", 2}, {"kv_len", 704}}, {{"lse", true}},
               {{"kv_lengths", "100,700,33,513"}}),
       {{{{"L", 1}, {"d", 64}, {"heads", 8}, {"kv_heads", 2}, {"kv_len", 512}}, {{"kv_lengths", "7,512"}}},
        {{{"L", 1}, {"d", 64}, {"heads", 8}, {"kv_heads", 2}, {"kv_len", 1024}}, {{"kv_lengths", "0,0,1000,1,2,3"}}}}},
      {problem("attention", {{"d", 64}, {"heads", 4}}, {{"causal", true}}, {{"lengths", "100,300,33"}}),
       {{{{"d", 64}, {"heads", 4}}, {{"lengths", "64,1"}}}, {{{"d", 64}, {"heads", 4}}, {{"lengths", "1,2,3,400"}}}}},
      {problem("grouped_gemm", {{"M", 248}, {"experts", 4}, {"N", 72}, {"K", 64}}),
       {{{{"experts", 2}, {"N", 72}, {"K", 64}}, {{"sizes", "4,0"}}},
        {{{"experts", 6}, {"N", 80}, {"K", 64}}, {{"sizes", "1000,0,0,0,0,0"}}}}},
      {problem("grouped_gemm", {{"tokens", 100}, {"topk", 2}, {"experts", 4}, {"N", 64}, {"K", 64}}, {{"gather", true}},
               {{"scatter", "weighted"}}),
       {{{{"tokens", 7}, {"topk", 2}, {"experts", 4}, {"N", 64}, {"K", 64}}},
        {{{"tokens", 300}, {"topk", 2}, {"experts", 3}, {"N", 64}, {"K", 128}}}}},
  };
}

/// Takes one of each `step` cases.
void expect_launches_to_agree(size_t step, int least_emptied, size_t least_made) {
  Program program;
  const std::vector<Case> all = cases();
  for (size_t i = 0; i < all.size(); i += step) program.add(all[i]);
  size_t made = 0;
  int emptied = 0;
  program.run(made, emptied);
  EXPECT_GT(emptied, least_emptied) << "calls without rows, tokens or sequences";
  EXPECT_GT(made, least_made) << "a header that refuses everything would pass, and be of no use";
}

TEST(LaunchCode, IsThatOfMakeLaunchAtEverySizeItTakes) { expect_launches_to_agree(4, 5, 3); }
TEST(SlowLaunchCode, IsThatOfMakeLaunchAtEverySizeItTakes) { expect_launches_to_agree(1, 40, 20); }

/// The kernels of unfused attention: whether each is launched as a dependent one, and its code has a wait and a
/// trigger.
std::string dependent_launches(expr::Map device, const std::map<std::string, ParamValue>& pins = {}) {
  const DataFiles files;
  const Op& op = **find_op("attention");
  const Problem tuned = *op.complete(problem("attention", {{"L", 256}, {"d", 64}}));
  const ProblemVariants at = *variants_of(files, op, device, tuned);
  const Variant& v = *at.find("unfused");
  std::string out;
  for (const Stage& stage : v.stages) {
    const auto checked = check_schedule(v, stage, *default_schedule(v, stage, at.scope, pins), at.scope, false);
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

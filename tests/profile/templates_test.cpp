// roofgen's own templates by the time models: schedules that differ in one lever, in the order that hardware gives
// them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "generator/generate.h"
#include "generator/jinja/jinja.h"
#include "generator/ops/op.h"
#include "kernels.h"
#include "runtime/compiler.h"
#include "runtime/sass/code.h"
#include "runtime/sass/taken_shares.h"
#include "tuner/timing/launch_time.h"

namespace roofgen::profile::templates_test {
namespace {

using Pins = std::map<std::string, ParamValue>;

/// One change of a template's text, which has `from` exactly once.
struct Edit {
  std::string file, from, to;
};

struct Case {
  Problem problem;
  std::string device;
  Pins pins;
  std::vector<Edit> edits = {};
  bool simulated = false;  ///< shares of branches on unknown values come from a simulated run of two CTAs
};

Result<Problem> gemm(int64_t m, int64_t n, int64_t k) {
  Problem p{"gemm", {{"M", m}, {"N", n}, {"K", k}}, DType::kBf16, {}, {{"scale", 0.25}}};
  p.texts = {{"epilogue", "acc"}, {"a_layout", "row"}, {"b_layout", "col"}, {"gated", ""}};
  return (*find_op("gemm"))->complete(std::move(p));
}

Result<Problem> attention(int64_t length, int64_t d) {
  return (*find_op("attention"))
      ->complete({"attention", {{"L", length}, {"d", d}, {"batch", 4}, {"heads", 16}}, DType::kBf16, {}, {}});
}

Result<Legal> legal_schedule(const Variant& variant, const Stage& stage, const expr::Map& scope, const Pins& pins) {
  ROOFGEN_TRY(Schedule schedule, default_schedule(variant, stage, scope, pins));
  auto checked = check_schedule(variant, stage, schedule, scope);
  if (auto* rejected = std::get_if<Rejected>(&checked))
    return Error{Exit::kFailed, to_string(rejected->schedule) + ": " + rejected->reason};
  if (auto* error = std::get_if<Error>(&checked)) return *error;
  return std::get<Legal>(std::move(checked));
}

Result<Binary> compile(const Program& program, const std::string& arch) {
  CompileOptions options;
  options.arch = arch;
  options.jobs = 1;
  ROOFGEN_TRY(const std::unique_ptr<Compiler> nvrtc, make_nvrtc_compiler(options, "", [](const std::string&) {}));
  Result<Binary> out = Error{Exit::kFailed, "not compiled"};
  nvrtc->compile_all({&program}, [&](CompileOutcome outcome) {
    out = std::move(outcome.binary);
    return true;
  });
  return out;
}

/// The parameters as they lie in constant memory; buffers lie far apart.
std::vector<std::byte> params_of(const Launch& launch) {
  std::vector<std::byte> out;
  uint64_t address = uint64_t{7} << 40;
  for (const Arg& arg : launch.args) {
    std::vector<std::byte> bytes = arg.data;
    if (bytes.empty()) {
      const uint64_t bits = arg.is_buffer ? address += uint64_t{1} << 32 : arg.bits;
      bytes.resize(arg.is_buffer ? 8 : arg.bytes);
      std::memcpy(bytes.data(), &bits, bytes.size());
    }
    const size_t align = arg.is_buffer || bytes.size() >= 8 ? 8 : 4;
    out.resize((out.size() + align - 1) / align * align);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  return out;
}

/// What a simulated run of the first and the middle CTA executes.
Result<std::vector<SiteCounts>> simulate(const Op& op, const Problem& problem, const Binary& binary, Launch launch) {
  ROOFGEN_TRY(const std::unique_ptr<Executor> executor, make_sim_executor());
  ROOFGEN_TRY(const ModuleId module, executor->load(binary));
  const std::vector<Buffer> buffers = op.buffers(problem);
  for (Arg& arg : launch.args) {
    if (!arg.is_buffer) continue;
    const auto b =
        std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& one) { return one.name == arg.name; });
    if (b == buffers.end()) continue;  // an output that the problem does not want
    const Fill fill = b->has_contents() ? op.filler(problem, InputPattern::kNormal, b->name) : Fill();
    ROOFGEN_TRY(const DevicePtr at, executor->allocate(b->bytes, b->name, fill));
    arg.bits = at.address;
  }
  std::vector<SiteCounts> sites;
  RunOptions options;
  options.ctas = CtaSelection{{0, launch.grid.count() / 2}};
  options.sites = &sites;
  ROOFGEN_TRY(const RunResult ran, executor->run(module, launch, options));
  if (!ran.findings.empty()) return Error{Exit::kFailed, ran.findings[0].message};
  return sites;
}

Result<timing::LaunchTime> time_of(const Case& c) {
  const DataFiles& files = data_files();
  ROOFGEN_TRY(const Device device, load_device(files, c.device));
  ROOFGEN_TRY(const Op* op, find_op(c.problem.op));
  ROOFGEN_TRY(const expr::Map scope, problem_scope(*op, c.problem, limits(device)));
  ROOFGEN_TRY(std::vector<Variant> variants, op->variants(files, c.problem));
  ROOFGEN_TRY(variants, expand(std::move(variants), scope));
  const auto fused = std::find_if(variants.begin(), variants.end(), [](const Variant& v) { return v.name == "fused"; });
  if (fused == variants.end()) return Error{Exit::kFailed, "no fused variant"};
  const Stage& stage = fused->stages[0];
  ROOFGEN_TRY(const Legal legal, legal_schedule(*fused, stage, scope, c.pins));
  std::string failure;
  const jinja::Loader loader = [&](std::string_view name) {
    auto text = files.read("templates/" + std::string(name));
    for (const Edit& edit : c.edits) {
      if (!text || edit.file != name) continue;
      const size_t at = text->find(edit.from);
      if (at == std::string::npos || text->find(edit.from, at + 1) != std::string::npos)
        failure = fmt::format("{}: the text to replace is not there exactly once: {}", name, edit.from);
      else
        text->replace(at, edit.from.size(), edit.to);
    }
    return text;
  };
  ROOFGEN_TRY(jinja::Rendered rendered, jinja::render(loader, stage.template_name, legal.scope));
  if (!failure.empty()) return Error{Exit::kFailed, failure};
  const Program program{legal.schedule, std::move(rendered.text), stage.entry, std::move(rendered.line_map)};
  ROOFGEN_TRY(const Binary binary, compile(program, device.arch));
  ROOFGEN_TRY(const Launch launch, make_launch(stage, legal));
  const std::vector<Result<sass::Code>> code = sass::read_code({{binary.cubin, binary.entry, device.arch}});
  if (!code[0]) return code[0].error();
  ROOFGEN_TRY(const timing::Machine machine, timing::machine_of(device));
  timing::LaunchRequest request;
  request.code = &*code[0];
  request.launch.grid = launch.grid;
  request.launch.block = launch.block;
  request.launch.dynamic_smem = launch.smem_bytes;
  request.launch.params = params_of(launch);
  request.registers = binary.registers;
  request.smem_bytes = binary.static_smem_bytes + launch.smem_bytes;
  if (c.simulated) {
    ROOFGEN_TRY(const std::vector<SiteCounts> sites, simulate(*op, c.problem, binary, launch));
    ROOFGEN_TRY(const std::vector<sass::TextLine> lines, sass::line_table(binary.cubin, binary.entry));
    request.launch.taken_share = sass::taken_shares(*code[0], lines, sites);
  }
  ROOFGEN_TRY(timing::LaunchTime time, timing::launch_time(device, machine, std::move(request)));
  const auto guessed = [](const sass::Doubt& d) { return !d.share.has_value(); };
  if (std::any_of(time.doubts.begin(), time.doubts.end(), guessed) || !code[0]->unknown.empty())
    return Error{Exit::kFailed,
                 fmt::format("{} doubts, {} unknown mnemonics", time.doubts.size(), code[0]->unknown.size())};
  return time;
}

class Templates : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_program(); !missing.empty()) GTEST_SKIP() << missing;
  }
  /// Time by both models; the launch is included.
  static timing::LaunchTime time(const Result<Problem>& problem, const Pins& pins, const std::vector<Edit>& edits = {},
                                 bool simulated = false) {
    if (!problem) {
      ADD_FAILURE() << to_string(problem.error());
      return {};
    }
    Result<timing::LaunchTime> out = time_of({*problem, GetParam(), pins, edits, simulated});
    if (!out) ADD_FAILURE() << to_string(out.error());
    return out ? *out : timing::LaunchTime{};
  }
  static void expect_gain(const timing::LaunchTime& slow, const timing::LaunchTime& fast, double least) {
    EXPECT_GE(slow.event_s / fast.event_s, least) << 1e6 * slow.event_s << " and " << 1e6 * fast.event_s << " us";
    EXPECT_GE(slow.interval_s / fast.interval_s, 1 + (least - 1) / 3)
        << 1e6 * slow.interval_s << " and " << 1e6 * fast.interval_s << " us";
  }
};

Pins gemm_pins(int64_t stages) {
  return {{"BM", int64_t{128}}, {"BN", int64_t{128}},    {"BK", int64_t{32}},
          {"stages", stages},   {"warps_m", int64_t{2}}, {"warps_n", int64_t{2}}};
}

// Conflict-free rows are what swizzling is for: with the permutation taken out, eight rows of a matrix lie in one bank.
const Edit kNoPermutation{"lib/smem_tile.cuh", "return kSwizzle ? (row / (8 / kDivisor)) & (kDivisor - 1) : 0;",
                          "return 0;"};

TEST_P(Templates, StagesOfAGemm) {
  const Result<Problem> problem = gemm(4096, 4096, 4096);
  const timing::LaunchTime two = time(problem, gemm_pins(2)), four = time(problem, gemm_pins(4));
  expect_gain(two, four, 1.03);
}

TEST_P(Templates, ThreeStagesOfAttentionAreNotSlowerThanOne) {
  const Result<Problem> problem = attention(2048, 64);
  const Pins common{
      {"BM", int64_t{128}}, {"BN", int64_t{64}}, {"warps", int64_t{4}}, {"rescale", std::string("always")}};
  Pins one = common, three = common;
  one["stages"] = int64_t{1}, three["stages"] = int64_t{3};
  expect_gain(time(problem, one), time(problem, three), 1);
}

TEST_P(Templates, SwizzleOfAttention) {
  const Result<Problem> problem = attention(2048, 64);
  const Pins pins{{"BM", int64_t{128}},
                  {"BN", int64_t{64}},
                  {"warps", int64_t{4}},
                  {"rescale", std::string("always")},
                  {"stages", int64_t{2}}};
  const timing::LaunchTime without = time(problem, pins, {kNoPermutation}), with = time(problem, pins);
  expect_gain(without, with, 1.5);
  // Padded rows are free of conflicts, too.
  Pins padded = pins;
  padded["swizzle"] = false;
  EXPECT_NEAR(time(problem, padded).event_s / with.event_s, 1, 0.15);
}

// The running maxima rise in the first blocks of keys, and seldom later.
TEST_P(Templates, LazyRescaleOfAttention) {
  const Result<Problem> problem = attention(2048, 64);
  Pins lazy{{"BM", int64_t{128}}, {"BN", int64_t{64}}, {"warps", int64_t{4}}, {"stages", int64_t{2}}}, always = lazy;
  lazy["rescale"] = std::string("lazy"), always["rescale"] = std::string("always");
  const timing::LaunchTime seldom = time(problem, lazy, {}, true), each = time(problem, always);
  ASSERT_FALSE(seldom.doubts.empty());
  for (const sass::Doubt& d : seldom.doubts) {
    EXPECT_GT(*d.share, 0.8) << "0x" << std::hex << 16 * d.index;
    EXPECT_LT(*d.share, 1);
  }
  EXPECT_LT(seldom.counts.warp_instructions, each.counts.warp_instructions);
}

TEST_P(Templates, ALargerTileOfAGemmIsFaster) {
  const Result<Problem> problem = gemm(4096, 4096, 4096);
  Pins small = gemm_pins(3), large = gemm_pins(3);
  small["BM"] = small["BN"] = int64_t{64};
  expect_gain(time(problem, small), time(problem, large), 1.1);
}

TEST_P(Templates, AGemmIsBelowItsPeak) {
  const Result<Problem> problem = gemm(4096, 4096, 4096);
  const timing::LaunchTime t = time(problem, gemm_pins(3));
  const Result<Device> device = load_device(data_files(), GetParam());
  ASSERT_TRUE(device);
  const double peak =
      device->at("sms") * device->at("mma_sync_flops_per_clk_bf16") * 1e6 * device->at("clock_sustained_mhz");
  const double share = 2.0 * 4096 * 4096 * 4096 / t.event_s / peak;
  EXPECT_LE(share, 1);
  EXPECT_GE(share, 0.4);
  EXPECT_LE(t.roofline_s, t.event_s * 1.001);
}

INSTANTIATE_TEST_SUITE_P(Devices, Templates, testing::Values("a100-sxm-80", "h100-sxm"),
                         [](const auto& test) { return test.param.substr(0, test.param.find('-')); });

}  // namespace
}  // namespace roofgen::profile::templates_test

// Every micro-kernel of the measured ceilings at a small size in the simulator: no findings, an output that proves all
// the work was done, and counts equal to the formulas behind the rates. Mutants must fail. Kernels that the simulator
// cannot execute are checked by their PTX.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <regex>

#include "generator/ops/op.h"
#include "generator/points.h"
#include "roofline/device.h"
#include "runtime/compiler.h"
#include "tests/kernels/programs.h"
#include "tests/support/compile_cache.h"
#include "tuner/ceilings/kernels.h"

namespace roofgen::ceiling_kernels_test {
namespace {

using test::Edit;

/// Kernels whose mma the simulator does not support.
bool only_compiled(const std::string& name) { return name == "mma_fp16_acc16" || name == "mma_fp64"; }

/// An architecture supported by the kernel.
int64_t arch_of(const CeilingSpec& spec) { return std::string(spec.name) == "mma_fp8" ? 89 : 90; }

expr::Map small_scope(int64_t arch = 90) {
  const expr::Map device{
      {"smem_per_block", 232448},  {"smem_per_sm", 233472}, {"regs_per_sm", 65536}, {"sms", 2}, {"arch", arch},
      {"max_threads_per_sm", 2048}};
  return ceiling_scope(device, {.dram_words = 300008, .l2_words = 40016, .clocks = 12000});
}

struct Ran {
  MicroKernel kernel;
  Binary binary;
  Counts counts;
  std::map<std::string, double> work;  ///< the formulas of the search space
  std::string wrong;                   ///< finding or failed check
  std::vector<std::byte> out;
};

class Ceilings : public testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC here";
  }

  Result<Ran> run(const CeilingSpec& spec, const std::vector<Edit>& edits = {}, bool last = false, int64_t arch = 90) {
    const expr::Map scope = small_scope(arch);
    ROOFGEN_TRY(std::vector<Variant> variants, load_variants(files_, "ceilings"));
    ROOFGEN_TRY(variants, expand(std::move(variants), scope));
    const Variant* variant = nullptr;
    for (const Variant& v : variants)
      if (v.name == spec.name) variant = &v;
    if (!variant) return Error{Exit::kFailed, "no such search space"};
    const Stage& stage = variant->stages.front();
    std::optional<MicroKernel> kernel;
    std::string why = "no point is legal";
    ROOFGEN_TRY(const LegalPoints points, legal_points(*variant, stage, scope, {}));
    for (const Rejected& r : points.rejected) why = r.reason;
    for (size_t i = 0; i < points.number; ++i) {
      auto made = make_micro_kernel(files_, spec, *variant, points.schedule(i), scope);
      if (auto* error = std::get_if<Error>(&made)) return *error;
      if (auto* rejected = std::get_if<Rejected>(&made)) why = rejected->reason;
      if (auto* k = std::get_if<MicroKernel>(&made)) {
        kernel = std::move(*k);
        if (!last) break;
      }
    }
    if (!kernel) return Error{Exit::kUnavailable, why};
    Ran out{std::move(*kernel), {}, {}, {}, {}, {}};
    for (const auto& [name, formula] : stage.work) {
      ROOFGEN_TRY(out.work[name], formula.eval_number(out.kernel.legal.scope));
    }
    for (const Edit& edit : edits) {
      ROOFGEN_TRY(const bool done, test::apply(edit, out.kernel.program));
      if (!done) return Error{Exit::kFailed, edit.file + " gives no such code: " + edit.from};
    }
    ROOFGEN_TRY(out.binary, compile(out.kernel.program, fmt::format("sm_{}", arch)));
    if (only_compiled(spec.name)) return out;
    ROOFGEN_CHECK(simulate(*variant, scope, out));
    return out;
  }

 private:
  Result<Binary> compile(const Program& program, const std::string& arch) {
    CompileOptions options;
    options.arch = arch;
    auto& nvrtc = compilers_[arch];
    if (!nvrtc) {
      ROOFGEN_TRY(nvrtc, make_nvrtc_compiler(options, test::shared_compile_cache(), [](const std::string&) {}));
    }
    Result<Binary> out = Error{Exit::kFailed, "nothing was compiled"};
    nvrtc->compile_all({&program}, [&](CompileOutcome outcome) {
      out = std::move(outcome.binary);
      return true;
    });
    return out;
  }

  Result<void> simulate(const Variant& variant, const expr::Map& scope, Ran& ran) {
    ROOFGEN_TRY(std::unique_ptr<Executor> sim, make_sim_executor());
    ROOFGEN_TRY(const std::vector<MicroBuffer> buffers, micro_buffers(*ran.kernel.spec, variant, scope));
    DevicePtr written;
    uint64_t bytes = 0;
    for (const MicroBuffer& b : buffers) {
      ROOFGEN_TRY(const DevicePtr at, sim->allocate(b.bytes, b.name, b.fill));
      for (Arg& arg : ran.kernel.launch.args)
        if (arg.is_buffer && arg.name == b.name) arg.bits = at.address;
      if (b.name == "out") written = at, bytes = b.bytes;
    }
    ROOFGEN_TRY(const ModuleId module, sim->load(ran.binary));
    ROOFGEN_TRY(const RunResult result, sim->run(module, ran.kernel.launch, {}));
    ran.counts = result.counts.value_or(Counts{});
    if (!result.findings.empty()) {
      ran.wrong = result.findings[0].kind + ": " + result.findings[0].message;
      return {};
    }
    if (!ran.kernel.spec->check) return {};
    ran.out.resize(bytes);
    ROOFGEN_CHECK(sim->read(written, ran.out));
    ROOFGEN_TRY(ran.wrong,
                ran.kernel.spec->check(ran.kernel, [&](uint64_t offset, std::span<std::byte> to) -> Result<void> {
                  if (offset + to.size() > ran.out.size()) return Error{Exit::kFailed, "beyond the output"};
                  std::copy_n(ran.out.begin() + static_cast<std::ptrdiff_t>(offset), to.size(), to.begin());
                  return {};
                }));
    return {};
  }

 protected:
  /// The first problem: an infrastructure error, a finding, a wrong output, or a count that differs from its formula.
  std::string problem(const CeilingSpec& spec, const std::vector<Edit>& edits = {}, bool last = false,
                      bool counts_only = false) {
    auto ran = run(spec, edits, last, arch_of(spec));
    if (!ran) return "error: " + to_string(ran.error());
    if (!counts_only && !ran->wrong.empty()) return ran->wrong;
    const Counts& c = ran->counts;
    const std::map<std::string, double> counted = {{"l2_read_bytes", 32.0 * static_cast<double>(c.l2_read_sectors)},
                                                   {"l2_write_bytes", 32.0 * static_cast<double>(c.l2_write_sectors)},
                                                   {"mma_flops", static_cast<double>(c.mma_flops)},
                                                   {"exps", static_cast<double>(c.exps)},
                                                   {"fp32_flops", 64.0 * static_cast<double>(c.fp32)},
                                                   {"smem_wavefronts", static_cast<double>(c.smem_wavefronts)},
                                                   {"ctas", static_cast<double>(c.ctas)}};
    for (const auto& [name, value] : ran->work) {
      const auto count = counted.find(name);
      if (count != counted.end() && count->second != value)
        return fmt::format("{} is {}, its formula gives {}", name, count->second, value);
    }
    if (c.smem_wavefronts != c.smem_ideal_wavefronts) return "bank conflicts";
    return "";
  }
  static const CeilingSpec& spec(const std::string& name) {
    for (const CeilingSpec& s : ceiling_specs())
      if (name == s.name) return s;
    throw std::runtime_error(name);
  }

  const DataFiles files_;
  std::map<std::string, std::unique_ptr<Compiler>> compilers_;
};

TEST_F(Ceilings, EachHasASpaceAndEachSpaceIsOne) {
  const auto variants = load_variants(files_, "ceilings");
  ASSERT_TRUE(variants) << to_string(variants.error());
  std::set<std::string> spaces, rows;
  for (const Variant& v : *variants) spaces.insert(v.name);
  for (const CeilingSpec& s : ceiling_specs()) rows.insert(s.name);
  EXPECT_EQ(spaces, rows);
}

TEST_F(Ceilings, AreNoOp) { EXPECT_FALSE(find_op("ceilings")); }

TEST_F(Ceilings, WorkEqualsTheFormulas) {
  for (const CeilingSpec& s : ceiling_specs()) {
    if (only_compiled(s.name)) continue;
    EXPECT_EQ(problem(s), "") << s.name;
    EXPECT_EQ(problem(s, {}, true), "") << s.name << ", last point";
  }
}

// The work behind each rate, recomputed by hand.
TEST_F(Ceilings, AmountsAreTheCounts) {
  for (const CeilingSpec& s : ceiling_specs()) {
    if (only_compiled(s.name)) continue;
    const auto ran = run(s, {}, false, arch_of(s));
    ASSERT_TRUE(ran) << s.name << to_string(ran.error());
    const Counts& c = ran->counts;
    const double read = 32.0 * static_cast<double>(c.l2_read_sectors),
                 written = 32.0 * static_cast<double>(c.l2_write_sectors);
    const std::string name = s.name;
    double counted = 1;
    if (name.ends_with("_read") && name != "smem_read")
      counted = read;
    else if (s.buffers == CeilingSpec::Buffers::kStream)
      counted = read + written;
    // 128 bytes per wavefront, without the wavefronts that filled the tile.
    else if (name == "smem_read")
      counted = 128.0 * static_cast<double>(c.shared_load) * 4;
    else if (name == "fp32_fma")
      counted = 2 * 32.0 * static_cast<double>(c.fp32);
    else if (name == "mufu_ex2")
      counted = 32.0 * static_cast<double>(c.mufu);
    else if (name.starts_with("mma"))
      counted = static_cast<double>(c.mma_flops);
    EXPECT_EQ(ran->kernel.amount, counted) << name;
    EXPECT_GT(counted, 0) << name;
    if (s.buffers == CeilingSpec::Buffers::kStream) {
      const double distinct =
          32.0 * static_cast<double>(c.unique_read_sectors + (name.ends_with("_read") ? 0 : c.unique_write_sectors));
      EXPECT_EQ(ran->kernel.amount, distinct * static_cast<double>(ran->kernel.integer("passes"))) << name;
      EXPECT_EQ(ran->kernel.integer("passes") > 1, name.starts_with("l2")) << name;
      EXPECT_EQ(c.bulk_load_16 == 0, name.ends_with("write")) << name;
      EXPECT_EQ(c.narrow_load, 0u) << name;
    }
  }
}

// Expected outputs computed here, independently of the checks.
TEST_F(Ceilings, CopyAndReadByHand) {
  const auto word = [](uint64_t i) {
    return 0x3f800000u | (static_cast<uint32_t>(i) * 2654435761u + 0x3c6ef372u) >> 9;
  };
  const auto copy = run(spec("dram_copy")), read = run(spec("dram_read"));
  ASSERT_TRUE(copy && read);
  const auto words = [](const Ran& r, size_t n) {
    std::vector<uint32_t> out(n);
    std::memcpy(out.data(), r.out.data(), 4 * n);
    return out;
  };
  const std::vector<uint32_t> copied = words(*copy, 150000);
  for (uint64_t i = 0; i < copied.size(); ++i) ASSERT_EQ(copied[i], word(i)) << i;
  uint32_t sum = 0, want = 0;
  for (uint32_t s : words(*read, 2 * 4 * 256)) sum += s;
  for (uint64_t i = 0; i < 300008; ++i) want += word(i);
  EXPECT_EQ(sum, want);
}

TEST_F(Ceilings, DataIsRandomFiniteAndNotZero) {
  const auto variants = load_variants(files_, "ceilings");
  ASSERT_TRUE(variants);
  for (const Variant& v : *variants) {
    const auto buffers = micro_buffers(spec(v.name), v, small_scope());
    ASSERT_TRUE(buffers) << v.name;
    for (const MicroBuffer& b : *buffers) {
      if (!b.fill) continue;
      std::vector<uint16_t> halves(4096);
      b.fill(1000, std::as_writable_bytes(std::span(halves)));
      EXPECT_GT(std::set<uint16_t>(halves.begin(), halves.end()).size(), 256u) << v.name;
      std::vector<uint16_t> again(2048);
      b.fill(1000 + 4096, std::as_writable_bytes(std::span(again)));
      EXPECT_TRUE(std::equal(again.begin(), again.end(), halves.begin() + 2048)) << v.name;
    }
  }
}

TEST_F(Ceilings, MatrixKernelsHaveTheirInstructionsInTheLoop) {
  for (const CeilingSpec& s : ceiling_specs()) {
    if (!std::string_view(s.name).starts_with("mma")) continue;
    const auto ran = run(s, {}, false, arch_of(s));
    ASSERT_TRUE(ran) << s.name << to_string(ran.error());
    const std::string& ptx = ran->binary.ptx;
    const std::string instruction = ran->kernel.text("instruction");
    // The only loop, from its label to the branch back to that label.
    int64_t inside = 0, all = 0;
    std::map<std::string, size_t> labels;
    size_t begin = 0, end = 0, at = 0;
    const std::regex label(R"((\$L__BB\d+_\d+):|bra(?:\.uni)?\s+(\$L__BB\d+_\d+))");
    for (std::sregex_iterator i(ptx.begin(), ptx.end(), label), done; i != done; ++i) {
      if ((*i)[1].matched)
        labels[(*i)[1]] = static_cast<size_t>(i->position());
      else if (labels.count((*i)[2]))
        begin = labels[(*i)[2]], end = static_cast<size_t>(i->position());
    }
    for (; (at = ptx.find(instruction, at)) != std::string::npos; ++at) ++all, inside += at > begin && at < end;
    const int64_t want =
        ran->kernel.integer("unroll") * ran->kernel.integer("tiles_m") * ran->kernel.integer("tiles_n");
    EXPECT_EQ(inside, want) << s.name;
    EXPECT_EQ(all, want) << s.name;
    const double flops = 2.0 * static_cast<double>(ran->kernel.integer("mma_m") * 8 * ran->kernel.integer("mma_k") *
                                                   want * ran->kernel.integer("trips") * ran->kernel.integer("ctas") *
                                                   ran->kernel.integer("threads") / 32);
    EXPECT_EQ(ran->kernel.amount, flops) << s.name;
  }
}

TEST_F(Ceilings, NothingSpills) {
  int compiled = 0;
  for (const CeilingSpec& s : ceiling_specs())
    for (const int64_t arch : {80, 90}) {
      const auto ran = run(s, {}, true, arch);
      if (!ran && ran.error().exit == Exit::kUnavailable) continue;
      ASSERT_TRUE(ran) << s.name << to_string(ran.error());
      EXPECT_EQ(ran->binary.spill_bytes, 0) << s.name << " sm_" << arch;
      ++compiled;
    }
  EXPECT_GT(compiled, 20);
}

// Without FP8 hardware for mma.sync, ptxas emulates it and shares work between equal products, so the kernel measures
// no ceiling.
TEST_F(Ceilings, Fp8NeedsItsHardware) {
  for (const int64_t arch : {80, 90}) {
    const auto ran = run(spec("mma_fp8"), {}, false, arch);
    ASSERT_FALSE(ran);
    EXPECT_NE(ran.error().message.find("device.arch in [89, 120]"), std::string::npos);
  }
}

// ptxas hoists loads out of a loop that are volatile only for the compiler.
TEST_F(Ceilings, SharedLoadsAreVolatileInPtx) {
  const auto ran = run(spec("smem_read"));
  ASSERT_TRUE(ran);
  EXPECT_NE(ran->binary.ptx.find("ld.volatile.shared"), std::string::npos);
  EXPECT_EQ(ran->binary.ptx.find("ld.shared"), std::string::npos);
}

// ---- mutants ----

constexpr const char* kStream = "ceilings/stream.cu.jinja";

/// Both the output and the counts must detect the mutant.
#define EXPECT_CAUGHT(name, ...)                                                                               \
  do {                                                                                                         \
    const std::string by_output = problem(spec(name), {__VA_ARGS__});                                          \
    EXPECT_NE(by_output, "") << name;                                                                          \
    const std::string by_counts = problem(spec(name), {__VA_ARGS__}, false, true);                             \
    EXPECT_NE(by_counts, "") << name;                                                                          \
    for (const std::string& by : {by_output, by_counts}) EXPECT_EQ(by.find("error"), std::string::npos) << by; \
  } while (false)

TEST_F(Ceilings, HalfThePassesAreCaught) {
  for (const char* name : {"l2_read", "l2_write", "l2_copy", "l2_triad"})
    EXPECT_CAUGHT(name, Edit{kStream, "pass < passes", "pass < (passes + 1) / 2"});
}

TEST_F(Ceilings, ASkippedTailIsCaught) {
  for (const char* name : {"dram_read", "dram_write", "dram_copy", "dram_triad"})
    EXPECT_CAUGHT(name, Edit{kStream, "for (; i < words; i += step) {", "for (; i + 8 < words; i += step) {"});
}

TEST_F(Ceilings, HalfTheTripsAreCaught) {
  for (const auto& [name, file] : {std::pair{"smem_read", "smem"},
                                   {"fp32_fma", "fma"},
                                   {"mufu_ex2", "mufu"},
                                   {"mma_bf16", "mma"},
                                   {"mma_fp16", "mma"}})
    EXPECT_CAUGHT(name, Edit{fmt::format("ceilings/{}.cu.jinja", file), "trip < trips", "trip < trips / 2"});
}

TEST_F(Ceilings, AChainLeftOutIsCaught) {
  EXPECT_CAUGHT("fp32_fma",
                Edit{"ceilings/fma.cu.jinja", "for (int c = 0; c < kChains; ++c) v[c] = fmaf(v[c], up, add);",
                     "for (int c = 0; c < kChains - 1; ++c) v[c] = fmaf(v[c], up, add);"});
  EXPECT_CAUGHT("mma_bf16", Edit{"ceilings/mma.cu.jinja", "for (int n = 0; n < kN; ++n) mma(",
                                 "for (int n = 0; n < kN - 1; ++n) mma("});
}

TEST_F(Ceilings, BankConflictsAreCaught) {
  EXPECT_EQ(problem(spec("smem_read"),
                    {Edit{"ceilings/smem.cu.jinja", "((threadIdx.x + 32) % kThreads) * 16",
                          "(threadIdx.x * 2 % kThreads) * 16"}},
                    false, true)
                .find("smem_wavefronts"),
            0u);
}

}  // namespace
}  // namespace roofgen::ceiling_kernels_test

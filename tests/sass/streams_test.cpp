// The interpreter of machine code against the simulator of PTX. The two have only the compiler in common, and count the
// same traffic for the correct kernels of tests/check, but for the differences that are listed here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "../check/kernel_files.h"
#include "check/check.h"
#include "check/kernel.h"
#include "profile/arguments.h"
#include "runtime/compiler.h"
#include "runtime/sass/code.h"
#include "runtime/sass/disassembler.h"
#include "runtime/sass/stream.h"
#include "runtime/sass/taken_shares.h"
#include "tests/support/cases.h"
#include "tests/support/compile_cache.h"
#include "tests/support/words.h"

namespace roofgen::sass::streams_test {
namespace {

using check::Kernel;

/// Values that machine-code interpretation does not know decide branches or addresses. Such a kernel must not look as
/// if it had been interpreted: equal counts, doubts or an error.
const std::map<std::string, const char*> kNotSeenThrough = [] {
  constexpr const char *kOthers = "waits for what other threads write",
                       *kAtomic = "results of atomic operations decide",
                       *kPrintf = "calls vprintf, whose code is not in the CUBIN", *kFp64 = "FP64 decides branches",
                       *kBits = "unwritten bits lie beside those that decide";
  std::map<std::string, const char*> out{{"double_precision_clean", kFp64},
                                         {"printf_clean", kPrintf},
                                         {"pointer_tables_clean", kPrintf},
                                         {"cta_bits_high_bits_decide", kBits},
                                         {"cta_bits_sum_of_defined_bits", kBits}};
  for (const char* name :
       {"cuda_barrier_clean", "device_barrier_of_warps_clean", "device_handshake_by_another_block_clean",
        "device_handshake_clean", "device_handshake_shared_between_clean", "grid_barrier_clean", "grid_sync_clean",
        "handshake_clean", "look_back_scan_clean", "mbarrier_copies_clean", "mbarrier_pipeline_clean",
        "tiles_of_warps_clean", "warp_handshake_clean", "value_and_flag_in_one_word"})
    out[name] = kOthers;
  for (const char* name :
       {"atomics_half_clean", "compare_and_swap_clean", "device_lock_clean", "last_block_clean", "shared_lock_clean",
        "spin_lock_clean", "values_not_selected_clean", "blocks_take_work_from_a_queue", "compare_and_swap_add",
        "cta_lanes_elected_counter", "cta_lanes_lock", "frontier_of_a_search", "last_block_resets_its_counter",
        "last_block_sums_the_rest", "lock_by_tickets", "one_atomic_of_a_warp"})
    out[name] = kAtomic;
  return out;
}();

/// ptxas makes one access of several to neighbouring words of shared memory, or leaves some out.
const std::set<std::string> kMerged = test::words(
    "struct_with_holes_clean cta_lanes_own_halves_then_word cta_one_warp_of_the_cta_works cta_struct_with_padding "
    "odd_even_sort up_and_down_sweep early_return_then_part_of_a_warp matmul_clean matmul_one_barrier_of_two_tiles "
    "tiles_of_a_group library_sort_clean");

/// The simulator counts the load of a tile as one request of whole rows; ptxas makes a load for each register.
const std::set<std::string> kTiles{"wmma_products_clean"};

/// Barriers are not compared: the simulator counts one again after lanes of the warp have returned, or
/// named barriers are among them.
const std::set<std::string> kBarriers{
    "barrier_after_return_clean", "cta_exit_of_some_lanes", "cta_one_warp_of_the_cta_works",
    "library_sort_clean",         "named_barriers_clean",   "producer_consumer_clean",
    "warps_in_two_roles",
};

struct Traffic {
  uint64_t wavefronts = 0, read_sectors = 0, written_sectors = 0, barriers = 0, matrix_flops = 0;
};

Traffic counted(const Counts& c) {
  return {c.smem_wavefronts, c.l2_read_sectors, c.l2_write_sectors, c.barriers, c.mma_flops};
}

void add(Traffic& sum, const Code& code, const CtaStream& cta) {
  for (const WarpStream& w : cta.warps)
    for (const Step& s : w.instructions()) {
      const Instruction& i = code.instructions[s.index];
      if (i.opcode->action == Action::kBar && s.access != Step::kSkipped) ++sum.barriers;
      if (i.opcode->pipe == Pipe::kTensor) sum.matrix_flops += i.matrix_flops;
      if (!s.has_access()) continue;
      const Access& a = w.accesses[s.access];
      sum.wavefronts += a.wavefronts;
      uint64_t sectors = 0;
      for (size_t k = a.first_line; k < size_t{a.first_line} + a.lines; ++k)
        if (w.lines[k].line < kLocalLines) sectors += static_cast<uint64_t>(std::popcount(w.lines[k].sectors));
      const bool reads = i.opcode->action == Action::kLdg || i.opcode->action == Action::kLdgsts;
      (reads ? sum.read_sectors : sum.written_sectors) += sectors;
    }
}

/// A kernel that compiles for the architecture, and what the simulator counts.
struct One {
  std::string name;
  check::Request request;
  check::Chosen chosen;
  Counts counts;
};

struct Interpreted {
  Traffic traffic;
  std::vector<Doubt> doubts;
  std::string error;
};

Interpreted interpret(const One& one, const Code& code) {
  profile::Memory memory(one.request.args);
  StreamLaunch launch;
  launch.grid = one.request.grid;
  launch.block = one.request.block;
  launch.dynamic_smem = one.request.smem_bytes;
  launch.params = memory.params();
  launch.variable = [&](const std::string& name) -> uint64_t {
    for (const Variable& v : code.cubin.variables)
      if (v.name == name) return memory.variable(name, v.bytes, v.initial);
    return 0;
  };
  launch.read = [&](uint64_t address, std::span<std::byte> to) { return memory.read(address, to); };
  launch.max_steps = 200'000;
  Interpreter interpreter(code, std::move(launch));
  Interpreted out;
  for (uint64_t cta = 0; cta < one.request.grid.count() && out.error.empty(); ++cta) {
    const Result<CtaStream> stream = interpreter.run(cta);
    if (stream)
      add(out.traffic, code, *stream);
    else
      out.error = to_string(stream.error());
  }
  out.doubts = interpreter.doubts();
  return out;
}

/// "wavefronts 3, not 4; ..."; empty: equal.
std::string differences(const One& one, const Traffic& got) {
  const Traffic want = counted(one.counts);
  std::string out;
  const auto compare = [&](const char* what, uint64_t a, uint64_t b, bool less_is_right = false) {
    if (less_is_right ? a > b : a != b) out += fmt::format("{} {}, not {}; ", what, a, b);
  };
  compare("wavefronts", got.wavefronts, want.wavefronts, kMerged.count(one.name) > 0);
  if (!kTiles.count(one.name)) compare("sectors read", got.read_sectors, want.read_sectors);
  compare("sectors written", got.written_sectors, want.written_sectors);
  // Barriers of a warp are seldom instructions of the machine.
  const std::string& ptx = one.chosen.compiled.binary.ptx;
  if (ptx.find("bar.warp.sync") == ptx.npos && ptx.find("mbarrier") == ptx.npos && !kBarriers.count(one.name))
    compare("barriers", got.barriers, want.barriers);
  compare("tensor FLOP", got.matrix_flops, want.matrix_flops);
  return out;
}

struct Compilation {
  const char* name;
  const char* arch;
  const char* flag = "";
  bool all = false;  ///< also kernels that include headers of libraries, which take seconds to compile
};
void PrintTo(const Compilation& c, std::ostream* out) { *out << c.name; }

class Streams : public testing::TestWithParam<Compilation> {};

TEST_P(Streams, CountWhatTheSimulatorCounts) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  if (nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  const Compilation& compilation = GetParam();
  std::vector<Kernel> files = check::kernels_in(ROOFGEN_CHECK_FOLDER "/kernels");
  if (compilation.all) {
    // CTAs of right/grid_* communicate with each other.
    std::vector<Kernel> more = check::kernels_in(ROOFGEN_CHECK_FOLDER "/right");
    std::erase_if(more, [](const Kernel& k) { return k.name.starts_with("grid_"); });
    files.insert(files.end(), more.begin(), more.end());
  }
  std::vector<One> all;
  for (Kernel& k : files) {
    if (k.says["finds"] != "nothing" || !k.file.ends_with(".cu")) continue;
    if (!compilation.all && k.text.find("#include") != std::string::npos) continue;
    Result<check::Request> request = check::request_of(k);
    ASSERT_TRUE(request) << to_string(request.error());
    request->arch = compilation.arch;
    request->jobs = 1;
    if (*compilation.flag) request->compiler_flags.push_back(compilation.flag);
    Result<check::Chosen> chosen = check::choose_kernel(*request);
    if (!chosen) continue;  // needs a newer architecture
    const Result<check::Report> report = check::run(*request);
    ASSERT_TRUE(report) << k.name << ": " << to_string(report.error());
    all.push_back({k.name, std::move(*request), std::move(*chosen), report->counts});
  }
  EXPECT_GE(all.size(), compilation.all ? 110u : 40u);
  std::vector<CodeRequest> requests;
  for (const One& one : all)
    requests.push_back({one.chosen.compiled.binary.cubin, one.chosen.entry.mangled, compilation.arch});
  const std::vector<Result<Code>> codes = read_code(requests);
  ASSERT_EQ(codes.size(), all.size());
  size_t equal = 0;
  for (size_t n = 0; n < all.size(); ++n) {
    const One& one = all[n];
    SCOPED_TRACE(one.name);
    ASSERT_TRUE(codes[n]) << to_string(codes[n].error());
    const Code& code = *codes[n];
    for (const std::string& name : code.unknown) ADD_FAILURE() << "unknown mnemonic " << name;
    const Interpreted got = interpret(one, code);
    std::string differ = got.error + differences(one, got.traffic), doubts;
    for (const Doubt& d : got.doubts)
      doubts += fmt::format("{} at 0x{:x}; ", code.instructions[d.index].spelling, 16 * d.index);
    equal += differ.empty();
    if (kNotSeenThrough.count(one.name)) {
      EXPECT_TRUE(differ.empty() || !doubts.empty() || !got.error.empty())
          << differ << "and no doubt, though " << kNotSeenThrough.at(one.name);
    } else if (*compilation.flag) {
      EXPECT_TRUE(differ.empty() || !doubts.empty()) << differ;  // such code does more that cannot be seen through
    } else {
      EXPECT_EQ(differ, "");
      EXPECT_EQ(doubts, "");
    }
  }
  EXPECT_GE(equal, all.size() * 6 / 10);
}

/// An FP64 comparison, whose result is not computed, decides whether a maximum is raised.
constexpr const char* kRaises = R"(__global__ void raises(const double* x, float* y) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  double most = 0;
  float s[16] = {};
#pragma unroll 1
  for (int i = 0; i < 20; ++i) {
    const double v = x[128 * i + t];
    if (__any_sync(~0u, v > most)) {
      const float factor = expf(static_cast<float>(most - v));
#pragma unroll
      for (int k = 0; k < 16; ++k) s[k] *= factor + k;
      most = v > most ? v : most;
    }
#pragma unroll
    for (int k = 0; k < 16; ++k) s[k] += static_cast<float>(v);
  }
  for (int k = 1; k < 16; ++k) s[0] += s[k];
  y[t] = s[0];
}
)";

TEST(TakenShares, OfASimulatedRunDecideABranch) {
  if (!nvrtc_info().found) GTEST_SKIP() << "no NVRTC on this machine";
  if (nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm on this machine";
  constexpr uint32_t kCtas = 2, kThreads = 64, kTurns = 20;
  // Each warp raises its maximum in turns 0, 1, 3, 7, 15.
  const auto value = [](uint64_t turn) { return std::has_single_bit(turn + 1) ? static_cast<double>(turn + 1) : 0.5; };
  check::Request request;
  request.file = "raises.cu";
  request.text = kRaises;
  request.grid = {kCtas, 1, 1};
  request.block = {kThreads, 1, 1};
  request.arch = "sm_80";
  request.cache_dir = test::shared_compile_cache();
  Result<check::Chosen> chosen = check::choose_kernel(request);
  ASSERT_TRUE(chosen) << to_string(chosen.error());
  Binary& binary = chosen->compiled.binary;
  binary.entry = chosen->entry.mangled;
  const Result<std::unique_ptr<Executor>> executor = make_sim_executor();
  ASSERT_TRUE(executor);
  const Result<ModuleId> module = (*executor)->load(binary);
  ASSERT_TRUE(module) << to_string(module.error());
  const Result<DevicePtr> x =
      (*executor)->allocate(uint64_t{128} * kTurns * 8, "x", [&](uint64_t offset, std::span<std::byte> out) {
        for (size_t k = 0; k < out.size(); ++k) {
          const double v = value((offset + k) / 8 / 128);
          out[k] = reinterpret_cast<const std::byte*>(&v)[(offset + k) % 8];
        }
      });
  const Result<DevicePtr> y = (*executor)->allocate(uint64_t{128} * 4, "y");
  ASSERT_TRUE(x && y);
  Launch launch;
  launch.grid = request.grid;
  launch.block = request.block;
  for (const DevicePtr& p : {*x, *y}) launch.args.push_back({"p", true, p.address});
  std::vector<SiteCounts> sites;
  RunOptions options;
  options.sites = &sites;
  const Result<RunResult> ran = (*executor)->run(*module, launch, options);
  ASSERT_TRUE(ran) << to_string(ran.error());
  ASSERT_TRUE(ran->findings.empty()) << ran->findings[0].message;

  const std::vector<Result<Code>> codes = read_code({{binary.cubin, binary.entry, request.arch}});
  ASSERT_TRUE(codes[0]) << to_string(codes[0].error());
  const Code& code = *codes[0];
  const Result<std::vector<TextLine>> lines = line_table(binary.cubin, binary.entry);
  ASSERT_TRUE(lines) << to_string(lines.error());
  StreamLaunch stream;
  stream.grid = launch.grid;
  stream.block = launch.block;
  for (const Arg& a : launch.args) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&a.bits);
    stream.params.insert(stream.params.end(), bytes, bytes + sizeof a.bits);
  }
  stream.taken_share = taken_shares(code, *lines, sites);
  Interpreter interpreter(code, std::move(stream));
  const Result<CtaStream> cta = interpreter.run(0);
  ASSERT_TRUE(cta) << to_string(cta.error());
  const std::vector<Doubt> doubts = interpreter.doubts();
  ASSERT_EQ(doubts.size(), 1u);
  EXPECT_EQ(doubts[0].count, kTurns * kThreads / 32);
  ASSERT_TRUE(doubts[0].share.has_value());
  EXPECT_DOUBLE_EQ(*doubts[0].share, 1 - 5.0 / kTurns);
  size_t raised = 0;
  for (const WarpStream& w : cta->warps)
    raised += static_cast<size_t>(std::ranges::count(w.instructions(), doubts[0].index + 1, &Step::index));
  EXPECT_EQ(raised, 5 * kThreads / 32);
}

TEST_EACH(Small, Streams, Compilation{"sm_90", "sm_90"}, Compilation{"sm_100", "sm_100"});
// Without optimisation ptxas merges and moves nothing, and calls functions.
TEST_EACH(Slow, Streams, Compilation{"sm_120", "sm_120"}, Compilation{"sm_80", "sm_80", "", true},
          Compilation{"sm_90", "sm_90", "", true}, Compilation{"sm_75", "sm_75", "", true},
          Compilation{"sm_80_unoptimised", "sm_80", "--ptxas-options=-O0", true});

}  // namespace
}  // namespace roofgen::sass::streams_test

#include "profile/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "check/kernel.h"
#include "profile/arguments.h"
#include "runtime/compile/log.h"
#include "runtime/sass/code.h"
#include "runtime/sass/disassembler.h"

namespace roofgen::profile {
namespace {

using sass::Pipe;
using timing::Stall;

/// The shares of busy cycles, the busiest unit first.
std::vector<Utilisation> utilisation(const timing::Machine& m, const timing::LaunchTime& t) {
  const timing::SmTime& sm = t.sm;
  std::vector<Utilisation> out;
  const auto add = [&](std::string unit, double cycles) {
    if (cycles > 0 && sm.cycles > 0) out.push_back({std::move(unit), cycles / sm.cycles});
  };
  add("issue", static_cast<double>(sm.issues) / m.schedulers);
  for (const Pipe p : {Pipe::kFma, Pipe::kFmaHeavy, Pipe::kHalf, Pipe::kAlu, Pipe::kFp64, Pipe::kTensor, Pipe::kXu,
                       Pipe::kUniform, Pipe::kBranch})
    add(fmt::format("{} pipe", to_string(p)), sm.pipe_cycles[static_cast<size_t>(p)] / m.schedulers);
  add("shared memory", sm.shared_cycles);
  add("L1", sm.l1_cycles);
  add("L2", sm.l2_cycles);
  add("DRAM", sm.dram_cycles);
  std::stable_sort(out.begin(), out.end(),
                   [](const Utilisation& a, const Utilisation& b) { return a.share > b.share; });
  return out;
}

/// The stalls that are waits for something, rather than a consequence of many ready warps.
double waits(const timing::StallCycles& s) {
  double sum = 0;
  for (size_t i = 0; i < s.size(); ++i)
    if (static_cast<Stall>(i) != Stall::kNotSelected) sum += s[i];
  return sum;
}

constexpr double kBusy = 0.75;  // of a unit that limits

struct Advice {
  Stall cause;
  const char* limiter;
  const char* next;
};
constexpr Advice kAdvice[] = {
    {Stall::kFixed, "latency of arithmetic", "more independent work for each warp, or more resident warps"},
    {Stall::kPipe, "throughput of a pipe", "fewer instructions of the busiest pipe"},
    {Stall::kQueue, "rate of memory instructions",
     "wider accesses, so that fewer memory instructions move the same bytes"},
    {Stall::kShared, "latency of shared memory",
     "loads from shared memory further ahead of their use, or more resident warps"},
    {Stall::kGlobal, "latency of device memory",
     "loads further ahead of their use, more bytes in flight, or more resident warps"},
    {Stall::kLocal, "local memory", "fewer registers, so that nothing is spilled"},
    {Stall::kSpecial, "latency of special functions", "special functions further ahead of the use of their results"},
    {Stall::kCopies, "asynchronous copies", "more stages, so that copies begin earlier"},
    {Stall::kBarrier, "barriers", "fewer barriers, or more CTAs on an SM, so that others run meanwhile"},
    {Stall::kBranch, "branches", "fewer branches: unrolling, or predication"},
    {Stall::kFetch, "instruction cache", "less unrolling, so that the loop fits in the instruction cache"},
    {Stall::kNotSelected, "issue slots", "fewer instructions"}};

void conclude(Report& r, const timing::Machine& m) {
  const timing::LaunchTime& t = r.time;
  const Utilisation top = r.units.empty() ? Utilisation{} : r.units.front();
  if (t.ctas < m.sms) {
    r.limiter = fmt::format("parallelism: {:.0f} CTAs for {} SMs", t.ctas, m.sms);
    r.next = "more CTAs: smaller tiles, or a split of the sum";
    return;
  }
  if (const double whole = std::ceil(t.waves); whole > 1 && whole / t.waves > 1.25) {
    r.limiter = fmt::format("tail of the grid: {:.2f} waves take as long as {:.0f}", t.waves, whole);
    r.next = "a number of CTAs that fills the last wave, smaller tiles, or persistent CTAs";
    return;
  }
  if (top.share >= kBusy) {
    r.limiter = top.unit == "DRAM" || top.unit == "L2"
                    ? top.unit + " bandwidth"
                    : "throughput of the " + top.unit + (top.unit == "issue" ? " slots" : "");
    if (top.unit == "shared memory") r.limiter = "throughput of shared memory";
    r.next = top.unit == "DRAM"            ? "fewer bytes: fusion, a smaller format, or reuse in L2"
             : top.unit == "L2"            ? "larger tiles, so that fewer bytes cross L2"
             : top.unit == "shared memory" ? "fewer conflicts, wider accesses, or larger tiles of registers"
             : top.unit == "L1"            ? "coalesced accesses: neighbouring lanes on neighbouring addresses"
                                           : fmt::format("fewer instructions of the {}", top.unit);
    return;
  }
  size_t most = 0;
  for (size_t i = 0; i < r.stalls.size(); ++i)
    if (static_cast<Stall>(i) != Stall::kNotSelected && r.stalls[i] > r.stalls[most]) most = i;
  for (const Advice& a : kAdvice)
    if (static_cast<size_t>(a.cause) == most) r.limiter = a.limiter, r.next = a.next;
}

std::vector<LineTime> by_line(const timing::SmTime& sm, const std::vector<sass::TextLine>& lines,
                              const std::function<std::string(const std::string&)>& own_name) {
  struct Sum {
    LineTime line;
    timing::StallCycles stalls{};
  };
  std::map<std::pair<std::string, int>, Sum> all;
  for (size_t i = 0; i < sm.instructions.size() && i < lines.size(); ++i) {
    const timing::InstructionTime& one = sm.instructions[i];
    if (!one.issues) continue;
    Sum& s = all[{lines[i].file, lines[i].line}];
    s.line.source = {own_name(lines[i].file), lines[i].line, 0};
    s.line.issues += one.issues;
    s.line.waiting += one.blamed;
    for (size_t k = 0; k < one.stalls.size(); ++k) s.stalls[k] += one.stalls[k];
  }
  std::vector<LineTime> out;
  const double whole = std::max(1.0, sm.warp_cycles);
  for (auto& [at, s] : all) {
    s.line.waiting /= whole;
    s.line.stalled = waits(s.stalls) / whole;
    size_t most = 0;
    for (size_t k = 0; k < s.stalls.size(); ++k)
      if (static_cast<Stall>(k) != Stall::kNotSelected && s.stalls[k] > s.stalls[most]) most = k;
    s.line.cause = static_cast<Stall>(most);
    out.push_back(std::move(s.line));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const LineTime& a, const LineTime& b) { return a.waiting + a.stalled > b.waiting + b.stalled; });
  return out;
}

}  // namespace

Result<Report> run(const Request& request) {
  check::Request r = request.kernel;
  if (r.is_ptx())
    return Error{Exit::kUsage,
                 fmt::format("{} is PTX; profile reads machine code, which NVRTC makes of CUDA C++", r.file)};
  r.arch = request.device.arch;
  ROOFGEN_TRY(const timing::Machine machine, timing::machine_of(request.device, request.sm_mhz));
  ROOFGEN_TRY(const check::Chosen chosen, check::choose_kernel(r));
  Report out;
  out.file = r.file;
  out.kernel = chosen.entry.name;
  out.compiler = chosen.compiled.compiler;
  out.device = request.device.name;
  out.arch = r.arch;
  out.sm_mhz = machine.clock_hz * 1e-6;
  out.grid = r.grid;
  out.block = r.block;
  out.smem_bytes = r.smem_bytes;
  ROOFGEN_CHECK(check::check_arguments(chosen.entry, r.args, out.notes));
  const PtxasReport ptxas = parse_ptxas_log(chosen.compiled.binary.log, chosen.entry.mangled);
  out.registers = ptxas.registers;
  out.spill_bytes = ptxas.spill_bytes;
  out.static_smem_bytes = ptxas.static_smem_bytes;

  const std::string& cubin = chosen.compiled.binary.cubin;
  std::vector<Result<sass::Code>> read = sass::read_code({{cubin, chosen.entry.mangled, r.arch}});
  if (!read[0]) return read[0].error();
  const sass::Code& code = *read[0];
  out.code_bytes = code.bytes();
  out.disassembler = sass::nvdisasm_path();
  out.unknown_opcodes = code.unknown;

  Memory memory(r.args);
  timing::LaunchRequest launch;
  launch.code = &code;
  launch.launch.grid = r.grid;
  launch.launch.block = r.block;
  launch.launch.dynamic_smem = r.smem_bytes;
  launch.launch.params = memory.params();
  launch.launch.variable = [&](const std::string& name) -> uint64_t {
    for (const sass::Variable& v : code.cubin.variables)
      if (v.name == name) return memory.variable(name, v.bytes, v.initial);
    return 0;
  };
  launch.launch.read = [&](uint64_t address, std::span<std::byte> to) { return memory.read(address, to); };
  if (r.max_instructions) launch.launch.max_steps = r.max_instructions;
  launch.trace_spans = request.trace_spans;
  launch.registers = out.registers;
  launch.smem_bytes = out.static_smem_bytes + r.smem_bytes;
  launch.buffer_bytes = memory.bytes();
  ROOFGEN_TRY(out.time, timing::launch_time(request.device, machine, std::move(launch)));

  const timing::SmTime& sm = out.time.sm;
  out.units = utilisation(machine, out.time);
  for (size_t i = 0; i < sm.stalls.size(); ++i) out.stalls[i] = sm.stalls[i] / std::max(1.0, sm.warp_cycles);
  out.issuing = sm.cycles > 0 ? static_cast<double>(sm.issues) / (machine.schedulers * sm.cycles) : 0;
  out.achieved_warps = sm.cycles > 0 ? sm.warp_cycles / sm.cycles : 0;
  conclude(out, machine);
  Result<std::vector<sass::TextLine>> lines = std::vector<sass::TextLine>();
  if (request.by_line) lines = sass::line_table(cubin, chosen.entry.mangled);
  if (!lines) return lines.error();
  out.lines = by_line(sm, *lines, [&](const std::string& file) { return chosen.compiled.own_name(file); });
  if (request.trace_spans) {
    for (const sass::Instruction& i : code.instructions) out.spellings.push_back(i.spelling);
    for (const sass::TextLine& l : *lines) out.places.push_back({chosen.compiled.own_name(l.file), l.line, 0});
  }
  for (const sass::Doubt& d : out.time.doubts) {
    const std::string at =
        d.index < lines->size() && (*lines)[d.index].line
            ? fmt::format("{}:{}", chosen.compiled.own_name((*lines)[d.index].file), (*lines)[d.index].line)
            : fmt::format("instruction 0x{:x}", 16 * d.index);
    out.doubts.push_back(fmt::format(
        "{}: {} ({} times)", at,
        d.is_branch ? "a branch on an unknown value, not taken" : "an unknown address, taken as coalesced", d.count));
  }
  out.confidence = !out.unknown_opcodes.empty() ? "low" : !out.doubts.empty() ? "medium" : "high";
  return out;
}

}  // namespace roofgen::profile

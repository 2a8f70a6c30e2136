#include "profile/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/sass/code.h"
#include "runtime/sass/disassembler.h"
#include "runtime/sass/line_table.h"
#include "runtime/sass/taken_shares.h"

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
  add("atomics on one address", sm.atomic_cycles);
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
    {Stall::kAtomic, "atomic operations on one address",
     "fewer atomic operations: sums within the CTA first, or more addresses"},
    {Stall::kCopies, "asynchronous copies", "more stages, so that copies begin earlier"},
    {Stall::kProducts, "warpgroup products", "more products in flight: another warpgroup, or a later wait"},
    {Stall::kPhase, "mbarriers", "more stages, so that copies begin earlier"},
    {Stall::kBarrier, "barriers", "fewer barriers, or more CTAs on an SM, so that others run meanwhile"},
    {Stall::kBranch, "branches", "fewer branches: unrolling, or predication"},
    {Stall::kFetch, "instruction cache", "less unrolling, so that the loop fits in the instruction cache"},
    {Stall::kNotSelected, "issue slots", "fewer instructions"}};

/// The pipe that warps wait for most.
Pipe contended(const timing::SmTime& sm, const sass::Code& code) {
  std::array<double, static_cast<size_t>(Pipe::kCount)> waiting{};
  for (size_t i = 0; i < sm.instructions.size(); ++i)
    waiting[static_cast<size_t>(code.instructions[i].opcode->pipe)] +=
        sm.instructions[i].stalls[static_cast<size_t>(Stall::kPipe)];
  return static_cast<Pipe>(std::max_element(waiting.begin(), waiting.end()) - waiting.begin());
}

void conclude(Report& r, const timing::Machine& m, const sass::Code& code) {
  const timing::LaunchTime& t = r.time;
  const Utilisation top = r.units.empty() ? Utilisation{} : r.units.front();
  if (t.ctas < m.sms) {
    r.limiter = fmt::format("parallelism: {:.0f} CTAs for {} SMs", t.ctas, m.sms);
    r.next = "more CTAs: smaller tiles, or a split of the sum";
    return;
  }
  if (top.share >= kBusy) {
    r.limiter = top.unit == "DRAM" || top.unit == "L2" ? top.unit + " bandwidth"
                : top.unit == "issue"                  ? "issue slots"
                                                       : "throughput of the " + top.unit;
    if (top.unit == "shared memory") r.limiter = "throughput of shared memory";
    if (top.unit.starts_with("atomics")) {
      r.limiter = kAdvice[static_cast<size_t>(Stall::kAtomic)].limiter;
      r.next = kAdvice[static_cast<size_t>(Stall::kAtomic)].next;
      return;
    }
    // Spilled registers fill L1 and L2 with their own accesses.
    if ((top.unit == "L1" || top.unit == "L2") &&
        r.stalls[static_cast<size_t>(Stall::kLocal)] > r.stalls[static_cast<size_t>(Stall::kGlobal)]) {
      r.limiter = kAdvice[static_cast<size_t>(Stall::kLocal)].limiter;
      r.next = kAdvice[static_cast<size_t>(Stall::kLocal)].next;
      return;
    }
    r.next = top.unit == "DRAM"            ? "fewer bytes: fusion, a smaller format, or reuse in L2"
             : top.unit == "L2"            ? "larger tiles, so that fewer bytes cross L2"
             : top.unit == "shared memory" ? "fewer conflicts, wider accesses, or larger tiles of registers"
             : top.unit == "issue" ? "fewer instructions: wider accesses, less address arithmetic, more unrolling"
             : top.unit == "L1"    ? "coalesced accesses: neighbouring lanes on neighbouring addresses"
                                   : fmt::format("fewer instructions of the {}", top.unit);
    return;
  }
  if (const double whole = std::ceil(t.waves); whole > 1 && whole / t.waves > 1.25) {
    r.limiter = fmt::format("tail of the grid: {:.2f} waves take as long as {:.0f}", t.waves, whole);
    r.next = "a number of CTAs that fills the last wave, smaller tiles, or persistent CTAs";
    return;
  }
  size_t most = 0;
  for (size_t i = 0; i < r.stalls.size(); ++i)
    if (static_cast<Stall>(i) != Stall::kNotSelected && r.stalls[i] > r.stalls[most]) most = i;
  for (const Advice& a : kAdvice)
    if (static_cast<size_t>(a.cause) == most) r.limiter = a.limiter, r.next = a.next;
  if (most == static_cast<size_t>(Stall::kPipe)) {
    const char* pipe = to_string(contended(t.sm, code));
    r.limiter = fmt::format("bursts of work for the {} pipe", pipe);
    r.next = fmt::format("other work between the instructions of the {} pipe, or fewer of them", pipe);
  }
}

/// The cycles in which an instruction occupies a unit, by the unit's name.
double busy_cycles(const timing::InstructionTime& i, const sass::Instruction& instruction, const std::string& unit) {
  if (unit == "issue") return static_cast<double>(i.issues);
  if (unit == "shared memory") return i.shared;
  if (unit == "L1") return i.l1;
  if (unit == "L2") return i.l2;
  if (unit == "DRAM") return i.dram;
  if (unit.starts_with("atomics")) return i.l2;
  return unit == fmt::format("{} pipe", to_string(instruction.opcode->pipe)) ? i.pipe : 0;
}

/// Lines of the source. `unit`: the one that limits, whose users come first; empty: none.
std::vector<LineTime> by_line(const timing::SmTime& sm, const std::vector<Where>& places, const sass::Code& code,
                              const std::string& unit) {
  struct Sum {
    LineTime line;
    timing::StallCycles stalls{};
  };
  std::map<std::pair<std::string, int>, Sum> all;
  for (size_t i = 0; i < sm.instructions.size() && i < places.size(); ++i) {
    const timing::InstructionTime& one = sm.instructions[i];
    if (!one.issues) continue;
    Sum& s = all[{places[i].file, places[i].line}];
    s.line.source = {places[i].file, places[i].line, 0};
    s.line.issues += one.issues;
    s.line.waiting += one.blamed;
    if (!unit.empty()) s.line.busy += busy_cycles(one, code.instructions[i], unit);
    for (size_t k = 0; k < one.stalls.size(); ++k) s.stalls[k] += one.stalls[k];
  }
  std::vector<LineTime> out;
  const double whole = std::max(1.0, sm.warp_cycles);
  double busy = 0;
  for (const auto& [at, s] : all) busy += s.line.busy;
  for (auto& [at, s] : all) {
    if (busy > 0) s.line.busy /= busy;
    s.line.waiting /= whole;
    s.line.stalled = waits(s.stalls) / whole;
    size_t most = 0;
    for (size_t k = 0; k < s.stalls.size(); ++k)
      if (static_cast<Stall>(k) != Stall::kNotSelected && s.stalls[k] > s.stalls[most]) most = k;
    s.line.cause = static_cast<Stall>(most);
    out.push_back(std::move(s.line));
  }
  std::stable_sort(out.begin(), out.end(), [](const LineTime& a, const LineTime& b) {
    return a.busy != b.busy ? a.busy > b.busy : a.waiting + a.stalled > b.waiting + b.stalled;
  });
  return out;
}

}  // namespace

timing::LaunchRequest launch_request(const sass::Code& code, Subject subject) {
  timing::LaunchRequest out;
  out.code = &code;
  out.launch = std::move(subject.launch);
  out.launch.variable = [&code, address_of = std::move(subject.address_of)](const std::string& name) -> uint64_t {
    for (const sass::Variable& v : code.cubin.variables)
      if (v.name == name && address_of) return address_of(v);
    return 0;
  };
  out.registers = subject.binary->registers;
  out.smem_bytes = subject.binary->static_smem_bytes + subject.launch.dynamic_smem;
  out.buffer_bytes = subject.buffer_bytes;
  out.dram_bytes = subject.dram_bytes;
  return out;
}

Result<Report> profile_launch(const Device& device, Subject subject, const Options& options) {
  ROOFGEN_TRY(const timing::Machine machine, timing::machine_of(device, options.sm_mhz));
  const Binary& binary = *subject.binary;
  std::vector<Result<sass::Code>> read = sass::read_code({{binary.cubin, binary.entry, binary.arch}});
  if (!read[0]) return read[0].error();
  const sass::Code& code = *read[0];
  Report out;
  out.file = subject.file;
  out.kernel = subject.kernel;
  out.compiler = subject.compiler;
  out.device = device.name;
  out.arch = binary.arch;
  out.grid = subject.launch.grid;
  out.block = subject.launch.block;
  out.smem_bytes = subject.launch.dynamic_smem;
  out.registers = binary.registers;
  out.spill_bytes = binary.spill_bytes;
  out.static_smem_bytes = binary.static_smem_bytes;
  out.code_bytes = code.bytes();
  out.unknown_opcodes = code.unknown;

  timing::LaunchRequest launch = launch_request(code, subject);
  std::vector<sass::TextLine> lines;
  if (options.by_line || !subject.sites.empty()) {
    ROOFGEN_TRY(lines, sass::line_table(binary.cubin, binary.entry));
  }
  if (!subject.sites.empty()) launch.launch.taken_share = sass::taken_shares(code, lines, subject.sites);
  launch.trace_spans = options.trace_spans;
  ROOFGEN_TRY(out.time, timing::launch_time(device, machine, std::move(launch)));
  out.sm_mhz = out.time.clock_hz * 1e-6;

  const timing::SmTime& sm = out.time.sm;
  out.units = utilisation(timing::at_clock(machine, out.time.clock_hz), out.time);
  for (size_t i = 0; i < sm.stalls.size(); ++i) out.stalls[i] = sm.stalls[i] / std::max(1.0, sm.warp_cycles);
  out.issuing = sm.cycles > 0 ? static_cast<double>(sm.issues) / (machine.schedulers * sm.cycles) : 0;
  out.achieved_warps = sm.cycles > 0 ? sm.warp_cycles / sm.cycles : 0;
  conclude(out, machine, code);
  std::vector<Where> places;
  for (const sass::TextLine& l : lines) places.push_back(subject.place(l.file, l.line));
  const bool unit_limits = !out.units.empty() && out.units.front().share >= kBusy;
  out.lines = by_line(sm, places, code, unit_limits ? out.units.front().unit : "");
  for (const sass::Doubt& d : out.time.doubts) {
    const std::string at = d.index < places.size() && places[d.index].line
                               ? fmt::format("{}:{}", places[d.index].file, places[d.index].line)
                               : fmt::format("instruction 0x{:x}", 16 * d.index);
    out.doubts.push_back(fmt::format(
        "{}: {} ({} times)", at,
        d.share ? fmt::format("a branch on a computed value, taken as in the simulated run, {:.1f} %", 100 * *d.share)
        : d.is_branch ? "a branch on an unknown value, not taken"
                      : "an unknown address, taken as coalesced",
        d.count));
  }
  if (options.trace_spans)
    for (const sass::Instruction& i : code.instructions) out.spellings.push_back(i.spelling);
  out.places = std::move(places);
  if (out.time.sm.broken_waits)
    out.doubts.push_back(fmt::format("{} waits at mbarriers that nothing ended, let pass", out.time.sm.broken_waits));
  const bool unsure =
      out.time.sm.broken_waits > 0 || std::any_of(out.time.doubts.begin(), out.time.doubts.end(),
                                                  [](const sass::Doubt& d) { return !d.share.has_value(); });
  const auto images = std::count_if(code.instructions.begin(), code.instructions.end(),
                                    [](const sass::Instruction& i) { return i.opcode->pipe == sass::Pipe::kTex; });
  if (images)
    out.doubts.push_back(
        fmt::format("{} instruction{} on textures or surfaces: their traffic and latency are not modelled", images,
                    images == 1 ? "" : "s"));
  out.confidence = !out.unknown_opcodes.empty() || images ? "low" : unsure ? "medium" : "high";
  return out;
}

Result<Report> profile_generated(const Device& device, const GeneratedKernel& kernel, const Options& options) {
  Subject s;
  s.file = to_string(kernel.program.schedule);
  s.kernel = kernel.program.entry;
  s.compiler = kernel.compiler;
  s.binary = &kernel.binary;
  s.launch = timing::stream_launch(kernel.launch, kernel.read);
  s.dram_bytes = kernel.dram_bytes;
  s.sites = kernel.sites;
  const std::vector<Where>& lines = kernel.program.line_map.lines;
  s.place = [&lines](const std::string& file, int line) {
    const auto at = static_cast<size_t>(std::max(line, 1) - 1);
    return at < lines.size() && lines[at].line ? lines[at] : Where{file, line, 0};
  };
  return profile_launch(device, std::move(s), options);
}

}  // namespace roofgen::profile

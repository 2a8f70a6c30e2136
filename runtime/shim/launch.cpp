// Kernels of the simulated driver: loads PTX, runs CTAs, and turns findings into a GPU's error codes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <utility>

#include "base/demangle.h"
#include "base/subprocess.h"
#include "runtime/shim/fatbin.h"
#include "runtime/shim/report.h"
#include "runtime/shim/state.h"
#include "runtime/sim/call_sites.h"
#include "runtime/sim/lock_order.h"
#include "runtime/sim/machine.h"
#include "runtime/sim/ptx_parser.h"
#include "runtime/sim/schedule.h"

namespace roofgen::shim {
namespace {

/// The default of the simulator's executor: above it a CTA counts as endless.
constexpr uint64_t kMostInstructions = 1'000'000'000;
constexpr size_t kMostPtx = size_t{64} << 20, kMostJudged = size_t{1} << 20;

/// The error that a GPU reports for a finding.
Status status_of(const std::string& kind) {
  if (kind == "out-of-bounds" || kind == "write-to-input") return kIllegalAddress;
  if (kind == "misaligned") return kMisaligned;
  if (kind == "instruction-limit" || kind == "deadlock") return kLaunchTimeout;  // a GPU would hang
  return kLaunchFailed;
}

std::string text_of(const Finding& f) {
  std::string at = f.ptx.line > 0 ? fmt::format(" at {}:{}", f.ptx.file, f.ptx.line) : "";
  if (!f.source.file.empty()) at += fmt::format(" ({}:{})", f.source.file, f.source.line);
  return fmt::format("{}: kernel {}, CTA {}, thread {}{}: {}", f.kind, f.kernel, f.cta, f.thread, at, f.message);
}

/// The instruction in a line of PTX, counted from 1.
std::string line_of(const std::string& text, int number) {
  std::istringstream in(text);
  std::string line;
  while (number > 0 && std::getline(in, line)) --number;
  std::replace(line.begin(), line.end(), '\t', ' ');
  line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }), line.end());
  const size_t begin = line.find_first_not_of(' '), end = line.find_last_not_of(" \r;");
  return number > 0 || begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
}

Doer doer_of(const sim::Kernel& kernel) {
  return {demangled(kernel.name), kernel.name, sim::LockOrder::may_follow(kernel)};
}

/// Whether a file is a header of the system or of a CUDA toolkit (also from a wheel). A finding there names the line of
/// the program that calls it.
bool is_library(const std::string& file) {
  return file.find("/include/") != file.npos &&
         (file.starts_with("/usr/") || file.find("/targets/") != file.npos || file.find("/nvidia/") != file.npos);
}

/// Findings of a run on copies of memory in which try_waits end without success, as they may at their time limit (PTX
/// ISA, mbarrier.try_wait): a kernel that waits once, without a loop, goes on too early.
std::vector<Finding> findings_in_vain(sim::LaunchState state, uint64_t ctas, RunOptions options) {
  const auto tries = [](const sim::Inst& in) {
    return in.kind == sim::Kind::kMbarrier && in.sub == static_cast<uint8_t>(sim::MbarrierOp::kTry);
  };
  std::vector<Finding> findings;
  if (std::ranges::none_of(state.kernel.code, tries)) return findings;
  sim::PrivateLines copies(state.memory.all());
  state.memory = sim::MemoryView(state.memory.all(), copies, true);
  state.prerequisites = nullptr;
  state.conduct = nullptr;
  state.accesses = nullptr;
  state.printed = nullptr;
  options.vain_waits = true;
  sim::Counter counter(state.kernel);
  sim::run_ctas(state, counter, ctas, options, findings);
  std::erase_if(findings, [](const Finding& f) { return f.kind == "out-of-memory"; });  // by the copies
  for (Finding& f : findings) f.message += kWithVainWaits;
  return findings;
}

}  // namespace

Status State::load(const char* call, const void* image, std::string* why, Module** out) {
  const auto refused = [&](Status status, std::string message) {
    *why = message;
    return refuse(call, status, message);
  };
  if (!image) return refused(kInvalidValue, "no image");
  const int arch = static_cast<int>(device.integer("arch"));
  const auto* bytes = static_cast<const char*>(image);
  if (std::strncmp(bytes, "\177ELF", 4) == 0)
    return refused(kNoBinary, "a CUBIN is machine code; the simulator runs PTX only");
  if (is_fatbin(image)) {
    const auto ptx = ptx_in_fatbin(image, arch);
    return ptx ? load(call, ptx->c_str(), why, out) : refused(kNoBinary, ptx.error().message);
  }
  const size_t size = strnlen(bytes, kMostPtx + 1);
  if (size > kMostPtx) return refused(kInvalidImage, "over 64 MiB: no PTX");
  auto module = std::make_unique<Module>();
  module->text.assign(bytes, size);
  if (module->text.find(".version") == std::string::npos) return refused(kInvalidImage, "neither PTX nor a CUBIN");
  module->file = "module.ptx";
  auto parsed = sim::parse_ptx(module->text, module->file);
  if (!parsed) {
    module->ptx.target = target_in(module->text);
    const std::string wrong = ptxas_error(*module);
    const bool unsupported = wrong.empty() && !module->ptxas_log->empty();  // ptxas accepts it
    return refused(unsupported ? kNotSupported : kInvalidPtx, wrong.empty() ? to_string(parsed.error()) : wrong);
  }
  module->ptx = std::move(*parsed);
  if (!runs_on(module->ptx.target, arch))
    return refused(kNoBinary, fmt::format("the PTX is for {}, the device is sm_{}", module->ptx.target, arch));
  const std::string wrong = decode(*module);
  if (!wrong.empty()) {
    unload(*module);
    return refused(kInvalidPtx, wrong);
  }
  *out = modules.add(std::move(module));
  return kSuccess;
}

/// Decodes all kernels, and returns why a GPU's driver refuses the module; empty: it does not. Kernels that only the
/// simulator refuses are in Module::unsupported.
std::string State::decode(Module& module) {
  module.has_dependent_launches = module.text.find("griddepcontrol.") != std::string::npos;
  for (const sim::PtxFunction& f : module.ptx.functions)
    for (const sim::PtxStmt& s : f.body)
      if (s.kind == sim::PtxStmt::Kind::kInstruction && !sim::is_ptx_instruction(s.name))
        return fmt::format("{}:{}: unknown instruction '{}'", module.file, s.line, s.name.substr(0, 120));
  const auto place = [&](const sim::PtxVar& v) -> Result<uint64_t> {
    Address at = 0;
    size_t bytes = 0;
    if (variable(module, std::string(v.name), &at, &bytes, &v.init) == kSuccess) return at;
    return Error{Exit::kFailed, fmt::format("no memory for {}", v.name)};
  };
  for (const sim::PtxFunction& entry : module.ptx.functions) {
    if (!entry.is_entry || !entry.defined) continue;
    const std::string name(entry.name);
    auto kernel = sim::decode_kernel(module.ptx, entry, sim::OpcodeTable::host(), place, name + ".ptx");
    if (!kernel) {
      // ptxas tells errors from unsupported features, where the simulator cannot. It is slow on large modules.
      const bool known = kernel.error().message.ends_with("not supported") || module.text.size() > kMostJudged;
      if (std::string wrong = known ? "" : ptxas_error(module); !wrong.empty()) return wrong;
      module.unsupported[name] = to_string(kernel.error());
      continue;
    }
    if (kernel->static_shared > kMostStaticSmem)
      return fmt::format("{}: {} bytes of static shared memory; a kernel can have {}", name, kernel->static_shared,
                         kMostStaticSmem);
    auto made = std::make_unique<Function>();
    made->kernel = std::move(*kernel);
    made->module = &module;
    std::copy_n(made->kernel.required_cluster, 3, made->cluster);
    made->max_dynamic_smem = static_cast<int>(kMostStaticSmem - made->kernel.static_shared);
    functions_.insert(made.get());
    module.functions[name] = std::move(made);
  }
  return "";
}

Status State::variable(Module& module, const std::string& name, Address* out, size_t* bytes,
                       const std::vector<uint8_t>* init) {
  for (const sim::PtxVar& v : module.ptx.globals) {
    if (v.name != name || v.is_extern) continue;
    *bytes = v.bytes();
    if (auto known = module.variables.find(name); known != module.variables.end())
      return *out = known->second, kSuccess;
    if (v.managed) {
      if (Status status = allocate_managed(v.bytes(), out); status != kSuccess) return status;
    } else if (auto made = memory_.allocate(v.bytes(), name, nullptr)) {
      *out = *made;
    } else {
      return kOutOfMemory;
    }
    module.variables[name] = *out;  // before the initial value: two variables can hold each other's address
    std::vector<uint8_t> value = init ? *init : initial_value(module, v);
    value.resize(v.bytes());  // a variable without initialiser is zero
    if (v.managed)
      std::memcpy(reinterpret_cast<void*>(*out), value.data(), value.size());
    else if (!memory_.write(*out, std::as_bytes(std::span(value))))
      return kOutOfMemory;
    return kSuccess;
  }
  return kNotFound;
}

std::vector<uint8_t> State::initial_value(Module& module, const sim::PtxVar& v) {
  std::vector<uint8_t> value = v.init;
  const auto& functions = module.ptx.functions;
  for (const sim::PtxVar::Pointer& p : v.pointers) {
    Address to = 0;
    size_t size = 0;
    const auto f = std::ranges::find_if(functions, [&](const auto& one) { return one.defined && one.name == p.to; });
    if (f != functions.end())
      to = sim::address_of_function(static_cast<size_t>(f - functions.begin()));
    else if (variable(module, std::string(p.to), &to, &size) != kSuccess)
      continue;
    to += p.displacement;
    std::memcpy(&value[p.at], &to, sizeof to);
  }
  return value;
}

Status State::function(const char* call, Module& module, const std::string& name, Function** out) {
  if (auto known = module.functions.find(name); known != module.functions.end())
    return *out = known->second.get(), kSuccess;
  if (auto why = module.unsupported.find(name); why != module.unsupported.end())
    return refuse(call, kNotSupported, why->second);
  return refuse(call, kNotFound, "the module has no kernel " + name);
}

void State::unload(Module& module) {
  for (const auto& [name, function] : module.functions) functions_.erase(function.get());
  for (const auto& [name, at] : module.variables) managed.count(at) ? release(at) : memory_.release(at);
  module.variables.clear();
}

Function* State::function_of(Handle handle) const {
  Function* const function = static_cast<Function*>(handle);
  return functions_.count(function) ? function : nullptr;
}

double State::clock_mhz() const {
  return device.has("clock_sustained_mhz") ? device.at("clock_sustained_mhz") : device.at("clock_fp32_mhz");
}

/// Launch overhead plus the largest of three times: warp-instructions at the issue rate of the schedulers with a warp,
/// L2 sectors at the L2 rate, distinct sectors at the DRAM rate. Without latencies and caches it serves to exercise the
/// timing path, not to rank kernels.
double State::modelled_ns(const LaunchOp& op, const Counts& counts) const {
  const double ctas = static_cast<double>(op.launch.grid.count()), sms = device.at("sms");
  const double warps = static_cast<double>((op.launch.block.count() + 31) / 32);
  const double per_sm =
      std::min(device.has("subpartitions") ? device.at("subpartitions") : 4, warps * std::max(1.0, ctas / sms));
  const double issue =
      static_cast<double>(counts.warp_instructions) / (std::min(ctas, sms) * per_sm) * 1e3 / clock_mhz();
  const double l2 =
      32.0 * static_cast<double>(counts.l2_read_sectors + counts.l2_write_sectors) / device.at("l2_sustained_gb_s");
  const double dram = 32.0 * static_cast<double>(counts.unique_read_sectors + counts.unique_write_sectors) /
                      device.at("dram_sustained_gb_s");
  return 1e3 * device.at("launch_us") + std::max({issue, l2, dram});
}

Status State::execute(const LaunchOp& op) {
  const sim::Kernel& kernel = op.function->kernel;
  const uint64_t ctas = op.launch.grid.count();
  std::vector<Finding> findings;
  std::string printed;
  uint64_t workspace = 0;
  if (op.cooperative) {
    auto made = memory_.allocate(8, "the grid's barrier", nullptr);
    const std::vector<std::byte> zeros(8);
    if (!made || !memory_.write(*made, zeros)) return kOutOfMemory;
    workspace = *made;
  }
  sim::LaunchState state{kernel, op.launch, op.params, memory_, memory_.buffers(), kMostInstructions};
  state.timer_begin_ns = static_cast<uint64_t>(now_ns);
  state.timer_ns = 1e3 / clock_mhz();
  state.clock_begin = static_cast<uint64_t>(now_ns * clock_mhz() / 1e3);
  state.sms = static_cast<uint32_t>(device.integer("sms"));
  state.grid_workspace = workspace;
  state.printed = &printed;
  if (!strict_) state.go_on = keeps_going_ ? sim::GoOn::kAlways : sim::GoOn::kUndefined;
  sim::Prerequisites* const before = op.prerequisites.get();
  sim::Prerequisites::Conduct conduct;
  std::optional<sim::AccessHistory> accesses;
  if (before && op.launch.overlap) state.prerequisites = before, state.conduct = &conduct;
  const bool precedes = before && op.function->module->has_dependent_launches;
  const bool follows = running_ && races.follows(*running_);
  if (precedes || follows) state.accesses = &accesses;
  RunOptions options;
  options.max_findings = keeps_going_ ? std::numeric_limits<int>::max() : 1;
  std::vector<Finding> in_vain;
  if (!std::exchange(op.function->waited_in_vain, true)) in_vain = findings_in_vain(state, ctas, options);
  sim::Counter counter(kernel);
  options.threads = threads_;
  sim::run_ctas(state, counter, ctas, options, findings);
  const bool fails = state.stopped && !keeps_going_;
  for (Finding& f : in_vain) {
    const auto same = [&f](const Finding& known) { return known.kind == f.kind && known.ptx.line == f.ptx.line; };
    if (!fails && std::ranges::none_of(findings, same)) findings.push_back(std::move(f));
  }
  if (precedes && accesses)
    before->add(kernel.name, *accesses, *state.buffers, state.conduct);
  else if (before)
    *before = {};
  if (follows && accesses) look_for_races(*running_, doer_of(kernel), races.of(*accesses, *state.buffers, workspace));
  if (workspace) memory_.release(workspace);
  if (!printed.empty()) {
    std::fwrite(printed.data(), 1, printed.size(), stdout);
    std::fflush(stdout);
  }
  const Counts counts = counter.finish();
  now_ns += modelled_ns(op, counts);
  Report::instance().launched(kernel.name, counts);
  if (std::ranges::any_of(kernel.code, [](const sim::Inst& in) { return in.flags & sim::kFlagDecides; }))
    for (const SiteCounts& s : counter.sites(true))
      if (s.decides) Report::instance().decides(kernel.name, s.source.line > 0 ? s.source : s.ptx);
  const std::string& ptx = op.function->module->text;
  for (Finding& f : findings) {
    if (allows_unfenced_ && f.kind == "unfenced") continue;
    if (is_library(f.source.file))
      if (const Where caller = sim::CallSites(ptx, is_library).of(f.ptx.line); caller.line) f.source = caller;
    log("finding " + text_of(f));
    Report::instance().found(f, line_of(ptx, f.ptx.line));
  }
  if (!state.stopped || keeps_going_) return kSuccess;
  return findings.back().kind == "assert" ? kAssert : status_of(findings.back().kind);
}

// ---- Register counts of kernels, from ptxas if a toolkit has it: once per module -------------------

namespace {

/// $ROOFGEN_PTXAS, else the ptxas of a toolkit, else the one on PATH. Empty: there is none.
std::string find_ptxas() {
  if (const char* own = std::getenv("ROOFGEN_PTXAS")) return find_program(own, "ptxas", {});
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(name); home && *home)
      if (std::string found = find_program(home + std::string("/bin/ptxas"), "ptxas", {}); !found.empty()) return found;
  const std::string usual = find_program("/usr/local/cuda/bin/ptxas", "ptxas", {});
  return usual.empty() ? find_program("", "ptxas", {}) : usual;
}

}  // namespace

/// ptxas's output on the module; empty if there is no ptxas.
const std::string& State::ptxas_log(Module& module) {
  if (module.ptxas_log) return *module.ptxas_log;
  module.ptxas_log = "";
  const std::string ptxas = find_ptxas();
  if (ptxas.empty()) {
    log("no register counts: no ptxas (ROOFGEN_PTXAS, CUDA_HOME, PATH)");
    return *module.ptxas_log;
  }
  // Code for the device, unless the PTX is of one architecture alone.
  const std::string target(module.ptx.target), last = target.empty() ? "" : target.substr(target.size() - 1);
  std::vector<std::string> arguments = {
      ptxas,
      "-v",
      "-arch=" + (last == "a" || last == "f" ? target : fmt::format("sm_{}", device.integer("arch"))),
      "-o",
      "/dev/null",
      "/dev/stdin"};
  if (module.max_registers > 0) arguments.push_back(fmt::format("-maxrregcount={}", module.max_registers));
  if (const auto run = run_process({.argv = arguments, .input = std::string(module.text)}))
    module.ptxas_log = run->out + run->err;
  else
    log("no register counts: " + ptxas + " did not run");
  return *module.ptxas_log;
}

std::string State::ptxas_error(Module& module) {
  const std::vector<Diagnostic> errors = parse_errors(ptxas_log(module));
  // An older ptxas than the PTX is no judge of it.
  if (errors.empty() || errors[0].message.find(".version") != std::string::npos) return "";
  return fmt::format("{}:{}: {}", module.file, errors[0].line, errors[0].message);
}

const std::optional<PtxasReport>& State::compiled(const Function& function) {
  if (function.report) return *function.report;
  const std::string& text = ptxas_log(*function.module);
  function.report = parse_ptxas_log(text, function.kernel.name);
  if ((*function.report)->found) return *function.report;
  if (!text.empty())
    log(fmt::format("registers of {} are not known: ptxas: {}", function.kernel.name, text.substr(0, 200)));
  return function.report.emplace(std::nullopt);
}

int State::most_threads_of(const Function& f) {
  const uint32_t* declared = f.kernel.max_threads[0] ? f.kernel.max_threads : f.kernel.required_threads;
  const int most = declared[0] ? static_cast<int>(declared[0] * declared[1] * declared[2]) : kMostThreads;
  const auto& report = compiled(f);
  return report ? std::min(most, most_threads(report->registers)) : most;
}

}  // namespace roofgen::shim

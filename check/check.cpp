#include "check/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "base/demangle.h"
#include "base/suggest.h"
#include "base/units.h"
#include "check/in_double.h"
#include "check/kernel.h"
#include "check/views.h"
#include "runtime/compile/log.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "runtime/sim/call_sites.h"
#include "runtime/sim/doubles.h"
#include "runtime/sim/tensor_map.h"

namespace roofgen::check {
namespace {

/// Replaces the file name that NVRTC made absolute by the user's name in a message.
void use_own_name(std::string& text, const Request& r) {
  const std::string made = "/" + r.file + ":";
  for (size_t at = text.find(made); at != std::string::npos; at = text.find(made, at + 1))
    if (at == 0 || text[at - 1] == ' ') text.erase(at, 1);
}

/// A quarter of the machine's memory, because the simulator needs two bytes per byte touched; at most 32 GiB.
uint64_t default_memory() {
  const uint64_t machine = static_cast<uint64_t>(std::max(0l, sysconf(_SC_PHYS_PAGES))) *
                           static_cast<uint64_t>(std::max(0l, sysconf(_SC_PAGESIZE)));
  return std::clamp(machine / 4, uint64_t{1} << 28, uint64_t{32} << 30);
}

/// Maps places to the user's own files: code of a toolkit header is attributed to the line that called it.
class OwnPlaces {
 public:
  OwnPlaces(const Request& r, const Compiled& compiled)
      : request_(r),
        compiled_(compiled),
        own_directories_(own_directories(r)),
        call_sites_(compiled.binary.ptx, [this](const std::string& file) { return is_library(file); }) {}

  Where innermost(int ptx_line) const {
    return sim::CallSites(compiled_.binary.ptx, [](const std::string&) { return false; }).of(ptx_line);
  }
  /// " (in inner, called at k.cu:4, k.cu:7)" for code of the user that was inlined.
  std::string callers(int ptx_line) const {
    const sim::CallSites::Inlined inlined = call_sites_.inlined(ptx_line);
    if (inlined.callers.empty()) return "";
    std::string at;
    for (const Where& w : inlined.callers)
      at += fmt::format("{}{}:{}", at.empty() ? "" : ", ", compiled_.own_name(w.file), w.line);
    return fmt::format(" ({}called at {})",
                       inlined.function.empty() ? "" : fmt::format("in {}, ", function_of(inlined.function)), at);
  }
  /// True if the place was in a toolkit header.
  bool replace(Where& source, int ptx_line) const {
    const bool library = is_library(source.file) || source.line == 0;
    const Where caller = library ? call_sites_.of(ptx_line) : Where{};
    if (caller.line) source = caller;
    source.file = compiled_.own_name(source.file);
    return caller.line != 0;
  }

 private:
  static bool is_below(const std::filesystem::path& file, const std::filesystem::path& directory) {
    return !directory.empty() &&
           std::mismatch(directory.begin(), directory.end(), file.begin(), file.end()).first == directory.end();
  }
  static std::filesystem::path canonical(const std::filesystem::path& path) {
    std::error_code ignored;
    const auto out = std::filesystem::weakly_canonical(path, ignored);
    return out.has_filename() ? out : out.parent_path();
  }
  /// Include directories that are no toolkit's, and the file's own directory.
  static std::vector<std::filesystem::path> own_directories(const Request& r) {
    std::vector<std::filesystem::path> out;
    std::error_code ignored;
    for (const std::string& d : r.include_dirs)
      if (const auto dir = canonical(d.empty() ? "." : d);
          !std::filesystem::exists(dir / "crt" / "host_defines.h", ignored))
        out.push_back(dir);
    return out;
  }

  bool is_library(const std::string& file) const {
    const auto [known, fresh] = known_.try_emplace(file, false);
    if (!fresh) return known->second;
    // PTX may be from another machine, so only names can tell.
    const bool named_so = file.find("/targets/") != file.npos || file.find("/cuda/include/") != file.npos;
    if (request_.is_ptx()) return known->second = named_so;
    const std::string name = compiled_.own_name(file);
    if (name == request_.file) return false;
    // NVRTC has built-in headers, whose names are no files.
    std::error_code ignored;
    if (!std::filesystem::exists(name, ignored)) return known->second = true;
    const std::filesystem::path at = canonical(name);
    const bool own =
        std::any_of(own_directories_.begin(), own_directories_.end(), [&](const auto& d) { return is_below(at, d); });
    return known->second = is_below(at, canonical(nvrtc_info().include_dir)) || (named_so && !own);
  }

  const Request& request_;
  const Compiled& compiled_;
  std::vector<std::filesystem::path> own_directories_;
  mutable std::map<std::string, bool> known_;
  sim::CallSites call_sites_;  // its constructor uses the members above
};

/// Device memory of the arguments, freed at the end.
class Buffers {
 public:
  Buffers(Executor& executor, const std::vector<Argument>& arguments)
      : executor_(executor), all_arguments_(arguments) {}
  ~Buffers() {
    for (const DevicePtr p : all_) executor_.release(p);
  }
  Result<DevicePtr> add(const Argument& a) {
    Fill contents;
    if (a.read_only) contents = [&a](uint64_t offset, std::span<std::byte> out) { fill(a.fill, a.type, offset, out); };
    ROOFGEN_TRY(const DevicePtr at, executor_.allocate(a.bytes(), a.name, contents));
    all_.push_back(at);
    if (a.read_only || std::holds_alternative<Nothing>(a.fill)) return at;
    std::vector<std::byte> bytes(a.bytes());
    fill(a.fill, a.type, 0, bytes);
    ROOFGEN_CHECK(executor_.write(at, bytes));
    return at;
  }
  /// The bytes of an argument with the addresses of its buffers, which are added to `at`.
  Result<std::vector<std::byte>> pass(const Argument& a, std::map<const Argument*, DevicePtr>& at) {
    if (!a.is_pointer() && a.fields.empty()) return a.value;
    std::vector<std::byte> bytes = a.value;
    if (a.fields.empty()) {
      DevicePtr address;
      if (a.size) {
        ROOFGEN_TRY(address, add(a));
        at[&a] = address;
      } else if (!a.buffer.empty()) {
        const auto to = std::find_if(all_arguments_.begin(), all_arguments_.end(), [&](const Argument& other) {
          return other.size && other.symbol.empty() && other.name == a.buffer;
        });
        address.address = at.at(&*to).address + a.begin;
      }
      if (a.image) {
        ROOFGEN_TRY(address, object_of(*a.image, address, a.name));
      }
      bytes.resize(a.passed_bytes());
      if (a.map)
        sim::view_of(*a.map, address.address).encode(bytes.data());
      else
        std::memcpy(bytes.data(), &address.address, bytes.size());
    }
    for (const Argument& f : a.fields) {
      ROOFGEN_TRY(const std::vector<std::byte> field, pass(f, at));
      std::copy(field.begin(), field.end(), bytes.begin() + static_cast<ptrdiff_t>(f.offset));
    }
    return bytes;
  }

 private:
  /// A texture or surface object.
  Result<DevicePtr> object_of(sim::Image image, DevicePtr at, const std::string& name) {
    image.address = at.address;
    const auto describe = [image](uint64_t offset, std::span<std::byte> out) {
      std::byte description[sim::kImageBytes];
      image.encode(description);
      std::copy_n(description + offset, out.size(), out.begin());
    };
    ROOFGEN_TRY(const DevicePtr object, executor_.allocate(sim::kImageBytes, "the object of " + name, describe));
    all_.push_back(object);
    return object;
  }

  Executor& executor_;
  const std::vector<Argument>& all_arguments_;
  std::vector<DevicePtr> all_;
};

/// Sets a __device__ or __constant__ variable, like cudaMemcpyToSymbol.
Result<DevicePtr> set_variable(Executor& executor, ModuleId module, const Argument& a) {
  std::vector<std::string> names;
  for (const ModuleVariable& v : executor.variables(module)) {
    const std::string full = demangled(v.name);
    names.push_back(full);
    if (a.symbol != v.name && a.symbol != full && !full.ends_with("::" + a.symbol)) continue;
    if (a.bytes() > v.bytes)
      return Error{Exit::kUsage,
                   fmt::format("{} has {} bytes, the variable {} has {}", a.name, a.bytes(), full, v.bytes)};
    if (std::holds_alternative<Nothing>(a.fill)) return v.at;
    std::vector<std::byte> bytes(a.bytes());
    fill(a.fill, a.type, 0, bytes);
    ROOFGEN_CHECK(executor.write(v.at, bytes));
    return v.at;
  }
  return Error{Exit::kUsage, fmt::format("the kernel uses no variable \"{}\"{}", a.symbol,
                                         names.empty() ? "; it uses none" : did_you_mean(a.symbol, names))};
}

/// The error of a refused launch, with the user's name of the kernel.
Error launch_error(Error e, const std::string& mangled, const std::string& name) {
  e.exit = Exit::kUsage;
  if (e.message.starts_with(mangled + ":")) e.message = name + e.message.substr(mangled.size());
  return e;
}

/// Largest shared memory of a CTA, static and dynamic (CUDA C++ Programming Guide, technical specifications per compute
/// capability).
uint64_t most_shared_bytes(const std::string& arch) {
  const int number = arch.starts_with("sm_") ? std::atoi(arch.c_str() + 3) : 0;
  const uint64_t kib = number < 80                                     ? 64
                       : number == 80 || number == 87                  ? 163
                       : (number > 80 && number < 90) || number >= 120 ? 99
                                                                       : 227;
  return kib * 1024;
}

Result<BufferReport> inspect(Executor& executor, DevicePtr at, const Argument& a, const Outputs& outputs) {
  BufferReport out;
  out.name = a.name;
  out.elements = *a.size;
  out.compared = a.expect.has_value();
  std::vector<std::byte> bytes(a.bytes()), wanted;
  std::vector<bool> written(a.bytes());
  ROOFGEN_CHECK(executor.read(at, bytes, &written));
  if (a.expect && !std::holds_alternative<Nothing>(a.expect->contents)) {
    wanted.resize(a.bytes());
    fill(a.expect->contents, a.type, 0, wanted);
  }
  const uint32_t size = bytes_of(a.type);
  std::vector<bool> ignored(*a.size);
  if (a.expect)
    for (const auto& [begin, end] : a.expect->ignored)
      std::fill(ignored.begin() + static_cast<ptrdiff_t>(begin), ignored.begin() + static_cast<ptrdiff_t>(end), true);
  out.ignored = static_cast<uint64_t>(std::count(ignored.begin(), ignored.end(), true));
  for (uint64_t i = 0; i < *a.size; ++i) {
    const bool there = std::all_of(written.begin() + static_cast<ptrdiff_t>(i * size),
                                   written.begin() + static_cast<ptrdiff_t>((i + 1) * size), [](bool b) { return b; });
    if (!there) {
      ++out.unwritten;
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(i * size), size, std::byte{0});
    }
    if (wanted.empty() || ignored[i]) continue;
    const std::byte *want = &wanted[i * size], *got = &bytes[i * size];
    // 64-bit integers are compared exactly.
    const bool same = is_integer(a.type) && a.expect->absolute == 0 && a.expect->relative == 0
                          ? std::equal(want, want + size, got)
                          : agrees(decode(a.type, got), decode(a.type, want), *a.expect);
    if (there && same) continue;
    if (out.mismatches++ == 0)
      out.first = there
                      ? fmt::format("{}[{}] is {}, {} was expected", a.name, i, shown(a.type, got), shown(a.type, want))
                      : fmt::format("{}[{}] was never written, {} was expected", a.name, i, shown(a.type, want));
    if (!there) continue;
    const double error = distance(a.type, got, want), of = std::fabs(decode(a.type, want));
    out.largest_error = std::max(out.largest_error, error);
    if (of > 0 && std::isfinite(of)) out.largest_relative_error = std::max(out.largest_relative_error, error / of);
  }
  if (!a.dump.empty())
    ROOFGEN_CHECK(outputs.write(a.dump, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  return out;
}

/// One finding for each kind and line of the source: loops are unrolled, and functions inlined.
std::vector<Finding> by_place(std::vector<Finding> all) {
  std::vector<Finding> out;
  for (Finding& f : all) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Finding& other) {
      return f.source.line > 0 && other.kind == f.kind && other.source.file == f.source.file &&
             other.source.line == f.source.line;
    });
    if (same == out.end())
      out.push_back(std::move(f));
    else
      merge(*same, std::move(f));
  }
  return out;
}

/// "10 s, 23.1 M warp-instructions; running k.cu:7, k.cu:8".
std::string progress_text(const Progress& p, const OwnPlaces& own_places, const Request& r) {
  constexpr size_t kMost = 3;
  std::vector<std::string> places;
  for (const SiteCounts& site : p.running) {
    Where at = site.source;
    own_places.replace(at, site.ptx.line);
    std::string text = place(at.line > 0 ? at : Where{r.is_ptx() ? r.file : site.ptx.file, site.ptx.line, 0});
    if (std::find(places.begin(), places.end(), text) == places.end()) places.push_back(std::move(text));
    if (places.size() == kMost) break;
  }
  return fmt::format("{:.0f} s, {} warp-instructions; {}", p.seconds,
                     count_text(static_cast<double>(p.warp_instructions)),
                     places.empty() ? "no warp runs" : fmt::format("running {}", fmt::join(places, ", ")));
}

std::vector<LineCounts> by_line(const std::vector<SiteCounts>& sites) {
  std::map<std::tuple<std::string, int>, LineCounts> lines;
  for (const SiteCounts& s : sites) {
    const Where& at = s.source.line > 0 ? s.source : s.ptx;
    LineCounts& line = lines[{at.file, at.line}];
    line.source = {at.file, at.line, 0};
    line.sum.executed += s.executed;
    line.sum.sectors += s.sectors;
    line.sum.ideal_sectors += s.ideal_sectors;
    line.sum.wavefronts += s.wavefronts;
    line.sum.ideal_wavefronts += s.ideal_wavefronts;
  }
  std::vector<LineCounts> out;
  for (auto& [at, line] : lines) out.push_back(std::move(line));
  return out;
}

/// Lines of which `not_run` has instructions, but `ran` has none. Lines next to each other, among those with code, are
/// one range. Code of no line counts only where no code has one.
std::vector<NotRun> lines_not_run(const std::vector<SiteCounts>& ran, const std::vector<SiteCounts>& not_run) {
  const bool has_sources = std::ranges::any_of(ran, [](const SiteCounts& s) { return s.source.line > 0; });
  std::map<std::pair<std::string, int>, bool> lines;  // whether a thread ran them
  for (const std::vector<SiteCounts>* sites : {&not_run, &ran})
    for (const SiteCounts& s : *sites) {
      if (s.source.line == 0 && has_sources) continue;
      const Where& at = s.source.line > 0 ? s.source : s.ptx;
      lines[{at.file, at.line}] = sites == &ran;
    }
  std::vector<NotRun> out;
  bool goes_on = false;
  for (const auto& [at, was_run] : lines) {
    if (goes_on && !was_run && out.back().file == at.first)
      out.back().last = at.second;
    else if (!was_run)
      out.push_back({at.first, at.second, at.second});
    goes_on = !was_run;
  }
  return out;
}

std::vector<Where> deciding_lines(const std::vector<SiteCounts>& sites) {
  std::set<std::pair<std::string, int>> lines;
  for (const SiteCounts& s : sites) {
    const Where& at = s.source.line > 0 ? s.source : s.ptx;
    if (s.decides) lines.emplace(at.file, at.line);
  }
  std::vector<Where> out;
  for (const auto& [file, line] : lines) out.push_back({file, line, 0});
  return out;
}

}  // namespace

const char* to_string(Verdict verdict) {
  return verdict == Verdict::kClean ? "clean" : verdict == Verdict::kFindings ? "findings" : "incomplete";
}

bool is_limit(const Finding& f) {
  return f.kind == "not-modelled" || f.kind == "instruction-limit" || f.kind == "out-of-memory";
}

Verdict Report::verdict() const {
  if (!std::ranges::all_of(findings, is_limit)) return Verdict::kFindings;
  if (!findings.empty()) return Verdict::kIncomplete;  // which also explains wrong outputs
  if (std::ranges::any_of(buffers, [](const BufferReport& b) { return b.mismatches > 0; }) ||
      std::ranges::any_of(differences, [](const Difference& d) { return !d.is_rounding; }))
    return Verdict::kFindings;
  return deciding.empty() && not_run.empty() ? Verdict::kClean : Verdict::kIncomplete;
}

namespace {

/// The contents of the outputs: the buffers with an expectation or a dump; where none has, all that the kernel may
/// write.
Result<std::vector<Output>> outputs_of(Executor& executor, const Request& r,
                                       const std::map<const Argument*, DevicePtr>& places) {
  const auto buffers = buffers_of(r.args);
  const auto is_output = [](const Argument* a) { return a->expect.has_value() || !a->dump.empty(); };
  const bool all_are = std::none_of(buffers.begin(), buffers.end(), is_output);
  std::vector<Output> all;
  for (const Argument* a : buffers) {
    if (a->read_only || !(all_are || is_output(a))) continue;
    Output& o = all.emplace_back(Output{a->name, a->type, std::vector<std::byte>(a->bytes()), {}});
    ROOFGEN_CHECK(executor.read(places.at(a), o.bytes, &o.written));
  }
  return all;
}

/// The order of CTAs and warps in a run.
struct Order {
  uint64_t schedule = 0;  ///< RunOptions::schedule
  sim::Pauses pauses = {};
  bool vain_waits = false;  ///< RunOptions::vain_waits
  bool is_usual() const { return schedule == 0 && pauses.empty() && !vain_waits; }
};

/// `kept`: filled by the first run.
Result<Report> run_schedule(const Request& r, const Order& order, std::optional<Chosen>& kept) {
  Report report;
  report.file = r.file;
  report.arch = r.arch;
  report.grid = r.grid;
  report.block = r.block;
  report.smem_bytes = r.smem_bytes;
  if (!kept) {
    ROOFGEN_TRY(kept, choose_kernel(r));
  }
  Compiled& compiled = kept->compiled;
  const Entry& entry = kept->entry;
  Binary& binary = compiled.binary;
  report.compiler = compiled.compiler;
  report.left_out = compiled.left_out;
  ROOFGEN_CHECK(check_arguments(entry, r.args, report.notes));
  binary.entry = entry.mangled;
  report.kernel = entry.name;
  if (!r.is_ptx()) {
    const PtxasReport words = parse_ptxas_log(binary.log, entry.mangled);
    report.registers = words.registers;
    report.spill_bytes = words.spill_bytes;
    report.static_smem_bytes = words.static_smem_bytes;
    const uint64_t shared = static_cast<uint64_t>(words.static_smem_bytes) + r.smem_bytes;
    if (shared > most_shared_bytes(r.arch))
      return Error{
          Exit::kUsage,
          fmt::format("{}: {} bytes of shared memory, {} of them by --smem, are over the {} that a CTA can have on {}",
                      report.kernel, shared, r.smem_bytes, most_shared_bytes(r.arch), r.arch),
          {}};
    if (const auto fit = static_cast<uint64_t>(most_threads(words.registers)); words.found && r.block.count() > fit)
      return Error{
          Exit::kUsage,
          fmt::format("{}: a block of {} threads with {} registers each cannot be launched, at most {} threads "
                      "can; __launch_bounds__({}) makes the compiler use fewer registers",
                      report.kernel, r.block.count(), words.registers, fit, r.block.count()),
          {}};
  }

  ROOFGEN_TRY(const std::unique_ptr<Executor> executor,
              make_sim_executor(r.max_memory_bytes ? r.max_memory_bytes : default_memory(), NotModelled::kEndsCta));
  const OwnPlaces own_places(r, compiled);
  Result<ModuleId> module = executor->load(binary);
  if (!module) {
    Error e = std::move(module).error();
    if (Where caller = own_places.innermost(e.where.line); own_places.replace(caller, e.where.line))
      e.notes.push_back(fmt::format("which is called at {}:{}", caller.file, caller.line));
    if (r.is_ptx()) e.where.file = r.file;
    for (std::string& note : e.notes) use_own_name(note, r);
    return e;
  }
  Buffers buffers(*executor, r.args);
  std::map<const Argument*, DevicePtr> places;
  Launch launch;
  launch.grid = r.grid;
  launch.block = r.block;
  launch.smem_bytes = r.smem_bytes;
  for (const Argument& a : r.args) {
    if (!a.symbol.empty()) {
      ROOFGEN_TRY(places[&a], set_variable(*executor, *module, a));
      continue;
    }
    Arg arg;
    arg.name = a.name;
    ROOFGEN_TRY(arg.data, buffers.pass(a, places));
    launch.args.push_back(std::move(arg));
  }
  RunOptions options;
  options.max_warp_instructions = r.max_instructions;
  options.max_findings = r.max_findings;
  options.go_on = true;
  options.worth_threads = r.worth_jobs;
  options.threads = r.jobs > 0 ? r.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<SiteCounts> sites, not_run;
  options.sites = &sites;
  options.not_run = &not_run;
  options.cooperative = r.cooperative;
  options.schedule = order.schedule;
  options.vain_waits = order.vain_waits;
  options.pauses = order.pauses;
  options.printed = &report.printed;
  sim::Doubles doubles;
  if (r.in_double && order.is_usual()) options.doubles = &doubles;
  if (r.progress) options.progress = [&](const Progress& p) { r.progress(progress_text(p, own_places, r)); };
  options.progress_after_s = r.progress_after_s;
  Result<RunResult> ran = executor->run(*module, launch, options);
  if (!ran) return launch_error(std::move(ran).error(), entry.mangled, report.kernel);
  RunResult result = std::move(*ran);
  report.ctas = entry.ctas_of(r.grid).count();
  report.stopped_early = result.stopped;
  const bool grid_barrier = binary.ptx.find("%envreg") != std::string::npos;
  for (Finding& f : result.findings) {
    f.kernel = report.kernel;
    if (f.kind == "trap" && grid_barrier && !r.cooperative)
      f.message += "; a barrier of the whole grid needs --cooperative";
    const Where within = f.source;
    if (own_places.replace(f.source, f.ptx.line))
      f.message += fmt::format(" (in {}:{})", std::filesystem::path(within.file).filename().string(), within.line);
    f.message += own_places.callers(f.ptx.line);
    use_own_name(f.message, r);
    if (r.is_ptx()) f.ptx.file = r.file;
  }
  if (r.allow_unfenced) std::erase_if(result.findings, [](const Finding& f) { return f.kind == "unfenced"; });
  report.findings = by_place(std::move(result.findings));
  report.counts = *result.counts;
  report.lock_cycles = std::move(result.lock_cycles);
  for (std::vector<SiteCounts>* all : {&sites, &not_run})
    for (SiteCounts& s : *all) {
      own_places.replace(s.source, s.ptx.line);
      if (r.is_ptx()) s.ptx.file = r.file;
    }
  report.lines = by_line(sites);
  report.deciding = deciding_lines(sites);
  report.not_run = lines_not_run(sites, not_run);
  for (const Argument* a : buffers_of(r.args)) {
    if (!order.is_usual() || (!a->expect && a->dump.empty())) continue;
    ROOFGEN_TRY(BufferReport b, inspect(*executor, places[a], *a, r.outputs));
    report.buffers.push_back(std::move(b));
  }
  if (options.doubles) {
    const auto use_own_places = [&](Where& source, Where& ptx) {
      own_places.replace(source, ptx.line);
      if (r.is_ptx()) ptx.file = r.file;
    };
    ROOFGEN_TRY(report.in_double, compared_in_double(doubles, *executor, r.args, places, use_own_places));
  }
  if (r.schedules > 1) {
    ROOFGEN_TRY(report.outputs, outputs_of(*executor, r, places));
  }
  return report;
}

}  // namespace

Result<Report> run(const Request& r) {
  std::optional<Chosen> compiled;
  ROOFGEN_TRY(Report report, run_schedule(r, {}, compiled));
  for (int schedule = 1; schedule < r.schedules; ++schedule) {
    ROOFGEN_TRY(const Report other, run_schedule(r, {static_cast<uint64_t>(schedule), {}, true}, compiled));
    add_schedule(report, other);
  }
  // try_wait may end without success at its time limit (PTX ISA, mbarrier.try_wait).
  if (r.schedules == 1 && report.findings.empty() &&
      compiled->compiled.binary.ptx.find("mbarrier.try_wait") != std::string::npos) {
    ROOFGEN_TRY(Report other, run_schedule(r, {0, {}, true}, compiled));
    for (Finding& f : other.findings) f.message += kWithVainWaits;
    add_run(report, std::move(other));
  }
  // Threads take locks in different orders: the runs that lead into the deadlock, if it is one.
  for (const sim::Pauses& pauses : report.lock_cycles) {
    if (std::ranges::any_of(report.findings, [](const Finding& f) { return f.kind == "deadlock"; })) break;
    ROOFGEN_TRY(Report other, run_schedule(r, {0, pauses}, compiled));
    for (Finding& f : other.findings)
      if (f.kind == "deadlock")
        f.message += fmt::format("; so it is when {} warps have taken one lock each before any of them takes its next",
                                 pauses.size());
    add_schedule(report, other);
  }
  return report;
}

}  // namespace roofgen::check

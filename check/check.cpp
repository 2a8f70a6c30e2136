#include "check/check.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <thread>
#include <tuple>

#include "generator/output_file.h"
#include "generator/suggest.h"
#include "runtime/compile/log.h"
#include "runtime/compile/nvrtc.h"
#include "runtime/compiler.h"
#include "runtime/sim/ptx_parser.h"

namespace roofgen::check {
namespace {

bool is_ptx(const std::string& file) { return file.ends_with(".ptx"); }

std::string demangled(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  std::free(text);
  return out;
}

/// "void scale<float>(float*, int)" -> "scale<float>"; a name without parentheses is left as it is.
std::string without_parameters(const std::string& full) {
  const size_t open = full.rfind('(');
  std::string name = open == std::string::npos ? full : full.substr(0, open);
  // A template's name begins with its return type.
  if (name.starts_with("void ")) name = name.substr(5);
  return name;
}
std::string without_template(const std::string& name) { return name.substr(0, name.find('<')); }

struct Entry {
  std::string mangled;
  std::vector<uint64_t> param_bytes;
};

Result<std::vector<Entry>> entries_of(const std::string& ptx, const std::string& file) {
  ROOFGEN_TRY(const sim::PtxModule module, sim::parse_ptx(ptx, file));
  std::vector<Entry> out;
  for (const sim::PtxFunction& f : module.functions) {
    if (!f.is_entry || !f.defined) continue;
    Entry e{std::string(f.name), {}};
    for (const sim::PtxVar& p : f.params) e.param_bytes.push_back(p.bytes());
    out.push_back(std::move(e));
  }
  return out;
}

Result<Entry> find_kernel(const std::vector<Entry>& entries, const Request& r) {
  if (entries.empty()) return Error{Exit::kUsage, "no kernel in it; a __global__ function was expected, of a template an instance", {r.file, 0, 0}};
  std::vector<std::string> names;
  std::vector<const Entry*> found;
  for (const Entry& e : entries) {
    const std::string full = demangled(e.mangled), name = without_parameters(full);
    names.push_back(name);
    if (r.kernel == e.mangled || r.kernel == full || r.kernel == name) found.push_back(&e);
  }
  if (found.empty())
    for (size_t i = 0; i < entries.size(); ++i)
      if (r.kernel.empty() || r.kernel == without_template(names[i])) found.push_back(&entries[i]);
  if (found.size() == 1) return *found[0];
  std::string list;
  for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
  if (r.kernel.empty()) return Error{Exit::kUsage, fmt::format("--kernel is needed: the file has {}", list), {r.file, 0, 0}};
  if (found.empty()) return Error{Exit::kUsage, fmt::format("no kernel \"{}\"{}; the file has {}", r.kernel, did_you_mean(r.kernel, names), list), {r.file, 0, 0}};
  return Error{Exit::kUsage, fmt::format("\"{}\" is more than one kernel: {}; the full name was expected", r.kernel, list), {r.file, 0, 0}};
}

/// The arguments against the parameters' sizes, which is all that PTX knows of them.
Result<void> check_arguments(const Entry& entry, const Request& r) {
  std::string sizes;
  for (const uint64_t b : entry.param_bytes) sizes += fmt::format("{}{} bytes", sizes.empty() ? "" : ", ", b);
  if (entry.param_bytes.size() != r.args.size())
    return Error{Exit::kUsage, fmt::format("{} takes {} arguments ({}), {} were given with --args", without_parameters(demangled(entry.mangled)), entry.param_bytes.size(), sizes, r.args.size())};
  for (size_t i = 0; i < r.args.size(); ++i) {
    const Argument& a = r.args[i];
    const uint64_t given = a.size || a.null ? 8 : bytes_of(a.type);
    if (given == entry.param_bytes[i]) continue;
    if (entry.param_bytes[i] > 8) return Error{Exit::kUsage, fmt::format("parameter {} is a struct of {} bytes; only pointers and numbers can be given", i + 1, entry.param_bytes[i])};
    return Error{Exit::kUsage, fmt::format("{} is {} of {} bytes, the parameter has {}", a.name, a.size ? "a pointer" : to_string(a.type), given, entry.param_bytes[i])};
  }
  return {};
}

Result<Binary> compile(const Request& r, std::string* compiler_name) {
  CompileOptions options;
  options.arch = r.arch;
  options.jobs = 1;
  options.extra_flags = r.compiler_flags;
  options.extra_flags.push_back("--device-int128");  // as nvcc has it
  // What the file includes of the toolkit is given by name; its own headers may include more.
  if (const std::string& dir = nvrtc_info().include_dir; !dir.empty())
    for (const char* below : {"", "/cccl"}) options.extra_flags.push_back("--include-path=" + dir + below);
  ROOFGEN_TRY(const std::unique_ptr<Compiler> compiler, make_nvrtc_compiler(options, "", [](const std::string&) {}));
  *compiler_name = compiler->description();
  Program program;
  // So that diagnostics and the line table name the user's file. A quote or backslash in a name would end the string.
  std::string name;
  for (const char c : r.file) name += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  // nvcc's sources have these without asking for them.
  program.source = fmt::format("#include <math.h>\n#include <stdint.h>\n#line 1 \"{}\"\n{}", name, r.text);
  std::optional<Result<Binary>> result;
  compiler->compile_all({&program}, [&](CompileOutcome outcome) {
    result.emplace(std::move(outcome.binary));
    return true;
  });
  if (!result) return Error{Exit::kFailed, "the compiler gave no answer"};
  if (*result) return std::move(*result);
  Error e = std::move(*result).error();
  if (e.where.file == kSourceName) e.where.file = r.file;  // an error of ptxas, which knows a line only
  return e;
}

/// The compiler runs in the root directory and makes names absolute from there.
void use_own_name(Where& at, const Request& r) {
  if (at.file == "/" + r.file) at.file = r.file;
}
/// The same in a text. A name that is absolute already is left as it is.
void use_own_name(std::string& text, const Request& r) {
  const std::string made = "/" + r.file + ":";
  for (size_t at = text.find(made); at != std::string::npos; at = text.find(made, at + 1))
    if (at == 0 || text[at - 1] == ' ') text.erase(at, 1);
}

/// Frees what it allocated.
class Buffers {
 public:
  explicit Buffers(Executor& executor) : executor_(executor) {}
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

 private:
  Executor& executor_;
  std::vector<DevicePtr> all_;
};

bool agrees(double got, double expected, const Expectation& e) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (got == expected) return true;
  return std::fabs(got - expected) <= e.absolute + e.relative * std::fabs(expected);
}

Result<BufferReport> inspect(Executor& executor, DevicePtr at, const Argument& a) {
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
  for (uint64_t i = 0; i < *a.size; ++i) {
    const bool there = std::all_of(written.begin() + static_cast<ptrdiff_t>(i * size), written.begin() + static_cast<ptrdiff_t>((i + 1) * size), [](bool b) { return b; });
    if (!there) {
      ++out.unwritten;
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(i * size), size, std::byte{0});
    }
    if (wanted.empty()) continue;
    const double expected = decode(a.type, &wanted[i * size]), got = decode(a.type, &bytes[i * size]);
    // 64-bit integers are compared as they are.
    const bool same = is_integer(a.type) && a.expect->absolute == 0 && a.expect->relative == 0 ? std::equal(&wanted[i * size], &wanted[i * size] + size, &bytes[i * size])
                                                                                               : agrees(got, expected, *a.expect);
    if (there && same) continue;
    if (out.mismatches++ == 0)
      out.first = there ? fmt::format("{}[{}] is {}, {} was expected", a.name, i, got, expected) : fmt::format("{}[{}] was never written, {} was expected", a.name, i, expected);
  }
  if (!a.dump.empty()) ROOFGEN_CHECK(write_output(a.dump, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  return out;
}

std::vector<FindingGroup> grouped(std::vector<Finding> all) {
  std::vector<FindingGroup> out;
  for (Finding& f : all) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const FindingGroup& g) { return g.first.kind == f.kind && g.first.ptx.line == f.ptx.line; });
    if (same != out.end()) ++same->more;
    else out.push_back({std::move(f), 0});
  }
  return out;
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

}  // namespace

bool Report::clean() const {
  return findings.empty() && std::all_of(buffers.begin(), buffers.end(), [](const BufferReport& b) { return b.mismatches == 0; });
}

Result<Report> run(const Request& r) {
  Report report;
  report.file = r.file;
  report.arch = r.arch;
  report.grid = r.grid;
  report.block = r.block;
  report.smem_bytes = r.smem_bytes;
  Binary binary;
  if (is_ptx(r.file)) {
    binary.ptx = r.text;
  } else {
    ROOFGEN_TRY(binary, compile(r, &report.compiler));
  }
  ROOFGEN_TRY(const std::vector<Entry> entries, entries_of(binary.ptx, is_ptx(r.file) ? r.file : "the compiler's PTX"));
  ROOFGEN_TRY(const Entry entry, find_kernel(entries, r));
  ROOFGEN_CHECK(check_arguments(entry, r));
  binary.entry = entry.mangled;
  report.kernel = without_parameters(demangled(entry.mangled));
  if (!is_ptx(r.file)) {
    const PtxasReport words = parse_ptxas_log(binary.log, entry.mangled);
    report.registers = words.registers;
    report.spill_bytes = words.spill_bytes;
    report.static_smem_bytes = words.static_smem_bytes;
  }

  ROOFGEN_TRY(const std::unique_ptr<Executor> executor, make_sim_executor());
  Result<ModuleId> module = executor->load(binary);
  if (!module) {
    Error e = std::move(module).error();
    if (is_ptx(r.file)) e.where.file = r.file;
    for (std::string& note : e.notes) use_own_name(note, r);
    return e;
  }
  Buffers buffers(*executor);
  Launch launch;
  launch.grid = r.grid;
  launch.block = r.block;
  launch.smem_bytes = r.smem_bytes;
  for (const Argument& a : r.args) {
    Arg arg;
    arg.name = a.name;
    arg.is_buffer = a.size.has_value();
    arg.bytes = a.size || a.null ? 8 : bytes_of(a.type);
    arg.bits = a.bits;
    if (a.size) {
      ROOFGEN_TRY(const DevicePtr at, buffers.add(a));
      arg.bits = at.address;
    }
    launch.args.push_back(std::move(arg));
  }
  RunOptions options;
  options.max_warp_instructions = r.max_instructions;
  options.max_findings = r.max_findings;
  options.worth_threads = r.worth_jobs;
  options.threads = r.jobs > 0 ? r.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<SiteCounts> sites;
  options.sites = &sites;
  options.printed = &report.printed;
  ROOFGEN_TRY(RunResult result, executor->run(*module, launch, options));
  report.stopped_early = result.findings.size() >= static_cast<size_t>(r.max_findings);
  for (Finding& f : result.findings) {
    f.kernel = report.kernel;
    use_own_name(f.source, r);
    use_own_name(f.message, r);
    if (is_ptx(r.file)) f.ptx.file = r.file;
  }
  report.findings = grouped(std::move(result.findings));
  report.counts = *result.counts;
  for (SiteCounts& s : sites) {
    use_own_name(s.source, r);
    if (is_ptx(r.file)) s.ptx.file = r.file;
  }
  report.lines = by_line(sites);
  for (size_t i = 0; i < r.args.size(); ++i) {
    if (!r.args[i].expect && r.args[i].dump.empty()) continue;
    ROOFGEN_TRY(BufferReport b, inspect(*executor, {launch.args[i].bits}, r.args[i]));
    report.buffers.push_back(std::move(b));
  }
  return report;
}

}  // namespace roofgen::check

#include "check/kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>

#include "base/demangle.h"
#include "base/scratch.h"
#include "base/suggest.h"
#include "runtime/compile/nvrtc.h"
#include "runtime/compiler.h"
#include "runtime/sim/ptx_parser.h"

namespace roofgen::check {
namespace {

/// Position of the parenthesis that opens the parameter list of a demangled name; npos if there is none.
size_t open_of_parameters(const std::string& full) {
  if (full.empty() || full.back() != ')') return std::string::npos;
  int depth = 0;
  for (size_t at = full.size(); at-- > 0;) {
    depth += full[at] == ')' ? 1 : full[at] == '(' ? -1 : 0;
    if (depth == 0) return at;
  }
  return std::string::npos;
}

std::vector<std::string> types_of(const std::string& full) {
  std::vector<std::string> out;
  const size_t open = open_of_parameters(full);
  if (open == std::string::npos) return out;
  int depth = 0;
  std::string type;
  for (size_t at = open + 1; at < full.size(); ++at) {
    const char c = full[at];
    depth += c == '(' || c == '<' || c == '[' ? 1 : c == ')' || c == '>' || c == ']' ? -1 : 0;
    if ((c == ',' && depth == 0) || depth < 0) {
      if (const size_t begin = type.find_first_not_of(' '); begin != std::string::npos)
        out.push_back(type.substr(begin));
      type.clear();
      if (depth < 0) break;
    } else {
      type += c;
    }
  }
  if (out == std::vector<std::string>{"void"}) out.clear();
  return out;
}

/// "void scale<float>(float*, int)" -> "scale<float>".
std::string without_parameters(const std::string& full) {
  std::string name = full.substr(0, open_of_parameters(full));
  // Demangled template instances begin with the return type.
  if (name.starts_with("void ")) name = name.substr(5);
  return name;
}
std::string without_template(const std::string& name) { return name.substr(0, name.find('<')); }
std::string without_scope(const std::string& name) {
  const std::string plain = without_template(name);
  const size_t colons = plain.rfind("::");
  return colons == std::string::npos ? plain : plain.substr(colons + 2);
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t kMost = 12;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) out += (i ? ", " : "") + names[i];
  if (names.size() > kMost) out += fmt::format(" and {} more", names.size() - kMost);
  return out;
}

/// Kind of a type: 'f' floating, 'i' integer, 0 unknown; and its size.
struct Kind {
  char letter = 0;
  uint32_t bytes = 0;
};
Kind kind_of(std::string type) {
  for (const char* qualifier : {" const", " volatile"})
    for (size_t at = type.find(qualifier); at != std::string::npos; at = type.find(qualifier))
      type.erase(at, std::string_view(qualifier).size());
  static const std::map<std::string_view, Kind> known{
      {"float", {'f', 4}}, {"double", {'f', 8}},         {"__half", {'f', 2}},      {"__nv_bfloat16", {'f', 2}},
      {"bool", {'i', 1}},  {"char", {'i', 1}},           {"signed char", {'i', 1}}, {"unsigned char", {'i', 1}},
      {"short", {'i', 2}}, {"unsigned short", {'i', 2}}, {"int", {'i', 4}},         {"unsigned int", {'i', 4}},
      {"long", {'i', 8}},  {"unsigned long", {'i', 8}},  {"long long", {'i', 8}},   {"unsigned long long", {'i', 8}}};
  const auto at = known.find(type);
  return at == known.end() ? Kind{} : at->second;
}
Kind kind_of(Element e) { return {is_integer(e) ? 'i' : 'f', bytes_of(e)}; }

std::string described(const Argument& a) {
  if (a.map) return "a tensor map of 128 bytes";
  if (a.image) return a.image->is_surface ? "a surface object of 8 bytes" : "a texture object of 8 bytes";
  if (a.is_pointer()) return "a pointer of 8 bytes";
  if (a.type_name == "struct") {
    std::string offsets;
    for (const Argument& f : a.fields) offsets += fmt::format("{}{}", offsets.empty() ? "" : ", ", f.offset);
    return fmt::format("a struct of {} bytes (fields at {})", a.value.size(), offsets);
  }
  const uint64_t n = a.type_name == "bytes" ? 0 : a.value.size() / bytes_of(a.type);
  if (n == 0) return fmt::format("{} bytes", a.value.size());
  return fmt::format("{} of {} bytes",
                     n > 1 && a.type_name.find('x') == std::string::npos
                         ? fmt::format("an array {}[{}]", a.type_name, n)
                         : a.type_name,
                     a.value.size());
}

}  // namespace

std::string function_of(const std::string& mangled) {
  std::string full = demangled(mangled);
  if (full.ends_with(" const")) full.resize(full.size() - 6);  // a member function
  std::string name = without_parameters(full);
  // Of a template's instance, the return type comes first.
  const size_t open = std::min(name.find('<'), name.size()), space = name.rfind(' ', open);
  return space == std::string::npos || name.find("operator") != std::string::npos ? name : name.substr(space + 1);
}

Dim3 Entry::ctas_of(const Dim3& grid) const {
  return counts_clusters ? Dim3{grid.x * cluster.x, grid.y * cluster.y, grid.z * cluster.z} : grid;
}

Result<std::vector<Entry>> entries_of(const std::string& ptx, const std::string& file) {
  ROOFGEN_TRY(const sim::PtxModule module, sim::parse_ptx(ptx, file));
  std::vector<Entry> out;
  for (const sim::PtxFunction& f : module.functions) {
    if (!f.is_entry || !f.defined) continue;
    Entry e{std::string(f.name), demangled(std::string(f.name)), "", {}, {}, false, {}};
    if (const uint32_t* c = f.reqnctapercluster; c[0]) e.cluster = {c[0], c[1], c[2]};
    e.counts_clusters = f.blocksareclusters && f.reqnctapercluster[0];
    e.name = without_parameters(e.full);
    for (const sim::PtxVar& p : f.params) e.param_bytes.push_back(p.bytes());
    e.param_types = types_of(e.full);
    if (e.param_types.size() != e.param_bytes.size()) e.param_types.clear();
    out.push_back(std::move(e));
  }
  return out;
}

Result<Entry> find_kernel(const std::vector<Entry>& entries, const Request& r,
                          const std::vector<std::string>& templates) {
  const auto refuse = [&](std::string message) { return Error{Exit::kUsage, std::move(message), {r.file, 0, 0}}; };
  std::string hint;
  if (!templates.empty())
    hint =
        fmt::format("; of a template an instance is named with its arguments, as in --kernel '{}<...>' (templates: {})",
                    templates.front(), list_of(templates));
  if (entries.empty())
    return refuse(fmt::format("no kernel in it; {} was expected{}",
                              r.is_ptx() ? "an .entry with a body" : "a __global__ function", hint));
  const std::string asked = r.kernel.starts_with("::") ? r.kernel.substr(2) : r.kernel;
  std::vector<std::string> names;
  for (const Entry& e : entries) names.push_back(e.name);
  // The most exact match wins.
  std::vector<const Entry*> found;
  const auto take = [&](const auto& matches) {
    if (!found.empty()) return;
    for (const Entry& e : entries)
      if (matches(e)) found.push_back(&e);
  };
  take([&](const Entry& e) { return asked == e.mangled || asked == e.full; });
  take([&](const Entry& e) { return asked == e.name; });
  take([&](const Entry& e) { return asked.empty() || asked == without_template(e.name); });
  take([&](const Entry& e) { return asked == without_scope(e.name); });
  if (found.size() == 1) return *found[0];
  if (r.kernel.empty()) return refuse(fmt::format("--kernel is needed: the file has {}{}", list_of(names), hint));
  if (found.empty()) {
    if (std::find(templates.begin(), templates.end(), asked) != templates.end())
      return refuse(
          fmt::format("{} is a template; its arguments were expected, as in --kernel '{}<...>'", r.kernel, r.kernel));
    std::vector<std::string> all = names;
    all.insert(all.end(), templates.begin(), templates.end());
    const std::string nearby = nearest(asked, all);
    return refuse(fmt::format("no kernel \"{}\"{}; the file has {}{}", r.kernel,
                              nearby.empty() ? "" : fmt::format("; did you mean \"{}\"?", nearby), list_of(names),
                              hint));
  }
  std::vector<std::string> ambiguous;
  for (const Entry* e : found) ambiguous.push_back(e->full);
  return refuse(
      fmt::format("\"{}\" is more than one kernel: {}; the full name was expected", r.kernel, list_of(ambiguous)));
}

Result<void> check_arguments(const Entry& entry, const std::vector<Argument>& all, std::vector<std::string>& notes) {
  std::vector<const Argument*> args;
  for (const Argument& a : all)
    if (a.symbol.empty()) args.push_back(&a);
  if (entry.param_bytes.size() != args.size()) {
    std::vector<std::string> params;
    for (size_t i = 0; i < entry.param_bytes.size(); ++i)
      params.push_back(entry.param_types.empty()
                           ? fmt::format("{} bytes", entry.param_bytes[i])
                           : fmt::format("{}: {} bytes", entry.param_types[i], entry.param_bytes[i]));
    return Error{Exit::kUsage, fmt::format("{} takes {} argument{}{}, {} were given with --args", entry.name,
                                           params.size(), params.size() == 1 ? "" : "s",
                                           params.empty() ? "" : fmt::format(" ({})", list_of(params)), args.size())};
  }
  for (size_t i = 0; i < args.size(); ++i) {
    const Argument& a = *args[i];
    const auto refuse = [&](std::string message) { return Error{Exit::kUsage, std::move(message), a.where}; };
    const std::string type = entry.param_types.empty() ? "" : entry.param_types[i];
    const std::string parameter =
        type.empty() ? fmt::format("parameter {}", i + 1) : fmt::format("parameter {}, {},", i + 1, type);
    if (a.passed_bytes() != entry.param_bytes[i])
      return refuse(fmt::format("{} is {}, {} has {} bytes{}", a.name, described(a), parameter, entry.param_bytes[i],
                                type == kTensorMapType ? R"(; a buffer with "map" was expected)"
                                : a.fields.empty() && entry.param_bytes[i] > 8
                                    ? R"(; {"type": "struct", "fields": [...]} or {"type": "bytes"} gives a struct)"
                                    : ""));
    if (type.empty() || !a.fields.empty() || a.type_name == "bytes" || a.null || a.map) continue;
    if (a.image && !type.ends_with("*")) continue;
    const bool pointer = type.ends_with("*");
    const Kind declared = kind_of(pointer ? type.substr(0, type.size() - 1) : type), given = kind_of(a.type);
    if (!declared.letter) continue;
    if (!a.is_pointer() && pointer)
      return refuse(fmt::format("{} is {}, {} is a pointer; a buffer with \"size\" or \"null\" was expected", a.name,
                                described(a), parameter));
    if (a.is_pointer() && !pointer)
      return refuse(fmt::format("{} is a buffer, {} is passed by value; \"value\" was expected", a.name, parameter));
    if (declared.letter == given.letter && declared.bytes == given.bytes) continue;
    if (!pointer)
      return refuse(fmt::format("{} is {}, {} is {}", a.name, a.type_name, parameter,
                                declared.letter == 'f' ? fmt::format("floating: f{} was expected", 8 * declared.bytes)
                                                       : fmt::format("an integer: i{} or u{} was expected",
                                                                     8 * declared.bytes, 8 * declared.bytes)));
    notes.push_back(fmt::format("{} has elements of {}, {} is {}", a.name, to_string(a.type),
                                fmt::format("parameter {}", i + 1), type));
  }
  return {};
}

namespace {

/// The first word of a text outside comments.
std::string_view first_word(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with("//") && !text.starts_with("/*")) return text.substr(0, text.find_first_of(" \t\r\n"));
    const std::string_view end = text[1] == '/' ? "\n" : "*/";
    const size_t at = text.find(end, 2);
    text.remove_prefix(at == text.npos ? text.size() : at + end.size());
  }
}

/// The file name decides between CUDA C++ and PTX. A file that is obviously the other one gets a clear error here.
Result<void> is_as_named(const Request& r) {
  const bool ptx = first_word(r.text) == ".version";
  if (r.is_ptx() && !ptx && r.text.find("__global__") != std::string::npos)
    return Error{Exit::kUsage,
                 "CUDA C++, in a file that is taken as PTX by its name; a name that ends in .cu was expected",
                 {r.file, 0, 0}};
  if (!r.is_ptx() && ptx)
    return Error{Exit::kUsage,
                 "PTX, in a file that is taken as CUDA C++ by its name; a name that ends in .ptx was expected",
                 {r.file, 0, 0}};
  return {};
}

constexpr int kMaxRounds = 20;
constexpr const char* kAsked = "roofgen_asked_kernel";
constexpr const char* kAskedFile = "--kernel";

/// The headers that nvcc includes before every source through cuda_runtime.h.
constexpr const char* kPreamble =
    "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <stddef.h>\n#include <limits.h>\n";

/// Device functions that nvcc has without an include: NVRTC has the first two in cuda_device_runtime_api.h only, and
/// not the built-in functions of host compilers.
const std::map<std::string, std::string>& device_functions() {
  static const auto instruction = [](const char* name, const char* ptx) {
    return fmt::format("static __device__ void {}() {{ asm volatile(\"{};\" ::: \"memory\"); }}\n", name, ptx);
  };
  static const std::map<std::string, std::string> kAll = {
      {"cudaGridDependencySynchronize", instruction("cudaGridDependencySynchronize", "griddepcontrol.wait")},
      {"cudaTriggerProgrammaticLaunchCompletion",
       instruction("cudaTriggerProgrammaticLaunchCompletion", "griddepcontrol.launch_dependents")},
      {"__builtin_memcpy", "#define __builtin_memcpy memcpy\n"},
      {"__builtin_memset", "#define __builtin_memset memset\n"}};
  return kAll;
}

/// Defines those of them that an error calls undefined: defined always, they would be so twice where a header does it.
bool define_missing(const std::vector<Diagnostic>& errors, std::string& preamble) {
  const size_t before = preamble.size();
  for (const auto& [name, definition] : device_functions())
    if (std::ranges::any_of(errors,
                            [&, &name = name](const Diagnostic& d) {
                              return d.message == fmt::format("identifier \"{}\" is undefined", name);
                            }) &&
        preamble.find(name) == std::string::npos)
      preamble += definition;
  return preamble.size() > before;
}

/// Adds notes on removed host code to an error, since it may be the cause. Declarations that the error names come
/// first.
void tell_left_out(Error& e, std::vector<LeftOut> left_out) {
  constexpr size_t kMost = 5;
  std::string text = e.message;
  for (const std::string& note : e.notes) text += "\n" + note;
  const auto named = std::stable_partition(left_out.begin(), left_out.end(), [&](const LeftOut& l) {
    return text.find("\"" + l.what + "\"") != std::string::npos;
  });
  for (auto l = left_out.begin(); l != named && l < left_out.begin() + kMost; ++l)
    e.notes.push_back(fmt::format("{}:{}: note: {} was left out as host code{}", l->where.file, l->where.line, l->what,
                                  l->why.empty() ? ": it is marked __host__" : ", for: " + l->why));
  std::string others;
  for (auto l = named; l != left_out.end() && l < named + kMost; ++l)
    others += fmt::format("{}{} (line {})", others.empty() ? "" : ", ", l->what, l->where.line);
  if (left_out.end() - named > static_cast<ptrdiff_t>(kMost))
    others += fmt::format(" and {} more", left_out.end() - named - static_cast<ptrdiff_t>(kMost));
  if (!others.empty()) e.notes.push_back("note: left out as host code: " + others);
}

/// Mangled name of the kernel that initialises the variable kAsked; removes the variable's line from the PTX.
std::string take_instance(std::string& ptx) {
  const size_t at = ptx.find(fmt::format("{} = ", kAsked));
  if (at == std::string::npos) return "";
  const size_t name = ptx.find("= ", at) + 2, end = ptx.find(';', name), line = ptx.rfind('\n', at) + 1;
  if (end == std::string::npos) return "";
  const std::string instance = ptx.substr(name, end - name);
  ptx.replace(line, end + 1 - line, "");
  return instance;
}

/// `headers_first`: if host code makes several rounds likely, large headers come first and are precompiled.
Result<Compiled> compile(const Request& r, bool headers_first) {
  const auto source = std::make_shared<Source>(r.file, r.text, r.include_dirs);
  const std::string large = headers_first && source->has_host_functions() ? source->large_includes() : "";
  CompileOptions options;
  options.arch = r.arch;
  options.jobs = 1;
  options.extra_flags = r.compiler_flags;
  for (const std::string& dir : r.include_dirs)
    options.extra_flags.push_back("--include-path=" +
                                  std::filesystem::absolute(dir.empty() ? "." : dir).lexically_normal().string());
  options.extra_flags.push_back("--device-int128");  // as nvcc has it
  // NVRTC finds toolkit headers that the file names; the user's headers may include others.
  if (const std::string& dir = nvrtc_info(r.arch).include_dir; !dir.empty())
    for (const char* below : {"", "/cccl"}) options.extra_flags.push_back("--include-path=" + dir + below);
  std::optional<ScratchDirectory> precompiled;
  if (!large.empty()) options.pch_dir = precompiled.emplace("roofgen-check").path();
  const Source original = *source;
  options.other_inputs = [&] { return original.headers_text().value_or(""); };
  const std::string cache = original.headers_text() ? r.cache_dir : "";
  ROOFGEN_TRY(const std::unique_ptr<Compiler> compiler, make_nvrtc_compiler(options, cache, [](const std::string&) {}));
  Compiled out;
  out.compiler = compiler->description();
  out.own_name = [source](const std::string& file) { return source->own_name(file); };
  // --kernel 'scale<float>' instantiates the template.
  bool asks = r.kernel.find('<') != std::string::npos;
  std::string preamble = kPreamble;
  for (int round = 0; round < kMaxRounds; ++round) {
    Program program;
    program.source = preamble + (large.empty() ? "" : large + kPrecompiledEnd) + source->text();
    if (asks)
      program.source += fmt::format("#line 1 \"{}\"\n__device__ auto* {} = &{};\n", kAskedFile, kAsked, r.kernel);
    std::optional<CompileOutcome> outcome;
    compiler->compile_all({&program}, [&](CompileOutcome o) {
      outcome.emplace(std::move(o));
      return true;
    });
    if (!outcome) return Error{Exit::kFailed, "the compiler gave no answer"};
    if (outcome->binary) {
      out.binary = std::move(*outcome->binary);
      out.instance = take_instance(out.binary.ptx);
      out.templates = source->kernel_templates();
      out.left_out = source->left_out();
      return out;
    }
    const std::vector<Diagnostic> errors = parse_errors(outcome->log);
    std::vector<Diagnostic> of_source;  // without the line of --kernel
    std::copy_if(errors.begin(), errors.end(), std::back_inserter(of_source),
                 [](const Diagnostic& d) { return d.file != kAskedFile; });
    if (define_missing(of_source, preamble) || source->leave_out(of_source)) continue;
    Error e = std::move(outcome->binary).error();
    if (e.where.file == kAskedFile) {
      // The source may contain the instance anyway; then find_kernel finds it by its name.
      asks = false;
      Source whole = *source;
      whole.inline_headers();
      const std::vector<std::string> templates = whole.kernel_templates();
      Error asked{Exit::kUsage,
                  fmt::format("--kernel '{}' names no instance of a kernel: {}{}", r.kernel,
                              errors.front().message == "cannot deduce \"auto\" type"
                                  ? "its arguments do not fit the template's parameters"
                                  : errors.front().message,
                              templates.empty() ? "; the file has no template of a kernel"
                                                : "; the file's templates of kernels: " +
                                                      fmt::format("{}", fmt::join(templates, ", "))),
                  {}};
      out.asked_error = std::move(asked);
      continue;
    }
    // The message is then about the source in its own order.
    if (!large.empty() && !source->is_own(e.where.file)) return compile(r, false);
    if (e.where.file == kSourceName) e.where.file = r.file;  // from ptxas, which knows the line only
    if (e.message.find("open source file") != std::string::npos)
      e.notes.push_back("note: -I DIRECTORY adds a header search path");
    tell_left_out(e, source->left_out());
    return e;
  }
  return Error{Exit::kFailed,
               fmt::format("after {} rounds of leaving out host code the compiler still has errors", kMaxRounds),
               {r.file, 0, 0}};
}

}  // namespace

Result<Chosen> choose_kernel(const Request& r) {
  ROOFGEN_CHECK(is_as_named(r));
  Chosen out;
  if (r.is_ptx()) {
    out.compiled.binary.ptx = r.text;
    out.compiled.own_name = [](const std::string& file) { return file; };
  } else {
    ROOFGEN_TRY(out.compiled, compile(r, true));
  }
  ROOFGEN_TRY(const std::vector<Entry> entries,
              entries_of(out.compiled.binary.ptx, r.is_ptx() ? r.file : "the compiler's PTX"));
  Request named = r;
  if (!out.compiled.instance.empty()) named.kernel = out.compiled.instance;
  Result<Entry> entry = find_kernel(entries, named, out.compiled.templates);
  if (!entry) return out.compiled.asked_error ? *out.compiled.asked_error : std::move(entry).error();
  out.entry = std::move(*entry);
  return out;
}

}  // namespace roofgen::check

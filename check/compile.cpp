#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "check/kernel.h"
#include "runtime/compile/nvrtc.h"
#include "runtime/compiler.h"

namespace roofgen::check {
namespace {

constexpr int kMaxRounds = 20;
constexpr const char* kAsked = "roofgen_asked_kernel";
constexpr const char* kAskedFile = "--kernel";

/// The headers that nvcc includes before every source through cuda_runtime.h.
constexpr const char* kPreamble =
    "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <stddef.h>\n#include <limits.h>\n";

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

}  // namespace

Result<Compiled> compile(const Request& r) {
  CompileOptions options;
  options.arch = r.arch;
  options.jobs = 1;
  options.extra_flags = r.compiler_flags;
  for (const std::string& dir : r.include_dirs)
    options.extra_flags.push_back("--include-path=" +
                                  std::filesystem::absolute(dir.empty() ? "." : dir).lexically_normal().string());
  options.extra_flags.push_back("--device-int128");  // as nvcc has it
  // NVRTC finds toolkit headers that the file names; the user's headers may include others.
  if (const std::string& dir = nvrtc_info().include_dir; !dir.empty())
    for (const char* below : {"", "/cccl"}) options.extra_flags.push_back("--include-path=" + dir + below);
  ROOFGEN_TRY(const std::unique_ptr<Compiler> compiler, make_nvrtc_compiler(options, "", [](const std::string&) {}));
  Compiled out;
  out.compiler = compiler->description();
  const auto source = std::make_shared<Source>(r.file, r.text, r.include_dirs);
  out.own_name = [source](const std::string& file) { return source->own_name(file); };
  // --kernel 'scale<float>' instantiates the template.
  bool asks = r.kernel.find('<') != std::string::npos;
  for (int round = 0; round < kMaxRounds; ++round) {
    Program program;
    program.source = kPreamble + source->text();
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
    if (source->leave_out(of_source)) continue;
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
    if (e.where.file == kSourceName) e.where.file = r.file;  // from ptxas, which knows the line only
    if (e.message.find("open source file") != std::string::npos)
      e.notes.push_back("note: -I DIRECTORY says where headers are");
    tell_left_out(e, source->left_out());
    return e;
  }
  return Error{Exit::kFailed,
               fmt::format("after {} rounds of leaving out host code the compiler still has errors", kMaxRounds),
               {r.file, 0, 0}};
}

}  // namespace roofgen::check

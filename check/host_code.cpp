#include "check/host_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/compile/built_in_headers.h"
#include "runtime/compiler.h"

namespace roofgen::check {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;                        // of headers in headers
constexpr size_t kMaxText = size_t{16} << 20;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Headers of the toolkit and of other libraries that are for host programs; NVRTC cannot make anything of them.
bool is_host_library(std::string_view name) {
  for (const char* start : {"cublas", "cusparse", "cufft", "cusolver", "curand.h", "cudnn", "nccl", "nvrtc", "nvtx", "nvToolsExt", "npp", "nvml", "cuda_gl_interop", "cuda_profiler_api", "cudaProfiler", "cuda_runtime_api",
                            "cuda.h", "thrust/", "cub/device", "cub/cub.cuh", "GL/", "mpi", "omp.h", "opencv", "cutensor", "helper_", "torch/", "ATen/", "c10/", "nvJitLink", "nvjpeg"})
    if (name.starts_with(start)) return true;
  return false;
}

/// What standard libraries and systems have for host programs. A header that is missing and not among these is an error: it
/// may define what a kernel depends on.
bool is_host_standard(std::string_view name) {
  static const std::set<std::string_view> names{"chrono", "condition_variable", "ctime", "deque", "dirent.h", "errno.h", "cerrno", "exception", "execution", "fcntl.h", "filesystem", "format", "forward_list", "fstream", "future", "getopt.h",
                                                "inttypes.h", "cinttypes", "iomanip", "ios", "iosfwd", "iostream", "istream", "list", "locale", "locale.h", "malloc.h", "map", "memory", "memory.h", "mutex", "new", "numeric", "ostream",
                                                "pthread.h", "queue", "random", "regex", "set", "shared_mutex", "signal.h", "csignal", "sstream", "stack", "stdarg.h", "cstdarg", "stdexcept", "strings.h", "string", "string_view",
                                                "system_error", "thread", "time.h", "typeindex", "typeinfo", "unistd.h", "unordered_map", "unordered_set", "valarray", "vector", "windows.h", "atomic", "cstdbool", "stdbool.h", "direct.h", "io.h"};
  return name.starts_with("sys/") || names.count(name) > 0;
}

/// What is marked __host__. Other functions are compiled for the device, where that is possible.
bool is_for_host(const Diagnostic& e) { return e.message.find("JIT mode") != std::string::npos; }

std::string joined(const std::string& directory, std::string_view name) { return directory.empty() ? std::string(name) : (fs::path(directory) / name).lexically_normal().string(); }

}  // namespace

Source::Source(std::string file, std::string text, std::vector<std::string> directories) : directories_(std::move(directories)), text_(std::move(text)) {
  if (text_.empty() || text_.back() != '\n') text_ += '\n';
  int line = 0;
  for (size_t at = 0; at < text_.size(); at = text_.find('\n', at) + 1) {
    origin_.push_back({file, ++line, 0});
    line_begin_.push_back(at);
  }
  declarations_ = find_declarations(text_);
}

std::string Source::text() const {
  std::string out;
  // The libraries' headers include these, and kernels count on it.
  if (without_libraries_)
    for (const char* header : {"cuda_fp16.h", "cuda_bf16.h"})
      if (compiler_has(header)) out += fmt::format("#include <{}>\n", header);
  for (size_t l = 0; l < origin_.size(); ++l) {
    const Where& at = origin_[l];
    if (l == 0 || origin_[l - 1].file != at.file || origin_[l - 1].line + 1 != at.line) {
      // A quote or backslash in a name would end the string.
      std::string name;
      for (const char c : at.file) name += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
      out += fmt::format("#line {} \"{}\"\n", at.line, name);
    }
    const size_t end = l + 1 < line_begin_.size() ? line_begin_[l + 1] : text_.size();
    out.append(text_, line_begin_[l], end - line_begin_[l]);
  }
  return out;
}

/// One cause at a time, the surest first: what follows from it is gone in the next round.
bool Source::leave_out(const std::vector<Diagnostic>& errors) {
  constexpr std::string_view kMissing = "open source file \"";
  bool progress = false;
  for (const Diagnostic& e : errors) {
    if (const size_t quote = e.message.find(kMissing); quote != std::string::npos) {
      const size_t name = quote + kMissing.size();
      if (position_of(e) != std::string::npos) progress |= leave_out_includes(e.message.substr(name, e.message.find('"', name) - name), false);
      else progress |= inline_headers() || leave_out_includes("", true);
    } else if (e.message.ends_with("includes itself")) {
      progress |= inline_headers();  // its name is the one that the whole source has for the compiler
    }
    if (progress) return true;
  }
  for (const Diagnostic& e : errors)
    if (position_of(e) == std::string::npos) return inline_headers() || leave_out_includes("", true);
  for (const bool surely : {true, false}) {
    for (const Diagnostic& e : errors)
      if (is_for_host(e) == surely) progress |= leave_out_declaration(e);
    if (progress) return true;
  }
  return false;
}

std::vector<std::string> Source::kernel_templates() const {
  std::vector<std::string> out;
  for (const Declaration& d : declarations_.all)
    if (d.is_kernel && d.is_template && std::find(out.begin(), out.end(), d.name) == out.end()) out.push_back(d.name);
  return out;
}

std::string Source::own_name(const std::string& file) const {
  for (size_t l = 0; l < origin_.size(); ++l)
    if ((l == 0 || origin_[l - 1].file != origin_[l].file) && (fs::path("/") / origin_[l].file).lexically_normal() == file) return origin_[l].file;
  return file;
}

size_t Source::position_of(const Diagnostic& error) const {
  for (size_t l = 0; l < origin_.size(); ++l) {
    if (origin_[l].line != error.line || origin_[l].file != error.file) continue;
    const size_t end = l + 1 < line_begin_.size() ? line_begin_[l + 1] : text_.size();
    size_t column = 0;
    if (error.excerpt.size() == 2)
      if (const size_t caret = error.excerpt[1].find('^'); caret != std::string::npos && caret >= 2) column = caret - 2;
    return std::min(line_begin_[l] + column, end - 1);
  }
  return std::string::npos;
}

Where Source::where(size_t position) const {
  const size_t l = static_cast<size_t>(std::upper_bound(line_begin_.begin(), line_begin_.end(), position) - line_begin_.begin()) - 1;
  return origin_[l];
}

/// Directives stay: what they define or end may matter outside.
void Source::blank(size_t begin, size_t end) {
  for (size_t at = begin; at < end; ++at) {
    const auto inside = std::find_if(declarations_.directives.begin(), declarations_.directives.end(), [&](const Directive& d) { return d.begin <= at && at < d.end; });
    if (inside != declarations_.directives.end()) at = inside->end - 1;
    else if (text_[at] != '\n') text_[at] = ' ';
  }
}

bool Source::leave_out_declaration(const Diagnostic& error) {
  size_t at = position_of(error);
  // The caret may stand right before the declaration, or behind its last character.
  const Declaration* found = nullptr;
  const Declaration* around = nullptr;  // the class that it is in
  for (const Declaration& d : declarations_.all) {
    if (at < d.begin || at >= d.end || d.kind == Declaration::Kind::kScope) continue;
    if (d.kind == Declaration::Kind::kClass) around = &d;
    found = &d;
  }
  if (!found) return false;
  // Without one of its data members a class would be another.
  if (found->member && found->kind != Declaration::Kind::kFunction) found = around;
  if (!found || found->device || text_[found->begin] == ' ') return false;
  left_out_.push_back({found->name.empty() ? "a declaration" : found->name, where(found->begin), is_for_host(error) ? "" : error.message});
  blank(found->begin, found->end);
  return true;
}

bool Source::compiler_has(const std::string& header) const {
  const std::string& toolkit = nvrtc_info().include_dir;
  const auto exists = [&](const std::string& name) { return !toolkit.empty() && (is_file(fs::path(toolkit) / name) || is_file(fs::path(toolkit) / "cccl" / name)); };
  return exists(header) || built_in_header(header) || !redirected_header(header, exists).empty();
}

/// Those that are nowhere, or those of `libraries`.
bool Source::leave_out_includes(const std::string& missing, bool libraries) {
  bool progress = false;
  for (const Directive& d : declarations_.directives) {
    const std::string_view included = d.included();
    if (included.empty() || text_[d.begin] != '#') continue;
    const std::string name(included.substr(1, included.size() - 2));
    const bool out = libraries ? is_host_library(name) : (is_host_library(name) || is_host_standard(name)) && (name == missing || (find_header(d, where(d.begin).file).empty() && !compiler_has(name)));
    if (!out) continue;
    left_out_.push_back({"#include " + std::string(included), where(d.begin), libraries ? "" : "no such header"});
    for (size_t at = d.begin; at < d.end; ++at)
      if (text_[at] != '\n') text_[at] = ' ';
    progress = true;
    without_libraries_ |= libraries;
  }
  return progress;
}

/// One of the user's own, as its file is called; "" for others.
std::string Source::find_header(const Directive& include, const std::string& includer) const {
  const std::string_view included = include.included();
  if (included.empty()) return "";
  const std::string_view name = included.substr(1, included.size() - 2);
  std::vector<std::string> where = directories_;
  if (included[0] == '"') where.insert(where.begin(), fs::path(includer).parent_path().string());
  for (const std::string& directory : where) {
    const std::string path = joined(directory, name);
    if (!is_file(path)) continue;
    const std::string& toolkit = nvrtc_info().include_dir;
    std::error_code error;
    return !toolkit.empty() && fs::weakly_canonical(path, error).string().starts_with(fs::weakly_canonical(toolkit, error).string()) ? "" : path;
  }
  return "";
}

bool Source::inline_headers() {
  if (inlined_) return false;
  inlined_ = true;
  const std::string text = std::move(text_), file = origin_.front().file;
  const size_t lines = origin_.size();
  text_.clear();
  origin_.clear();
  line_begin_.clear();
  left_out_.clear();
  std::set<std::string> once;
  append(text, file, 0, once);
  declarations_ = find_declarations(text_);
  return origin_.size() != lines;
}

void Source::append(const std::string& text, const std::string& file, int depth, std::set<std::string>& once) {
  const Declarations found = find_declarations(text);
  auto directive = found.directives.begin();
  int line = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    ++line;
    while (directive != found.directives.end() && directive->begin < at) ++directive;
    const Directive* d = directive != found.directives.end() && directive->begin < end ? &*directive : nullptr;
    std::string header = d && depth < kMaxDepth && text_.size() < kMaxText ? find_header(*d, file) : "";
    const bool pragma = d && d->text.find("pragma") != std::string_view::npos && d->text.find("once") != std::string_view::npos;
    if (!header.empty()) {
      std::ostringstream content;
      content << std::ifstream(header, std::ios::binary).rdbuf();
      std::string inner = std::move(content).str();
      if (inner.empty() || inner.back() != '\n') inner += '\n';
      if (!once.count(header)) append(inner, header, depth + 1, once);
    } else {
      origin_.push_back({file, line, 0});
      line_begin_.push_back(text_.size());
      if (pragma) once.insert(file);
      else text_.append(text, at, end - at);
      text_ += '\n';
    }
    at = end + 1;
  }
}

}  // namespace roofgen::check

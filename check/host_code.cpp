#include "check/host_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "runtime/compile/built_in_headers.h"
#include "runtime/compile/headers.h"
#include "runtime/compiler.h"

namespace roofgen::check {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;  // of nested #include
constexpr size_t kMaxHeaders = 500, kMaxHeaderText = size_t{2} << 20;
constexpr size_t kMaxText = size_t{16} << 20;
constexpr size_t kMaxTextOfAllCopies = size_t{1} << 20;

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Beginnings of the names of headers of the toolkit and of other libraries for host programs, which NVRTC cannot
/// compile.
constexpr const char* kHostLibraries =
    "cublas cusparse cufft cusolver curand.h cudnn nccl nvrtc nvtx nvToolsExt npp nvml cuda_gl_interop "
    "cuda_profiler_api cudaProfiler cuda_runtime_api cuda.h thrust/ cub/device GL/ mpi omp.h opencv cutensor "
    "helper_ torch/ ATen/ c10/ nvJitLink nvjpeg ";

/// Standard and system headers for host programs. Any other missing header is an error, because a kernel may depend on
/// its definitions.
constexpr const char* kHostStandard =
    "bits/stdc++.h cctype chrono codecvt condition_variable ctime ctype.h deque dirent.h errno.h cerrno exception "
    "execution fcntl.h filesystem format "
    "forward_list fstream future getopt.h inttypes.h cinttypes iomanip ios iosfwd iostream istream list locale "
    "locale.h malloc.h map memory memory.h mutex new numeric ostream pthread.h queue random regex set shared_mutex "
    "signal.h csignal sstream stack stdarg.h cstdarg stdexcept strings.h string string_view system_error thread "
    "time.h typeindex typeinfo unistd.h unordered_map unordered_set valarray vector windows.h atomic cstdbool "
    "stdbool.h direct.h io.h glob.h libgen.h netdb.h poll.h pwd.h sched.h semaphore.h termios.h wchar.h ";

bool is_host_library(std::string_view name) {
  std::istringstream starts(kHostLibraries);
  for (std::string start; starts >> start;)
    if (name.starts_with(start)) return true;
  return false;
}

bool is_host_standard(std::string_view name) {
  std::istringstream names(kHostStandard);
  for (const std::string_view directory : {"sys/", "arpa/", "net/", "netinet/"})
    if (name.starts_with(directory)) return true;
  return std::find(std::istream_iterator<std::string>(names), {}, name) != std::istream_iterator<std::string>();
}

/// The error is about __host__ code. NVRTC compiles unmarked functions for the device.
bool is_for_host(const Diagnostic& e) { return e.message.find("JIT mode") != std::string::npos; }

bool is_pragma_once(const Directive& d) {
  const Directive::Words words = d.words();
  return words.first == "pragma" && words.second == "once";
}

std::string joined(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : (fs::path(directory) / name).lexically_normal().string();
}

/// Compilers ignore a byte order mark.
std::string without_mark(std::string text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

/// A file, with a newline at its end.
std::string text_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  std::string text = without_mark(std::move(content).str());
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

bool has_word(std::string_view text, std::string_view word) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_part(text[at - 1])) && (at + word.size() == text.size() || !is_part(text[at + word.size()])))
      return true;
  return false;
}

/// Blanks a #line directive at a line's begin, or the preprocessor's form of one: all places are of the file as it is,
/// where its text is to be removed.
void blank_line_marker(std::string& text, size_t begin) {
  const size_t end = text.find('\n', begin);
  const auto after_blanks = [&](size_t at) { return std::min(text.find_first_not_of(" \t", at), end); };
  size_t at = after_blanks(begin);
  if (text[at] != '#') return;
  at = after_blanks(at + 1);
  if (text.compare(at, 4, "line") == 0) at = after_blanks(at + 4);
  if (text[at] >= '0' && text[at] <= '9')
    std::fill(text.begin() + static_cast<ptrdiff_t>(begin), text.begin() + static_cast<ptrdiff_t>(end), ' ');
}

}  // namespace

Source::Source(std::string file, std::string text, std::vector<std::string> directories)
    : directories_(std::move(directories)), text_(without_mark(std::move(text))) {
  if (text_.empty() || text_.back() != '\n') text_ += '\n';
  int line = 0;
  for (size_t at = 0; at < text_.size(); at = text_.find('\n', at) + 1) {
    blank_line_marker(text_, at);
    origin_.push_back({file, ++line, 0});
    line_begin_.push_back(at);
  }
  declarations_ = find_declarations(text_);
}

std::string Source::text() const {
  std::string out;
  // The removed library headers include these, and kernels rely on that.
  if (without_libraries_)
    for (const char* header : {"cuda_fp16.h", "cuda_bf16.h"})
      if (compiler_has(header)) out += fmt::format("#include <{}>\n", header);
  auto directive = declarations_.directives.begin();
  for (size_t l = 0; l < origin_.size(); ++l) {
    const Where& at = origin_[l];
    // A #line inside a branch that is not taken has no effect, so one follows each branch, except inside a comment.
    bool branch_ended = false;
    for (; directive != declarations_.directives.end() && directive->end < line_begin_[l]; ++directive) {
      const std::string_view word = directive->words().first;
      const size_t opens = directive->text.rfind("/*"), closes = directive->text.rfind("*/");
      branch_ended = (word == "endif" || word.starts_with("el")) && directive->end + 1 == line_begin_[l] &&
                     (opens == std::string::npos || (closes != std::string::npos && opens < closes));
    }
    if (l == 0 || branch_ended || origin_[l - 1].file != at.file || origin_[l - 1].line + 1 != at.line) {
      // NVRTC copies the name into PTX as it is, and a string of PTX has neither quotes nor line ends.
      std::string name;
      for (const char c : at.file)
        name += c == '\\' ? "\\\\"
                          : std::string(1, c == '"'                                      ? '\''
                                           : std::iscntrl(static_cast<unsigned char>(c)) ? '?'
                                                                                         : c);
      out += fmt::format("#line {} \"{}\"\n", at.line, name);
    }
    const size_t end = l + 1 < line_begin_.size() ? line_begin_[l + 1] : text_.size();
    out.append(text_, line_begin_[l], end - line_begin_[l]);
  }
  return out;
}

/// Removes the most certain causes first: their follow-up errors disappear with them.
bool Source::leave_out(std::vector<Diagnostic> errors) {
  constexpr std::string_view kMissing = "open source file \"";
  bool progress = false;
  const auto is_outside = [&](const Diagnostic& e) { return positions_of(e).empty(); };
  // An error in a header: it becomes part of the source. In a toolkit header: a host library is the cause.
  if (std::any_of(errors.begin(), errors.end(), [&](const Diagnostic& e) {
        return is_outside(e) ||
               e.message.ends_with("includes itself");  // has the name under which NVRTC gets the source
      })) {
    progress |= inline_headers();
    for (Diagnostic& e : errors) e.file = own_name(e.file);
    if (std::any_of(errors.begin(), errors.end(), is_outside)) progress |= leave_out_includes("", true);
  }
  for (const Diagnostic& e : errors)
    if (const size_t quote = e.message.find(kMissing); quote != std::string::npos && !is_outside(e)) {
      const size_t name = quote + kMissing.size();
      progress |= leave_out_includes(e.message.substr(name, e.message.find('"', name) - name), false);
    }
  for (const bool surely : {true, false}) {
    if (progress) return true;
    for (const Diagnostic& e : errors)
      if (is_for_host(e) == surely) progress |= leave_out_declaration(e);
  }
  return progress || inline_all_copies();
}

bool Source::has_host_functions() const {
  return std::any_of(declarations_.all.begin(), declarations_.all.end(), [](const Declaration& d) {
    return d.kind == Declaration::Kind::kFunction && !d.device && !d.member && !d.is_template;
  });
}

std::vector<std::string> Source::kernel_templates() const {
  std::vector<std::string> out;
  for (const Declaration& d : declarations_.all)
    if (d.is_kernel && d.is_template && std::find(out.begin(), out.end(), d.name) == out.end()) out.push_back(d.name);
  return out;
}

std::string Source::own_name(const std::string& file) const {
  for (size_t l = 0; l < origin_.size(); ++l)
    if ((l == 0 || origin_[l - 1].file != origin_[l].file) &&
        ("/" + origin_[l].file == file || (fs::path("/") / origin_[l].file).lexically_normal() == file ||
         fs::absolute(origin_[l].file).lexically_normal() == file))
      return origin_[l].file;
  return file;
}

bool Source::is_own(const std::string& file) const {
  return std::any_of(origin_.begin(), origin_.end(), [&](const Where& line) { return line.file == file; });
}

std::vector<size_t> Source::positions_of(const Diagnostic& error) const {
  size_t column = 0;
  if (error.excerpt.size() == 2)
    if (const size_t caret = error.excerpt[1].find('^'); caret != std::string::npos && caret >= 2) column = caret - 2;
  std::vector<size_t> out;
  for (size_t l = 0; l < origin_.size(); ++l) {
    if (origin_[l].line != error.line || origin_[l].file != error.file) continue;
    const size_t end = l + 1 < line_begin_.size() ? line_begin_[l + 1] : text_.size();
    out.push_back(std::min(line_begin_[l] + column, end - 1));
  }
  return out;
}

Where Source::where(size_t position) const {
  const size_t l =
      static_cast<size_t>(std::upper_bound(line_begin_.begin(), line_begin_.end(), position) - line_begin_.begin()) - 1;
  return origin_[l];
}

/// Overwrites text with blanks, except directives: code outside may depend on them.
void Source::blank(size_t begin, size_t end) {
  const auto& directives = declarations_.directives;
  auto next = std::lower_bound(directives.begin(), directives.end(), begin,
                               [](const Directive& d, size_t at) { return d.end <= at; });
  for (size_t at = begin; at < end; ++at) {
    if (next != directives.end() && next->begin <= at)
      at = next++->end - 1;
    else if (text_[at] != '\n')
      text_[at] = ' ';
  }
}

/// Removes the declaration in all copies of its file, because the active copy is unknown.
bool Source::leave_out_declaration(const Diagnostic& error) {
  bool progress = false;
  LeftOut out;
  for (const size_t at : positions_of(error)) progress |= leave_out_declaration_at(at, out);
  if (!progress) return false;
  if (!is_for_host(error)) out.why = error.message;
  left_out_.push_back(std::move(out));
  return true;
}

bool Source::leave_out_declaration_at(size_t at, LeftOut& out) {
  // The innermost declaration around the position comes last in the list.
  const Declaration* found = nullptr;
  const Declaration* around = nullptr;  // the innermost enclosing class
  for (const Declaration& d : declarations_.all) {
    if (at < d.begin || at >= d.end || d.kind == Declaration::Kind::kScope) continue;
    if (d.kind == Declaration::Kind::kClass) around = &d;
    found = &d;
  }
  if (!found) return false;
  // Removing a data member would change the layout of the class, so the whole class goes.
  if (found->member && found->kind != Declaration::Kind::kFunction) found = around;
  if (!found || found->device || text_[found->begin] == ' ') return false;
  out.what = found->name.empty() ? "a declaration" : found->name;
  out.where = where(found->begin);
  blank(found->begin, found->end);
  return true;
}

bool Source::compiler_has(const std::string& header) const {
  const std::string& toolkit = nvrtc_info().include_dir;
  const auto exists = [&](const std::string& name) {
    return !toolkit.empty() && (is_file(fs::path(toolkit) / name) || is_file(fs::path(toolkit) / "cccl" / name));
  };
  return exists(header) || built_in_header(header) || !redirected_header(header, exists).empty();
}

/// Removes the #include of `missing` and of other host headers that do not exist, or with `libraries` those of host
/// libraries.
bool Source::leave_out_includes(const std::string& missing, bool libraries) {
  bool progress = false;
  std::set<std::pair<std::string, int>> told;  // a header may have several copies
  for (const Directive& d : declarations_.directives) {
    const std::string_view included = d.included();
    if (included.empty() || text_[d.begin] != '#') continue;
    const std::string name(included.substr(1, included.size() - 2));
    const bool out =
        libraries ? is_host_library(name)
                  : (is_host_library(name) || is_host_standard(name)) &&
                        (name == missing || (find_header(d, where(d.begin).file).empty() && !compiler_has(name)));
    if (!out) continue;
    const Where at = where(d.begin);
    if (told.insert({at.file, at.line}).second)
      left_out_.push_back({"#include " + std::string(included), at, libraries ? "" : "no such header"});
    for (size_t i = d.begin; i < d.end; ++i)
      if (text_[i] != '\n') text_[i] = ' ';
    progress = true;
    without_libraries_ |= libraries;
  }
  return progress;
}

/// Path of a header of the user; "" for toolkit headers and missing ones.
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
    return !toolkit.empty() &&
                   fs::weakly_canonical(path, error).string().starts_with(fs::weakly_canonical(toolkit, error).string())
               ? ""
               : path;
  }
  return "";
}

/// A header that replaces #include lines.
struct Source::Header {
  std::string text;
  Declarations found;
  std::string once;   ///< macro that replaces #pragma once
  std::string guard;  ///< include guard; `once` for a #pragma once outside conditionals; or empty
  const Directive *opens = nullptr, *closes = nullptr;  ///< the guard's conditional, if it encloses the whole file
  struct Copy {
    size_t depth;   ///< number of enclosing conditionals
    int innermost;  ///< branch of the innermost one
  };
  std::vector<Copy> copies;
  bool open = false;  ///< is being inlined

  Header(std::string content, size_t number)
      : text(std::move(content)), found(find_declarations(text)), once(fmt::format("ROOFGEN_ONCE_{}", number)) {
    size_t depth = 0, first = 0;
    const auto& all = found.directives;
    for (const Directive& d : all) {
      const auto [word, name, end] = d.words();
      if (word.starts_with("if")) ++depth;
      if (word == "endif" && depth > 0) --depth;
      if (is_pragma_once(d) && depth == 0) guard = once;
    }
    while (first < all.size() && is_pragma_once(all[first])) ++first;
    if (all.size() < first + 3 || all[first].words().first != "ifndef" || all[first + 1].words().first != "define" ||
        all[first].words().second != all[first + 1].words().second)
      return;
    for (size_t i = first; i < all.size(); ++i) {
      const std::string_view word = all[i].words().first;
      if (word.starts_with("if")) ++depth;
      if (word.starts_with("el") && depth == 1) return;
      if (word != "endif" || depth == 0 || --depth > 0) continue;
      if (i + 1 < all.size()) return;
      opens = &all[first];
      closes = &all[i];
      if (guard.empty()) guard = opens->words().second;
    }
  }
};

/// Only the compiler can evaluate conditionals, so it selects the active copy of a header: each copy is enclosed in
/// #ifndef of a macro that the copy defines in place of #pragma once.
class Source::Inlining {
 public:
  Inlining(Source& source, bool all_copies) : s_(source), all_copies_(all_copies) {}

  void run(std::string text, const std::string& file) {
    Header main(std::move(text), 0);
    put(main, file, 0);
  }
  bool too_large() const { return too_large_; }
  bool without_copy() const { return without_copy_; }

 private:
  size_t limit() const { return all_copies_ ? kMaxTextOfAllCopies : kMaxText; }
  void line(const std::string& text, const std::string& file, int number) {
    s_.origin_.push_back({file, number, 0});
    s_.line_begin_.push_back(s_.text_.size());
    s_.text_ += text;
    s_.text_ += '\n';
  }

  void put(Header& h, const std::string& file, int depth) {
    h.open = true;
    auto directive = h.found.directives.begin();
    const size_t outside = conditionals_.size();
    int number = 0;
    for (size_t at = 0; at < h.text.size();) {
      const size_t end = std::min(h.text.find('\n', at), h.text.size());
      const std::string whole = h.text.substr(at, end - at);
      ++number;
      while (directive != h.found.directives.end() && directive->begin < at) ++directive;
      const Directive* d = directive != h.found.directives.end() && directive->begin < end ? &*directive : nullptr;
      if (d && d != h.opens && d != h.closes) follow(*d, outside);
      const std::string_view name = d ? d->included() : "";
      const size_t name_end =
          name.empty() ? 0 : d->begin - at + static_cast<size_t>(name.data() + name.size() - d->text.data());
      const std::string header = name_end <= whole.size() && d ? s_.find_header(*d, file) : "";
      // Keep a comment that ends before the directive or begins after it.
      if (!header.empty())
        include(header, {whole.substr(0, d->begin - at), whole.substr(name_end)}, file, number, depth);
      else if (d && is_pragma_once(*d))
        line(whole.substr(0, d->begin - at) + "#define " + h.once + whole.substr(d->begin - at + d->words().end), file,
             number);
      else
        line(whole, file, number);
      at = end + 1;
    }
    conditionals_.resize(std::min(outside, conditionals_.size()));
    h.open = false;
  }

  /// Tracks the open branches of conditionals, without include guards: after the file a guard has no effect.
  void follow(const Directive& d, size_t outside) {
    const std::string_view word = d.words().first;
    if (word.starts_with("if"))
      conditionals_.push_back(++branches_);
    else if (conditionals_.size() <= outside)
      return;
    else if (word.starts_with("el"))
      conditionals_.back() = ++branches_;
    else if (word == "endif")
      conditionals_.pop_back();
  }

  void include(const std::string& path, const std::pair<std::string, std::string>& around, const std::string& file,
               int number, int depth) {
    Header* h = header(path);
    // If a copy precedes this place on every path, the guard most likely makes this one empty; without this rule
    // headers that include each other grow without limit. Otherwise the compiler reads the file through the #include
    // below.
    const bool again =
        h && !all_copies_ && !h->guard.empty() &&
        std::any_of(h->copies.begin(), h->copies.end(), [&](const Header::Copy& c) {
          return c.depth == 0 || (c.depth <= conditionals_.size() && conditionals_[c.depth - 1] == c.innermost);
        });
    const bool room = h && s_.text_.size() + h->text.size() < limit();
    const bool whole = room && !h->open && !again && depth < kMaxDepth;
    too_large_ |= !room;
    without_copy_ |= again;
    line(around.first + "#ifndef " + (h ? h->once : "ROOFGEN_TOO_LARGE"), file, number);
    if (whole) {
      h->copies.push_back({conditionals_.size(), conditionals_.empty() ? 0 : conditionals_.back()});
      put(*h, path, depth + 1);
    } else {
      line("#include \"" + fs::absolute(path).lexically_normal().string() + "\"", file, number);
      if (h && h->guard == h->once) line("#define " + h->once, file, number);
    }
    line("#endif", file, number);
    const size_t comment = around.second.find('/');
    line(comment == std::string::npos ? "" : around.second.substr(comment), file, number);
  }

  /// Null if the text would become too large.
  Header* header(const std::string& path) {
    const auto known = headers_.find(path);
    if (known != headers_.end()) return &known->second;
    std::error_code error;
    const uintmax_t bytes = fs::file_size(path, error);
    if (error || s_.text_.size() + bytes >= limit()) return nullptr;
    return &headers_.try_emplace(path, text_of(path), headers_.size() + 1).first->second;
  }

  Source& s_;
  bool all_copies_, too_large_ = false, without_copy_ = false;
  std::map<std::string, Header> headers_;
  std::vector<int> conditionals_;
  int branches_ = 0;
};

/// The directives of a file and of the user's headers, in the order of their inclusion and each header once. False if
/// the headers are too many or too large.
bool Source::each_directive(const Header& in, const std::string& file, size_t depth,
                            std::map<std::string, Header>& seen, const EachDirective& act) const {
  for (const Directive& d : in.found.directives) {
    if (&d == in.opens || &d == in.closes) continue;
    const std::string_view word = d.words().first;
    if (word.starts_with("if")) ++depth;
    if (word == "endif" && depth > 0) --depth;
    const std::string header = find_header(d, file);
    if (header.empty()) {
      act(d, depth);
    } else if (!seen.count(header)) {
      std::error_code error;
      if (seen.size() >= kMaxHeaders || fs::file_size(header, error) > kMaxHeaderText || error) return false;
      const Header& h = seen.try_emplace(header, text_of(header), seen.size()).first->second;
      if (!each_directive(h, header, depth, seen, act)) return false;
    }
  }
  return true;
}

std::string Source::large_includes() const {
  constexpr size_t kLarge = 150;  // headers below it: parsing takes from 0.1 s on
  const HeaderSet toolkit(nvrtc_info().include_dir);
  std::vector<std::string> macros;
  std::string out;
  bool ordered = false;
  std::map<std::string, Header> seen;
  each_directive(Header(text_, 0), origin_.front().file, 0, seen, [&](const Directive& d, size_t depth) {
    const auto [word, name, end] = d.words();
    if (word == "define" || word == "undef") macros.emplace_back(name);
    const std::string_view included = d.included();
    if (ordered || depth > 0 || included.size() < 3) return;
    const std::string header(included.substr(1, included.size() - 2));
    if (is_host_library(header)) return;
    const std::string line = fmt::format("#include <{}>\n", header);
    const Headers below = toolkit.closure(line);
    if (below.size() < kLarge || out.find(line) != std::string::npos) return;
    ordered = std::any_of(below.begin(), below.end(), [&](const auto& h) {
      return std::any_of(macros.begin(), macros.end(), [&](const std::string& m) { return has_word(h.second, m); });
    });
    if (!ordered) out += line;
  });
  return out;
}

std::optional<std::string> Source::headers_text() const {
  std::map<std::string, Header> seen;
  bool known = true;
  known &= each_directive(Header(text_, 0), origin_.front().file, 0, seen, [&](const Directive& d, size_t) {
    known &=
        (d.words().first != "include" || !d.included().empty()) && d.text.find("__has_include") == std::string::npos;
  });
  if (!known) return std::nullopt;
  std::string out;
  for (const auto& [path, header] : seen) out += fmt::format("{} {}\n{}", path, header.text.size(), header.text);
  return out;
}

bool Source::inline_headers() {
  if (inlined_) return false;
  inlined_ = true;
  const size_t lines = origin_.size();
  before_ = text_;
  left_out_before_ = left_out_.size();
  const Inlining done = inline_into(before_, false);
  without_copy_ = done.without_copy();
  return origin_.size() != lines;
}

/// A copy that was taken for empty was not, and has host code.
bool Source::inline_all_copies() {
  if (!without_copy_) return false;
  without_copy_ = false;
  Source as_it_is = *this;
  left_out_.resize(left_out_before_);
  if (!inline_into(before_, true).too_large()) return true;
  *this = std::move(as_it_is);
  return false;
}

Source::Inlining Source::inline_into(const std::string& text, bool all_copies) {
  const std::string file = origin_.front().file;
  text_.clear();
  origin_.clear();
  line_begin_.clear();
  Inlining out(*this, all_copies);
  out.run(text, file);
  declarations_ = find_declarations(text_);
  return out;
}

}  // namespace roofgen::check

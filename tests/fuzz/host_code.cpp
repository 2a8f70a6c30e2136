// Arbitrary bytes as a .cu file: found declarations lie within the file, and omitting rejected code keeps the line
// numbers.
#include "check/host_code.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "check/declarations.h"
#include "check/skeleton.h"
#include "tests/fuzz/targets.h"

namespace roofgen::fuzz_host_code {
namespace {

using namespace check;

void require(bool holds) {
  if (!holds) std::abort();
}

void lie_within(const Declarations& found, size_t size) {
  size_t begin = 0;
  for (const Declaration& d : found.all) {
    require(begin <= d.begin && d.begin < d.end && d.end <= size);
    begin = d.begin;
  }
  size_t end = 0;
  for (const Directive& d : found.directives) {
    require(end <= d.begin && d.begin < d.end && d.end <= size);
    end = d.end;
    d.included();
    require(d.words().end <= d.text.size());
  }
}

/// The lines of the source passed to the compiler, without #line directives.
size_t lines_of(const std::string& text) {
  size_t lines = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) lines += text.compare(at, 6, "#line ") != 0;
  return lines;
}

}  // namespace

FUZZ_TARGET(host_code) {
  if (size > 1 << 16) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  lie_within(find_declarations(text), size);
  for (const SourceLaunch& l : launches_in(text)) require(l.line > 0 && !l.kernel.empty());
  // #line directives of the input could not be told from added ones.
  if (text.find("#line ") != std::string::npos) return 0;
  const std::string file = "nowhere/user.cu";
  check::Source source(file, text, {});
  const size_t lines = lines_of(source.text());
  require(lines ==
          static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + (text.empty() || text.back() != '\n'));
  uint32_t bits = 2166136261u;
  for (size_t i = 0; i < size; ++i) bits = (bits ^ data[i]) * 16777619u;
  for (int round = 0; round < 4; ++round) {
    std::vector<Diagnostic> errors(1 + bits % 3);
    for (Diagnostic& e : errors) {
      bits = bits * 1664525u + 1013904223u;
      e.file = file;
      e.line = static_cast<int>((bits >> 8) % (lines + 1));
      e.excerpt = {"", std::string(2 + (bits >> 20) % 60, ' ') + "^"};
      e.message = bits & 32   ? "could not open source file \"vector\" (no directories in search list)"
                  : bits & 64 ? "a function without execution space annotations is considered a host function, and "
                                "host functions are not allowed in JIT mode"
                              : "identifier \"x\" is undefined";
    }
    if (std::any_of(errors.begin(), errors.end(), [](const Diagnostic& e) { return e.line == 0; })) continue;
    const size_t before = source.left_out().size();
    if (!source.leave_out(errors)) continue;
    require(source.left_out().size() > before);
    require(lines_of(source.text()) == lines);
    source.kernel_templates();
  }
  return 0;
}

}  // namespace roofgen::fuzz_host_code

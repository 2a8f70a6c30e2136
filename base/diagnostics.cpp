#include "base/diagnostics.h"

#include <fmt/format.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>

#include <algorithm>
#include <string_view>

namespace roofgen {
namespace {

constexpr size_t kExcerptBefore = 70;  // characters shown left and right of the caret; generated or
constexpr size_t kExcerptAfter = 80;   // hostile lines can be megabytes long
constexpr size_t kMaxNotes = 12;

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t characters(std::string_view s) { return std::count_if(s.begin(), s.end(), starts_character); }

/// One terminal column per character: tabs and control characters become blanks.
std::string printable(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return out;
}

std::string_view view(llvm::StringRef text) { return {text.data(), text.size()}; }

/// Line, column and text of the line at a byte of the source.
llvm::SMDiagnostic diagnostic(const Source& source, size_t offset) {
  llvm::SourceMgr manager;
  const unsigned buffer = manager.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(source.text, "", /*RequiresNullTerminator=*/false), {});
  const char* begin = manager.getMemoryBuffer(buffer)->getBufferStart();
  const size_t most = source.text.size();
  return manager.GetMessage(llvm::SMLoc::getFromPointer(begin + std::min(offset, most)), llvm::SourceMgr::DK_Error, "");
}

/// The part of the line ahead of the place. The reference is into `at`.
std::string_view line_before(const llvm::SMDiagnostic& at) {
  return view(at.getLineContents()).substr(0, static_cast<size_t>(at.getColumnNo()));
}

}  // namespace

Where locate(const Source& source, uint32_t offset) {
  Where where = source.origin;
  if (where.line == 0) return where;
  const llvm::SMDiagnostic at = diagnostic(source, offset);
  const int column = static_cast<int>(characters(line_before(at)));
  if (!source.lines.empty()) {
    where = source.lines[static_cast<size_t>(at.getLineNo() - 1)];
    where.col += column;
    return where;
  }
  where.col = at.getLineNo() == 1 ? std::max(where.col, 1) + column : 1 + column;
  where.line += at.getLineNo() - 1;
  return where;
}

Error located_error(const Source& source, Span at, std::string message) {
  const size_t offset = std::min<size_t>(at.begin, source.text.size());
  const llvm::SMDiagnostic found = diagnostic(source, offset);
  const std::string_view line = view(found.getLineContents());
  const size_t begin = line_before(found).size();
  size_t first = 0, last = line.size();
  std::string left, right;
  if (begin > kExcerptBefore) {
    first = begin - kExcerptBefore;
    while (first < begin && !starts_character(line[first])) ++first;
    left = "...";
  }
  if (last - begin > kExcerptAfter) {
    last = begin + kExcerptAfter;
    while (last > begin && !starts_character(line[last])) --last;
    right = "...";
  }
  const size_t end = std::clamp<size_t>(begin + (at.end > offset ? at.end - offset : 0), begin, last);
  const size_t width = std::max<size_t>(characters(line.substr(begin, end - begin)), 1);
  const std::string indent(left.size() + characters(line.substr(first, begin - first)), ' ');

  Error error{Exit::kFailed, std::move(message), locate(source, static_cast<uint32_t>(offset)), {}};
  const std::string number = error.where.line ? std::to_string(error.where.line) : "";
  error.notes.push_back(
      fmt::format("{:>5} | {}{}{}", number, left, printable(line.substr(first, last - first)), right));
  error.notes.push_back(fmt::format("      | {}^{}", indent, std::string(width - 1, '~')));
  return error;
}

void add_note(Error& error, std::string note) {
  if (error.notes.size() < kMaxNotes)
    error.notes.push_back(std::move(note));
  else if (error.notes.size() == kMaxNotes)
    error.notes.push_back("...");
}

void fail_at(const Source& source, Span at, std::string message) {
  throw Failure{located_error(source, at, std::move(message))};
}

}  // namespace roofgen

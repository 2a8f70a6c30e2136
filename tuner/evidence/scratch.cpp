#include "tuner/evidence/scratch.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace roofgen {

namespace fs = std::filesystem;

Result<ScratchReplay> ScratchReplay::make(const Replay& replay) {
  std::error_code failed;
  std::string pattern = (fs::temp_directory_path(failed) / "roofgen-replay-XXXXXX").string();
  if (failed || !mkdtemp(pattern.data()))
    return Error{Exit::kFailed, fmt::format("cannot make a temporary folder: {}", std::strerror(errno))};
  ScratchReplay out(pattern);
  ROOFGEN_CHECK(write_replay(replay, out.directory()));
  return out;
}

ScratchReplay::~ScratchReplay() {
  std::error_code ignored;
  if (!directory_.empty()) fs::remove_all(directory_, ignored);
}

std::string replay_program(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  std::error_code failed;
  // Resolved, because in another program /proc/self/exe is that program.
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  return failed ? "roofgen" : self.string();
}

std::string line_with(const std::string& text, const std::string& what) {
  const size_t at = text.find(what);
  if (at == std::string::npos) return "";
  const size_t newline = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  std::string line = text.substr(begin, text.find('\n', at) - begin);
  const size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : line.substr(first, std::min<size_t>(last - first + 1, 300));
}

}  // namespace roofgen

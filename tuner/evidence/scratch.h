// A replay bundle in a temporary folder, while another program reads it.
#pragma once

#include <string>

#include "tuner/evidence/replay.h"

namespace roofgen {

class ScratchReplay {
 public:
  static Result<ScratchReplay> make(const Replay& replay);
  ~ScratchReplay();  ///< removes the folder
  ScratchReplay(ScratchReplay&& other) noexcept : directory_(std::move(other.directory_)) { other.directory_.clear(); }
  ScratchReplay& operator=(ScratchReplay&&) = delete;
  const std::string& directory() const { return directory_; }

 private:
  explicit ScratchReplay(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

/// `chosen`, or if empty the path of the running program.
std::string replay_program(const std::string& chosen);

/// The first line of `text` that contains `what`, trimmed; empty: none.
std::string line_with(const std::string& text, const std::string& what);

}  // namespace roofgen

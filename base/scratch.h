// A directory for the time of one task.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace roofgen {

/// A new directory in $TMPDIR, or /tmp, removed with its contents. Throws std::system_error.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / (name + "-XXXXXX")).string()) {
    if (!mkdtemp(path_.data())) throw std::system_error(errno, std::generic_category(), path_);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace roofgen

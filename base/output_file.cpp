#include "base/output_file.h"

#include <fmt/format.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>

namespace roofgen {
namespace {

Error failed(const std::string& path, const std::string& why) {
  return Error{Exit::kFailed, fmt::format("cannot be written: {}", why), {path}};
}

/// Writes to an open file and closes it.
std::error_code put(int fd, std::string_view text) {
  llvm::raw_fd_ostream out(fd, /*shouldClose=*/true);
  out << llvm::StringRef(text.data(), text.size());
  out.close();
  const std::error_code error = out.error();
  out.clear_error();  // an error that is still set ends the process
  return error;
}

}  // namespace

Result<void> write_output(const std::string& path, std::string_view text) {
  namespace fs = llvm::sys::fs;
  int fd = -1;
  fs::file_status status;
  if (!fs::status(path, status) && !fs::is_regular_file(status) && !fs::is_directory(status)) {
    std::error_code error = fs::openFileForWrite(path, fd, fs::CD_OpenExisting);
    if (!error) error = put(fd, text);
    return error ? failed(path, error.message()) : Result<void>();
  }
  std::error_code error;
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(target, error)) target = std::filesystem::weakly_canonical(target, error);
  // Not llvm::sys::fs::TempFile, which replaces the handlers of signals.
  static std::atomic<uint64_t> counter = 0;  // threads may write the same file
  const std::string temporary = fmt::format("{}.tmp{}-{}", target.string(), getpid(), counter++);
  error = fs::openFileForWrite(temporary, fd);
  if (error) return failed(path, error.message());
  error = put(fd, text);
  if (!error) error = fs::rename(temporary, target.string());
  if (!error) return {};
  fs::remove(temporary);
  return failed(path, error.message());
}

Result<void> can_write(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::is_directory(path, error)) return failed(path, "is a directory");
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return {};  // a pipe or a device takes what it takes
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error)) return failed(path, "there is no folder " + folder.string());
  // access() says yes to root where the file system says no (/proc): a file is made and taken away again.
  std::string probe = (folder / ".roofgen-XXXXXX").string();
  const int fd = mkstemp(probe.data());
  if (fd < 0) return failed(path, std::strerror(errno));
  close(fd);
  unlink(probe.c_str());
  return {};
}

Result<void> make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path))
    return Error{Exit::kFailed, fmt::format("cannot make the directory {}: {}", path,
                                            error ? error.message() : "a file is in the way")};
  return {};
}

}  // namespace roofgen

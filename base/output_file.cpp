#include "base/output_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace roofgen {
namespace {

Error failed(const std::string& path, const char* why) {
  return Error{Exit::kFailed, fmt::format("cannot be written: {}", why), {path}};
}

/// Empty on success, else why not.
std::string put(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return std::strerror(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int why = errno;
  const bool closed = std::fclose(file) == 0;
  return written && closed ? "" : std::strerror(written ? errno : why);
}

}  // namespace

Result<void> write_output(const std::string& path, std::string_view text) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    const std::string why = put(path, text);
    return why.empty() ? Result<void>() : failed(path, why.c_str());
  }
  std::error_code error;
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(target, error)) target = std::filesystem::weakly_canonical(target, error);
  const std::string temporary = fmt::format("{}.tmp{}", target.string(), getpid());
  std::string why = put(temporary, text);
  if (why.empty() && std::rename(temporary.c_str(), target.c_str()) != 0) why = std::strerror(errno);
  if (why.empty()) return {};
  std::remove(temporary.c_str());
  return failed(path, why.c_str());
}

Result<void> can_write(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto cannot = [&](const std::string& why) {
    return Error{Exit::kFailed, fmt::format("cannot be written: {}", why), {path}};
  };
  if (fs::is_directory(path, error)) return cannot("is a directory");
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return {};  // a pipe or a device takes what it takes
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error)) return cannot("there is no folder " + folder.string());
  // access() says yes to root where the file system says no (/proc): a file is made and taken away again.
  std::string probe = (folder / ".roofgen-XXXXXX").string();
  const int fd = mkstemp(probe.data());
  if (fd < 0) return cannot(std::strerror(errno));
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

// Which pieces of work run now, among the processes that share their results.
#pragma once

#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace roofgen {

/// The right to do a piece of work, which no other process has meanwhile; it ends with this object or the process.
class WorkClaim {
 public:
  virtual ~WorkClaim() = default;
};

/// A claim is the lock of one byte of an empty file, at the hash of the key. The system ends the locks of a process
/// with the process, however that ends: no claim is left, and none expires.
class WorkClaims {
 public:
  explicit WorkClaims(std::string path) : path_(std::move(path)) {}
  ~WorkClaims();
  WorkClaims(const WorkClaims&) = delete;
  /// nullptr: another process has it. Where the file cannot be made or locked, no claim excludes another.
  std::unique_ptr<WorkClaim> claim(std::initializer_list<std::string_view> key);

 private:
  const std::string path_;
  std::once_flag opened_;
  int file_ = -1;
};

}  // namespace roofgen

#include "base/work_claims.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/mix.h"

namespace roofgen {
namespace {

off_t place_of(std::initializer_list<std::string_view> key) {
  uint64_t hash = 0;
  for (const std::string_view text : key) {
    for (const char c : text) hash = mix(hash + static_cast<unsigned char>(c));
    hash = mix(hash + 256);
  }
  return static_cast<off_t>(hash >> 2);  // places of locks end at 2^63
}

/// Locks of the open file, not of the process: two owners in one process exclude each other, too.
bool lock(int file, off_t place, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = place;
  range.l_len = 1;
  return fcntl(file, F_OFD_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES);
}

class Lock : public WorkClaim {
 public:
  Lock(int file, off_t place) : file_(file), place_(place) {}
  ~Lock() override { lock(file_, place_, F_UNLCK); }

 private:
  const int file_;
  const off_t place_;
};

}  // namespace

WorkClaims::~WorkClaims() {
  if (file_ >= 0) close(file_);
}

std::unique_ptr<WorkClaim> WorkClaims::claim(std::initializer_list<std::string_view> key) {
  std::call_once(opened_, [&] {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
    file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  });
  if (file_ < 0) return std::make_unique<WorkClaim>();
  const off_t place = place_of(key);
  if (!lock(file_, place, F_WRLCK)) return nullptr;
  return std::make_unique<Lock>(file_, place);
}

}  // namespace roofgen

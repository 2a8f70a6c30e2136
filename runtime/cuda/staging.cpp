#include "runtime/cuda/staging.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace roofgen {

Staging::~Staging() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  if (file_ >= 0) close(file_);
}

Result<void> Staging::create() {
  file_ = memfd_create("roofgen-staging", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(kBytes)) != 0)
    return Error{Exit::kUnavailable, fmt::format("no memory to share with a GPU worker: {}", std::strerror(errno))};
  return map();
}

Result<void> Staging::attach(int file) {
  file_ = file;
  return map();
}

Result<void> Staging::map() {
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED)
    return Error{Exit::kUnavailable, fmt::format("memory shared with a GPU worker: {}", std::strerror(errno))};
  bytes_ = {static_cast<std::byte*>(at), kBytes};
  return {};
}

}  // namespace roofgen

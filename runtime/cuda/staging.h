// Memory that a client shares with its GPU worker: inputs of gigabytes are made there by all cores and copied to the
// GPU from there. Before, a profile of a search (decode, K and V of 1 GB, simulated driver) had a seventh of the time
// of allocations in making the bytes, the rest in the socket.
#pragma once

#include <cstddef>
#include <span>

#include "roofgen/result.h"

namespace roofgen {

class Staging {
 public:
  static constexpr size_t kBytes = size_t{64} << 20;

  Staging() = default;
  ~Staging();
  Staging(const Staging&) = delete;

  /// The client's end: new memory, empty until it is written.
  Result<void> create();
  /// The worker's end: the memory behind an inherited file descriptor.
  Result<void> attach(int file);

  int file() const { return file_; }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  Result<void> map();

  int file_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace roofgen

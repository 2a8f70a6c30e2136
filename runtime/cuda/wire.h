// Messages between the GPU worker and its client, inside frames: plain bytes in host byte order. Both ends are the same
// binary, but all lengths are checked, so that a worker with corrupt memory cannot crash its client.
//   request   {op, arguments}                reply {kOk, results} or {kError, fault and Error}
//   allocate  while an input is filled:      {kWant, offset and size}, answered by a frame without fields when
//             these bytes are at the beginning of the shared memory
//   time      after each shot:               {kSample, Sample}
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/executor.h"

namespace roofgen::wire {

inline constexpr char kOpen[] = "open", kAllocate[] = "allocate", kRelease[] = "release", kWrite[] = "write",
                      kRead[] = "read", kPoison[] = "poison", kLoad[] = "load", kUnload[] = "unload", kRun[] = "run",
                      kState[] = "state", kTime[] = "time";
inline constexpr char kOk[] = "ok", kError[] = "error", kWant[] = "want", kSample[] = "sample";

class Packer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Packer& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Packer& put(std::string_view text) {
    put(uint64_t{text.size()});
    bytes_ += text;
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads values in the order of writing. After a missing value, all further values are zero and ok() is false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  requires std::is_arithmetic_v<T> Unpacker& get(T& value) {
    value = {};
    if (bytes_.size() < sizeof value) return fail();
    if constexpr (std::is_same_v<T, bool>)
      value = bytes_[0] != 0;  // any non-zero byte is true
    else
      std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return *this;
  }
  Unpacker& get(std::string& text) {
    uint64_t size = 0;
    get(size);
    text.clear();
    if (size > bytes_.size()) return fail();
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return *this;
  }
  /// The length of a list whose items have at least `least` bytes each.
  uint64_t count(size_t least) {
    uint64_t n = 0;
    get(n);
    if (n <= bytes_.size() / least) return n;
    fail();
    return 0;
  }
  void spoil() { fail(); }  ///< marks the values as invalid
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

 private:
  Unpacker& fail() {
    ok_ = false;
    bytes_ = {};
    return *this;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

void pack(Packer& to, const Error& error);
void unpack(Unpacker& from, Error& error);
void pack(Packer& to, const Launch& launch);  ///< without `axes`, which GPU executors do not use
void unpack(Unpacker& from, Launch& launch);
void pack(Packer& to, const Binary& binary);  ///< the members needed for loading: arch, entry, PTX, CUBIN
void unpack(Unpacker& from, Binary& binary);
void pack(Packer& to, const ExecutorInfo& info);
void unpack(Unpacker& from, ExecutorInfo& info);
void pack(Packer& to, const GpuIdentity& identity);
void unpack(Unpacker& from, GpuIdentity& identity);
void pack(Packer& to, const GpuState& state);
void unpack(Unpacker& from, GpuState& state);
void pack(Packer& to, const Sample& sample);
void unpack(Unpacker& from, Sample& sample);
void pack(Packer& to, std::span<const Shot> shots);  ///< equal steps are sent once
void unpack(Unpacker& from, std::vector<Shot>& shots);

}  // namespace roofgen::wire

// Device memory as a profiled launch sees it: addresses for the buffers, and their initial contents.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "check/arguments.h"
#include "check/kernel.h"

namespace roofgen::profile {

class Memory {
 public:
  /// Gives every buffer an address, 256-byte aligned as by cudaMalloc. The arguments must outlive it.
  explicit Memory(const std::vector<check::Argument>& arguments);
  /// The kernel's parameters, as they lie in constant memory.
  std::vector<std::byte> params() const;
  /// The address of a module variable: of its symbol argument, or a new one. `bytes`: its size.
  uint64_t variable(const std::string& mangled, uint64_t bytes, const std::string& initial);
  /// Initial contents; false where they are not known.
  bool read(uint64_t address, std::span<std::byte> out) const;
  double bytes() const;  ///< of all buffers

 private:
  struct Range {
    uint64_t bytes = 0;
    const check::Argument* argument = nullptr;
    std::string initial;  ///< of a variable
    bool zeros = false;
  };
  uint64_t place(Range range);
  std::vector<std::byte> pass(const check::Argument& a) const;

  const std::vector<check::Argument>& arguments_;
  std::map<uint64_t, Range> ranges_;
  std::map<const check::Argument*, uint64_t> addresses_;
  std::map<std::string, uint64_t> variables_;
  uint64_t next_ = uint64_t{0x7} << 40;
};

}  // namespace roofgen::profile

// The micro-kernels of the measured ceilings: one table of them, their kernels with the exact work, their inputs, and
// the checks of their outputs. docs/evidence/ceilings.md explains each. Tests run all of this in the simulator.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "generator/generate.h"
#include "roofline/device.h"
#include "runtime/executor.h"

namespace roofgen {

/// Reads bytes of the buffer `out` from this offset on.
using OutputReader = std::function<Result<void>(uint64_t offset, std::span<std::byte> to)>;
struct MicroKernel;

/// The limit of a rate.
struct RateLimit {
  double value = 0;  ///< in the ceiling's unit
  std::string cell;
  Origin origin = Origin::kDatasheet;
};

/// One ceiling. Its points are those of the variant `name` of search_spaces/ceilings. Their work formula "amount" is
/// the exact work of one launch: bytes, FLOPs or exponentials.
struct CeilingSpec {
  const char* name;
  const char* what;   ///< title: "DRAM read"
  const char* unit;   ///< "GB/s", or of one SM and clock "FLOP/clk/SM", "bytes/clk/SM", "lanes/clk/SM"; "us"
  const char* cell;   ///< of the profile; "": none of its own
  const char* limit;  ///< cell of the device that bounds it; "mma <kind>": the fastest tensor instruction's
  double factor;      ///< limit in the ceiling's unit over that cell
  enum class Buffers { kNone, kStream, kPattern, kOperands } buffers;
  /// One line about an error in the output; empty: correct. nullptr: the kernel has no output.
  Result<std::string> (*check)(const MicroKernel&, const OutputReader&);

  bool per_clock() const { return std::string(unit).ends_with("/clk/SM"); }
};
const std::vector<CeilingSpec>& ceiling_specs();
/// nullopt when the device has no such cell.
std::optional<RateLimit> rate_limit(const CeilingSpec& spec, const Device& device);

/// Sizes of arrays and durations of launches.
struct CeilingSizes {
  int64_t dram_words = int64_t{1} << 29;  ///< 32-bit words of all arrays together
  int64_t l2_words = int64_t{1} << 21;
  int64_t clocks = 600000;  ///< SM clocks that a launch of the other kernels takes, roughly
};
/// Arrays in DRAM: 32 times the L2 (up to one L2 of writes has not reached DRAM at the end of a launch), but at most an
/// eighth of the memory. Arrays in L2: a quarter of it, because an L2 of two partitions may hold every line twice.
CeilingSizes ceiling_sizes(const Device& device);
expr::Map ceiling_scope(const expr::Map& device_limits, const CeilingSizes& sizes);

struct MicroKernel {
  const CeilingSpec* spec = nullptr;
  Legal legal;
  Program program;
  Launch launch;
  double amount = 0;  ///< of one launch

  int64_t integer(const std::string& name) const;  ///< of the scope; asserts that it is one
  std::string text(const std::string& name) const;
};
/// One point of a ceiling's space, or its rejection.
std::variant<MicroKernel, Rejected, Error> make_micro_kernel(const DataFiles& files, const CeilingSpec& spec,
                                                             const Variant& variant, const Schedule& schedule,
                                                             const expr::Map& scope);

/// A buffer and its initial contents; nullptr: the kernel writes it.
struct MicroBuffer {
  std::string name;
  uint64_t bytes = 0;
  Fill fill;
};
/// All points of a ceiling share its buffers. Floats are random, finite and not zero; those of matrix kernels are near
/// N(0, 1), because zeros and regular data draw less power and run at a higher clock.
Result<std::vector<MicroBuffer>> micro_buffers(const CeilingSpec& spec, const Variant& variant, const expr::Map& scope);
/// The seed with which the write kernel fills a stream's buffer as `MicroBuffer::fill` does.
uint32_t stream_seed(const std::string& buffer);

}  // namespace roofgen

// The micro-kernels behind the measured ceilings: what there is (one table), how one becomes a kernel
// with its exact work, what it works on, and whether what it wrote is right. docs/ceilings.md explains
// each of them. Nothing here needs a GPU; tests run all of it in the simulator.
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

/// What a rate may not exceed.
struct RateLimit {
  double value = 0;  ///< in the ceiling's unit
  std::string cell;
  Origin origin = Origin::kDatasheet;
};

/// One ceiling. Its points are those of search_spaces/ceilings/<name>.json, whose work formula "amount"
/// is exactly what one launch does: bytes, FLOPs or exponentials.
struct CeilingSpec {
  const char* name;
  const char* what;   ///< for people: "DRAM read"
  const char* unit;   ///< "GB/s", or of one SM and clock "FLOP/clk/SM", "bytes/clk/SM", "lanes/clk/SM"; "us"
  const char* cell;   ///< of the profile; "": none of its own
  const char* limit;  ///< cell of the device that bounds it; "mma <kind>": the fastest tensor instruction's
  double factor;      ///< limit in the ceiling's unit over that cell
  enum class Buffers { kNone, kStream, kPattern, kOperands } buffers;
  /// One line on what is wrong with the output, empty when it is right. nullptr: nothing is written.
  Result<std::string> (*check)(const MicroKernel&, const OutputReader&);

  bool per_clock() const { return std::string(unit).ends_with("/clk/SM"); }
};
const std::vector<CeilingSpec>& ceiling_specs();
/// nullopt when the device does not say.
std::optional<RateLimit> rate_limit(const CeilingSpec& spec, const Device& device);

/// How large and how long.
struct CeilingSizes {
  int64_t dram_words = int64_t{1} << 29;  ///< 32-bit words of all arrays together
  int64_t l2_words = int64_t{1} << 21;
  int64_t clocks = 600000;  ///< SM clocks that a launch of the other kernels takes, roughly
};
/// Arrays in DRAM of 32 times the L2 (a launch leaves at most an L2's worth of writes undone), but no more
/// than an eighth of the memory; in L2 a quarter of it, because a GPU of two partitions may hold all twice.
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
/// One point of a ceiling's space, or why it is none here.
std::variant<MicroKernel, Rejected, Error> make_micro_kernel(const DataFiles& files, const CeilingSpec& spec,
                                                             const Variant& variant, const Schedule& schedule,
                                                             const expr::Map& scope);

/// A buffer and its first contents; nullptr: it is written by the kernel.
struct MicroBuffer {
  std::string name;
  uint64_t bytes = 0;
  Fill fill;
};
/// Of a ceiling: all its points share them. Floats are random, finite and not zero; those of matrix kernels
/// are near N(0, 1), because zeros and regular data draw less power and run at a higher clock.
Result<std::vector<MicroBuffer>> micro_buffers(const CeilingSpec& spec, const Variant& variant, const expr::Map& scope);
/// The seed with which the write kernel fills a stream's buffer as `MicroBuffer::fill` does.
uint32_t stream_seed(const std::string& buffer);

}  // namespace roofgen

// A kernel's arguments as JSON, in parameter order (docs/use/check.md):
//   [{"type": "f32", "size": 1000, "fill": "iota"}, {"type": "i32", "value": 1000},
//    {"type": "struct", "fields": [{"type": "f32x4", "value": [1, 2, 3, 4]}, {"type": "f32", "size": 10}]}]
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "check/element.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "runtime/sim/image.h"

namespace roofgen::check {

/// Contents of a buffer, before the launch or as expected after it.
struct Nothing {};  ///< uninitialised: reading it is a finding
struct Constant {
  uint64_t bits;
};
struct Iota {};  ///< 0, 1, 2, ..., wrapping around in integers
struct Random {
  uint64_t seed;
  /// Floats: uniform over [least, most); integers: from least to most, in the bits of the type.
  double least = -1, most = 1;
  uint64_t first = 0, span = 0;  ///< of integers: `span` + 1 values from `first`; span ~0: all
};
struct Values {
  std::vector<uint64_t> bits;
};
struct Raw {
  std::string file;
  std::vector<std::byte> bytes;
};
using Contents = std::variant<Nothing, Constant, Iota, Random, Values, Raw>;

struct Expectation {
  Contents contents;
  double absolute = 0, relative = 0;                   ///< |got - expected| <= absolute + relative * |expected|
  std::vector<std::pair<uint64_t, uint64_t>> ignored;  ///< elements [first, second) that are not compared; sorted
};

/// Within the tolerances; NaN is NaN.
bool agrees(double got, double expected, const Expectation& expectation);

struct Argument {
  std::string name;    ///< in messages: "x", or "argument 2"
  Where where;         ///< in the argument file; not set for a field
  std::string symbol;  ///< name of a module variable, which is set like a buffer; empty for a parameter
  Element type = Element::kF32;
  std::string type_name;         ///< in the file: "f32", "f32x4", "struct", "bytes", "null"
  std::optional<uint64_t> size;  ///< elements; absent: passed by value
  bool null = false;             ///< a null pointer
  std::string buffer;            ///< name of an earlier argument, into whose buffer this one points; or empty
  uint64_t begin = 0;            ///< byte of that buffer
  /// The kernel takes a tensor map of the buffer (CUtensorMap, by value) instead of its address.
  std::shared_ptr<const TensorMap> map;
  /// The kernel takes a texture or surface object of the buffer, whose address is set when the buffer has one.
  std::shared_ptr<const sim::Image> image;
  std::vector<std::byte> value;  ///< bytes passed by value; zeros at the pointers of a struct
  uint64_t align = 8;            ///< of the value or the pointer
  std::vector<Argument> fields;  ///< of a struct
  uint64_t offset = 0;           ///< of a field in its struct
  Contents fill;
  bool read_only = false;  ///< a store to it is a finding
  std::optional<Expectation> expect;
  std::string dump;  ///< file for its bytes after the launch; may be empty
  uint64_t bytes() const { return size ? *size * bytes_of(type) : 0; }
  bool is_pointer() const { return size || null || !buffer.empty(); }
  uint64_t passed_bytes() const { return map ? kMapBytes : is_pointer() ? 8 : value.size(); }

  static constexpr uint64_t kMapBytes = 128, kMapAlign = 64;  ///< of CUtensorMap (cuda.h)
};

/// All buffers and symbols of the arguments, including those in structs, in order.
std::vector<const Argument*> buffers_of(const std::vector<Argument>& arguments);

inline constexpr size_t kMaxArguments = 256;
/// Largest parameter size of a kernel, since CUDA 12.1 (CUDA C++ Programming Guide, __global__ function parameters).
inline constexpr uint64_t kMaxPassedBytes = 32764;
/// Limit for all buffers together, to bound the simulator's memory.
inline constexpr uint64_t kMaxBytes = uint64_t{4} << 30;

/// Relative file names are resolved against `directory`. Errors have Exit::kUsage and the place in `file`.
Result<std::vector<Argument>> parse_arguments(std::string text, const std::string& file, const std::string& directory);

/// Bytes [offset, offset + out.size()) of the contents, which are not Nothing.
void fill(const Contents& contents, Element type, uint64_t offset, std::span<std::byte> out);

}  // namespace roofgen::check

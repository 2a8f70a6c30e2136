// Elements of tensors, for every DType: conversion between bytes and double, spacing, rounding, and the contents of
// input tensors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "generator/ops/op.h"
#include "roofgen/pipeline.h"

namespace roofgen {

inline bool is_integer(DType dtype) { return dtype == DType::kInt8 || dtype == DType::kInt32; }
/// Element `index` of an array of `dtype` as double; NaN and infinities are kept. kTf32 is read as it is stored, fp32.
double load_element(const std::byte* base, size_t index, DType dtype);
/// Whether all bytes of each element of `size` bytes are written.
std::vector<bool> written_elements(const std::vector<bool>& bytes, size_t size);
/// The first element that is not zero, of a buffer that a launch must leave zero, in words; empty: all are.
std::string what_is_not_zero(const Buffer& buffer, std::span<const std::byte> bytes);
/// Rounds to nearest even and stores; int8 and int32 saturate, fp8 saturates to 448 (NaN stays NaN).
void store_element(std::byte* base, size_t index, DType dtype, double value);
/// The result of store_element followed by load_element.
double round_to_dtype(double value, DType dtype);
/// The operand of the tensor core for a stored value: tf32 loses its lower 13 bits (truncated, as by mma.sync).
double as_operand(double value, DType dtype);
/// Distance between the neighbours of a value (one ulp; 1 for integers).
double spacing_of(double value, DType dtype);
/// Standard deviation of the error of rounding `value` to dtype.
double rounding_sigma(double value, DType dtype);

/// The key of the letters of a tensor (TensorContents).
uint64_t stream_key(const std::string& name);

/// The contents of an input tensor: a pure function of (pattern, name, element).
/// kNormal: N(0,1) (int8: rounded N(0, 32), int32 likewise); kIntegers: -2 .. 2; kSpecial: kNormal with a NaN or an
/// infinity about once in 4096 elements (none for integers). kExtremes: of eight elements one is NaN, huge or tiny.
struct TensorContents {
  InputPattern pattern = InputPattern::kNormal;
  std::string name;
  DType dtype = DType::kBf16;

  void fill(uint64_t byte_offset, std::span<std::byte> out) const;
  void values(uint64_t first, std::span<double> out) const;  ///< as load_element reads them
  /// kExtremeRows: a residual would change the contents of the rows that it is added to.
  bool is_zero() const;
  /// kExtremeRows: a few elements are NaN, ever further apart, so that few rows of a residual have one.
  bool has_rare_nans() const { return pattern == InputPattern::kExtremeRows && !is_integer(dtype); }
};

/// Writes `out.size()` bytes from `byte_offset` on of a tensor with the elements `values(first, numbers)`.
template <class Values>
void fill_values(DType dtype, const Values& values, uint64_t byte_offset, std::span<std::byte> out) {
  const auto size = static_cast<uint64_t>(size_of(dtype));
  const uint64_t skip = byte_offset % size, count = (skip + out.size() + size - 1) / size;
  std::vector<double> numbers(count);
  values(byte_offset / size, std::span<double>(numbers));
  std::vector<std::byte> bytes(count * size);
  for (size_t i = 0; i < count; ++i) store_element(bytes.data(), i, dtype, numbers[i]);
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(skip), out.size(), out.begin());
}

/// Collects the worst element of one buffer of a comparison.
class Judge {
 public:
  /// `within` comes before the indices in messages ("batch 0, head 1, "); `rows` and `cols`: what indices are called.
  Judge(std::string buffer, const ElementReader& read, std::string within = "", const char* rows = "row",
        const char* cols = "column")
      : buffer_(std::move(buffer)), within_(std::move(within)), rows_(rows), cols_(cols), read_(read) {}
  void unwritten(int64_t row, int64_t col);
  /// Whether `element` would change nothing, given that its tolerance is at least `least`.
  bool passes(double got, double expected, double least) const { return std::fabs(got - expected) <= worst_ * least; }
  /// `tolerance` 0: must be equal. An expected NaN must be NaN, an expected infinity must have the same sign. `col` -1:
  /// the buffer has one element for each row.
  void element(int64_t row, int64_t col, double got, double expected, double tolerance);
  void add_to(Comparison& out) const;

 private:
  std::string place(int64_t row, int64_t col) const;
  std::string buffer_, within_;
  const char *rows_, *cols_;
  const ElementReader& read_;
  uint64_t missing_ = 0;
  double worst_ = 0;
  std::string first_missing_, message_;
};

/// Allowed error in standard deviations, chosen for the number of elements checked in a run.
inline constexpr double kSigmas = 6;

}  // namespace roofgen

// Judges the elements of one buffer, and reads them. Private to this folder.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "generator/ops/op.h"

namespace roofgen::attention {

/// Collects the worst element of one buffer.
class Judge {
 public:
  /// `rows`, `cols`: what the elements' indices are called.
  Judge(std::string buffer, const Region& band, const char* rows, const char* cols)
      : buffer_(std::move(buffer)), rows_(rows), cols_(cols), band_(band) {}
  Judge(std::string buffer, const Region& band) : Judge(buffer, band, "row", buffer == "O" ? "column" : "key") {}

  void unwritten(int64_t row, int64_t col) {
    if (missing_++ == 0) first_missing_ = place(row, col);
  }
  /// Whether `element` would change nothing, given that its tolerance is at least `least`.
  bool passes(double got, double expected, double least) const { return std::fabs(got - expected) <= worst_ * least; }
  void element(int64_t row, int64_t col, double got, double expected, double tolerance) {
    if (got == expected || (std::isnan(got) && std::isnan(expected))) return;  // also an expected -inf
    double error = std::fabs(got - expected) / tolerance;
    if (!(error < kHopeless)) error = kHopeless;
    if (error <= worst_) return;
    worst_ = error;
    if (error > 1)
      message_ = fmt::format("{} is {:.9g}, {:.9g} was expected within {:.3g} ({:.3g} times the tolerance)",
                             place(row, col), got, expected, tolerance, error);
  }
  void add_to(Comparison& out) const {
    out.worst = std::max(out.worst, missing_ > 0 ? kHopeless : worst_);
    if (!out.failure.empty()) return;
    out.failure = missing_ > 0 ? fmt::format("{} and {} more elements were never written", first_missing_, missing_ - 1)
                               : message_;
  }

 private:
  std::string place(int64_t row, int64_t col) const {
    std::string out = fmt::format("{}[batch {}, head {}, {} {}", buffer_, band_.batch, band_.head, rows_, row);
    return col < 0 ? out + "]" : fmt::format("{}, {} {}]", out, cols_, col);
  }
  std::string buffer_, rows_, cols_;
  Region band_;
  uint64_t missing_ = 0;
  double worst_ = 0;
  std::string first_missing_, message_;
};

/// One row of a buffer, read into reused storage.
class RowReader {
 public:
  RowReader(const ElementReader& read, std::string buffer) : read_(read), buffer_(std::move(buffer)) {}
  Result<void> read(int64_t first, int64_t count) {
    values.resize(static_cast<size_t>(count));
    valid.assign(static_cast<size_t>(count), true);
    return read_(buffer_, static_cast<uint64_t>(first), values, &valid);
  }
  std::vector<double> values;
  std::vector<bool> valid;

 private:
  const ElementReader& read_;
  std::string buffer_;
};

}  // namespace roofgen::attention

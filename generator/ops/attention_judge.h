// Judges the elements of one buffer of attention, and reads them. Private to this folder.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "generator/ops/elements.h"

namespace roofgen::attention {

/// The judge of a buffer in one (batch, head) pair.
inline Judge judge_in(const Region& band, const std::string& buffer, const ElementReader& read, const char* rows,
                      const char* cols) {
  return Judge(buffer, read, fmt::format("batch {}, head {}, ", band.batch, band.head), rows, cols);
}
inline Judge judge_in(const Region& band, const std::string& buffer, const ElementReader& read) {
  return judge_in(band, buffer, read, "row", buffer == "O" ? "column" : "key");
}

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

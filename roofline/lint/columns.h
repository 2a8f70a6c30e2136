// What the columns of a roofline table mean, and numbers with units in their cells. docs/lint.md lists the
// names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "roofgen/result.h"

namespace roofgen {

/// What kind of number a column holds; the unit a Claim has it in.
enum class Quantity {
  kText,
  kCount,      ///< whole or fractional, without unit
  kFlops,      ///< FLOP
  kBytes,      ///< bytes
  kIntensity,  ///< FLOP/byte
  kRate,       ///< TFLOP/s
  kBandwidth,  ///< GB/s
  kTime,       ///< us
  kYesNo,
};
const char* expected(Quantity quantity);  ///< "TFLOPS, GFLOPS or PFLOPS", for messages

struct Unit {
  const char* name;   ///< lower case: "gflops"
  const char* shown;  ///< "GFLOPS"
  Quantity quantity;
  double scale;  ///< into the unit of the quantity
};

struct Column {
  std::string key;     ///< "ai", "attainable", ...; "" when the column is none of ours
  std::string detail;  ///< dim: its name as written; dtype: the operand's role; peak: the format of "peak_fp16"
  Quantity quantity = Quantity::kText;
  const Unit* unit = nullptr;  ///< of the header, or the default
};

/// What a header cell means. Names are case-insensitive; spaces, hyphens and underscores are alike; a unit
/// may follow in parentheses, brackets or after the last underscore. `dims` and `flags`: of all operators.
Result<Column> read_column(const TableCell& header, const std::string& file, const std::vector<std::string>& dims,
                           const std::vector<std::string>& flags);
std::vector<std::string> column_names();  ///< for "did you mean"

/// A cell's number in the unit of its quantity.
struct StatedNumber {
  double value = 0;
  const Unit* unit = nullptr;  ///< the cell's own, else the column's
  bool restated = false;       ///< the cell's unit is not the column's
};

/// Whether a cell says that there is nothing to say: empty, "-", "n/a", "varies".
bool not_stated(const std::string& text);

/// The number in a cell: "~" before it, a unit of the column's kind after it. None when not stated.
/// Exit::kUsage for what is no number, NaN, infinite, negative, with thousands separators, or of another
/// kind.
Result<std::optional<StatedNumber>> read_number(const TableCell& cell, const std::string& file, const Column& column);

}  // namespace roofgen

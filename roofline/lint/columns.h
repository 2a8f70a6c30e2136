// The columns of a roofline table, and numbers with units in its cells. docs/use/lint.md lists the column names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/csv.h"
#include "roofgen/result.h"

namespace roofgen {

/// The kind of number in a column. The comments name the unit that Claim stores.
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
  const char* shown;  ///< in messages: "GFLOPS"
  Quantity quantity;
  double scale;                    ///< into the unit of the quantity
  std::vector<const char*> names;  ///< lower case: "gflops"
};

struct Column {
  std::string key;     ///< "ai", "attainable", ...; "" for an unknown column
  std::string detail;  ///< dim: its name as written; dtype: the operand's role; peak: the format of "peak_fp16"
  Quantity quantity = Quantity::kText;
  const Unit* unit = nullptr;  ///< the header's, or the default
};

/// Interprets a header cell. Names are case-insensitive; spaces, hyphens and underscores are equivalent; a unit may
/// follow in parentheses, in brackets or after the last underscore. `dims` and `flags` are the names from all
/// operators.
Result<Column> read_column(const TableCell& header, const std::string& file, const std::vector<std::string>& dims,
                           const std::vector<std::string>& flags);
std::vector<std::string> column_names();  ///< for "did you mean"

/// A cell's number, converted to the unit of its quantity.
struct StatedNumber {
  double value = 0;
  const Unit* unit = nullptr;  ///< the cell's own, else the column's
  bool restated = false;       ///< the cell states another unit than its column
};

/// Whether a cell states nothing: empty, "-", "n/a", "varies".
bool not_stated(const std::string& text);

/// The number in a cell, with an optional leading "~" and an optional unit of the column's quantity. Empty when the
/// cell states nothing. Exit::kUsage for text that is not a number, NaN, infinite or negative numbers, thousands
/// separators, and units of another quantity.
Result<std::optional<StatedNumber>> read_number(const TableCell& cell, const std::string& file, const Column& column);

}  // namespace roofgen

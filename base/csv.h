// Parses tables from text: comma-, semicolon- or tab-separated (RFC 4180), or Markdown's `|` tables. Input is
// untrusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// A cell with the position of its text; line and col count from 1, col in characters.
struct TableCell {
  std::string text;  ///< trimmed; without quotes, and without surrounding Markdown backticks and asterisks
  int line = 0;
  int col = 0;
};

using TableRow = std::vector<TableCell>;

struct CellTable {
  TableRow header;
  std::vector<TableRow> rows;  ///< each as wide as the header
  std::vector<Error> errors;   ///< malformed rows: too few or too many cells, stray quotes. Exit::kUsage
};

struct TableLimits {
  size_t bytes = size_t{4} << 20;
  size_t rows = 10'000;  ///< of all tables together, without headers
  size_t columns = 1024;
  size_t cell_bytes = 4096;
};

/// The tables of a text: a single one in CSV, all of them in Markdown (a `|` row above a row of dashes). The separator
/// is the most frequent one in the header line. A UTF-8 byte order mark is skipped; lines end with CR LF or LF; quoted
/// cells may contain separators, line ends and doubled quotes. Exit::kUsage with line and column for a text without a
/// table, an unclosed quote, invalid UTF-8 or an exceeded limit.
Result<std::vector<CellTable>> read_tables(std::string_view text, const std::string& file,
                                           const TableLimits& limits = {});

/// An error at a cell's position in `file`. Exit::kUsage.
Error cell_error(const TableCell& cell, const std::string& file, std::string message);

/// Length of the UTF-8 character at the start of `s`, which is not empty; 0 for a zero or invalid UTF-8.
size_t utf8_length(std::string_view s);

/// Converts A to Z to lower case; other characters stay unchanged.
std::string lower(std::string text);

}  // namespace roofgen

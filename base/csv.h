// Tables as text: comma-, semicolon- or tab-separated (RFC 4180), or Markdown's `|` tables. Input is
// untrusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// One cell and where its text begins; line and col count from 1, col in characters.
struct TableCell {
  std::string text;  ///< trimmed, without the quotes; without Markdown's backticks and asterisks around it
  int line = 0;
  int col = 0;
};

using TableRow = std::vector<TableCell>;

struct CellTable {
  TableRow header;
  std::vector<TableRow> rows;  ///< each as wide as the header
  std::vector<Error> errors;   ///< rows that are no rows: too few or too many cells, stray quotes. Exit::kUsage
};

struct TableLimits {
  size_t bytes = size_t{4} << 20;
  size_t rows = 10'000;  ///< of all tables of the text together, headers aside
  size_t columns = 256;
  size_t cell_bytes = 4096;
};

/// The tables of a text: one where it is CSV, all of them where it is Markdown (a `|` row with a row of
/// dashes below). The separator is the one the header line has most of; a UTF-8 byte order mark is skipped;
/// CR LF and LF end lines; quoted cells may hold separators, line ends and doubled quotes. Exit::kUsage with
/// line and column when there is no table, a quote is never closed, the text is not UTF-8 or a limit is
/// passed.
Result<std::vector<CellTable>> read_tables(std::string_view text, const std::string& file,
                                           const TableLimits& limits = {});

/// What is wrong with a cell, at its place in `file`. Exit::kUsage.
Error cell_error(const TableCell& cell, const std::string& file, std::string message);

/// With A to Z as a to z; other characters as they are.
std::string lower(std::string text);

}  // namespace roofgen

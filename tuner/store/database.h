// A SQLite database with errors as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "roofgen/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace roofgen {

class Database;

/// A prepared statement. Parameters and columns count from 1 and 0, as in SQLite.
class Statement {
 public:
  Statement() = default;
  Statement(const Database& database, const char* sql);
  Statement(Statement&& other) noexcept : statement_(other.statement_) { other.statement_ = nullptr; }
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();
  explicit operator bool() const { return statement_ != nullptr; }

  /// SQLite need not copy: `text` must live until the next reset().
  void bind(int parameter, std::string_view text);
  void bind(int parameter, int64_t number);
  void bind(int parameter, const std::optional<double>& number);
  bool row();   ///< true: there is a row; false: the end, or an error of the database
  bool done();  ///< runs a statement that has no rows, and resets it; false after an error
  void reset();
  std::string text(int column) const;
  int64_t integer(int column) const;
  bool is_null(int column) const;
  bool is_number(int column) const;
  std::optional<double> number(int column) const;

 private:
  sqlite3_stmt* statement_ = nullptr;
  int status_ = 0;
};

class Database {
 public:
  enum class Mode { kCreate, kWrite, kRead };
  Database() = default;
  Database(Database&& other) noexcept : db_(other.db_), path_(std::move(other.path_)) { other.db_ = nullptr; }
  Database& operator=(Database&& other) noexcept;
  ~Database();
  /// kRead changes neither the file nor its log.
  Result<void> open(const std::string& path, Mode mode);
  Result<void> execute(const std::string& sql);
  Result<int64_t> integer(const char* sql);  ///< the one value of a query
  /// Write-ahead log: processes read while one writes, and a killed process loses no commit.
  Result<void> use_wal();

  bool is_damaged() const;  ///< by the last error: no database, or a malformed one
  bool is_ok() const;       ///< the last statement ended without an error
  std::string message() const;
  Error error() const;  ///< the last error, with the path
  const std::string& path() const { return path_; }
  int64_t changes() const;  ///< rows that the last statement changed
  sqlite3* handle() const { return db_; }

 private:
  sqlite3* db_ = nullptr;
  std::string path_;
};

/// A transaction that is rolled back unless commit() was called.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(other.database_) { other.database_ = nullptr; }
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace roofgen

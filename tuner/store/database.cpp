#include "tuner/store/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <thread>

namespace roofgen {
namespace {

constexpr int kBusyTimeoutMs = 5000;
// Switching to WAL ignores the busy timeout: processes that create the same file at once need a few tries.
constexpr int kWalTries = 100;
constexpr auto kWalPause = std::chrono::milliseconds(20);

}  // namespace

// ---- Statement ---------------------------------------------------------------------------------

Statement::Statement(const Database& database, const char* sql) {
  sqlite3_prepare_v2(database.handle(), sql, -1, &statement_, nullptr);
}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(statement_, other.statement_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::bind(int parameter, std::string_view text) {
  sqlite3_bind_text(statement_, parameter, text.data() ? text.data() : "", static_cast<int>(text.size()),
                    SQLITE_STATIC);
}

void Statement::bind(int parameter, int64_t number) { sqlite3_bind_int64(statement_, parameter, number); }

void Statement::bind(int parameter, const std::optional<double>& number) {
  if (number)
    sqlite3_bind_double(statement_, parameter, *number);
  else
    sqlite3_bind_null(statement_, parameter);
}

bool Statement::row() {
  status_ = sqlite3_step(statement_);
  return status_ == SQLITE_ROW;
}

bool Statement::done() {
  const bool done = sqlite3_step(statement_) == SQLITE_DONE;
  reset();
  return done;
}

void Statement::reset() { sqlite3_reset(statement_); }

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return {text ? text : "", static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

bool Statement::is_number(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

std::optional<double> Statement::number(int column) const {
  if (is_null(column)) return std::nullopt;
  return sqlite3_column_double(statement_, column);
}

// ---- Database ----------------------------------------------------------------------------------

Database& Database::operator=(Database&& other) noexcept {
  std::swap(db_, other.db_);
  std::swap(path_, other.path_);
  return *this;
}

Database::~Database() { sqlite3_close(db_); }

Result<void> Database::open(const std::string& path, Mode mode) {
  path_ = path;
  const int flags = mode == Mode::kRead    ? SQLITE_OPEN_READONLY
                    : mode == Mode::kWrite ? SQLITE_OPEN_READWRITE
                                           : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (sqlite3_open_v2(path.c_str(), &db_, flags | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK) return error();
  sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  return {};
}

Result<void> Database::execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return error();
  return {};
}

Result<int64_t> Database::integer(const char* sql) {
  Statement statement(*this, sql);
  if (!statement || !statement.row()) return error();
  return statement.integer(0);
}

Result<void> Database::use_wal() {
  for (int tries = 1;; ++tries) {
    Result<void> set = execute("PRAGMA journal_mode=WAL");
    const int code = sqlite3_errcode(db_) & 0xff;
    if (set || tries == kWalTries || (code != SQLITE_BUSY && code != SQLITE_LOCKED)) return set;
    std::this_thread::sleep_for(kWalPause);
  }
}

bool Database::is_damaged() const {
  const int code = sqlite3_errcode(db_) & 0xff;
  return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

bool Database::is_ok() const {
  const int code = sqlite3_errcode(db_);
  return code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE;
}

std::string Database::message() const { return db_ ? sqlite3_errmsg(db_) : "no memory"; }

Error Database::error() const {
  return {Exit::kFailed, fmt::format("the evaluation store {} cannot be used: {}", path_, message())};
}

int64_t Database::changes() const { return sqlite3_changes(db_); }

// ---- Transaction -------------------------------------------------------------------------------

Result<Transaction> Transaction::begin(Database& database) {
  ROOFGEN_CHECK(database.execute("BEGIN IMMEDIATE"));
  return Transaction(&database);
}

Transaction::~Transaction() {
  if (database_) (void)database_->execute("ROLLBACK");
}

Result<void> Transaction::commit() {
  ROOFGEN_CHECK(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace roofgen

#include "tuner/store/schema.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace roofgen::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCreateEvaluation =
    "CREATE TABLE evaluation ("
    "  binary TEXT NOT NULL, slice TEXT NOT NULL, simulator TEXT NOT NULL, device TEXT NOT NULL,"
    "  payload TEXT NOT NULL,"
    "  created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,"  // for inspection; never part of a result
    "  checksum INTEGER,"                                 // absent in rows of version 1
    "  PRIMARY KEY (binary, slice, simulator, device));";
constexpr const char* kCreateTrial =
    "CREATE TABLE trial ("
    "  source TEXT NOT NULL, op TEXT NOT NULL, problem TEXT NOT NULL, device TEXT NOT NULL, variant TEXT NOT NULL,"
    "  stage TEXT NOT NULL, params TEXT NOT NULL, binary TEXT NOT NULL, executor TEXT NOT NULL,"
    "  outcome TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL, origin TEXT NOT NULL, time_model TEXT NOT NULL,"
    "  floor_seconds REAL, compiler TEXT NOT NULL, release TEXT NOT NULL,"
    "  created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,"
    "  PRIMARY KEY ({}));";

Result<void> migrate(Database& database) {
  ROOFGEN_TRY(Transaction transaction, Transaction::begin(database));
  // Another process may have been faster.
  ROOFGEN_TRY(const int64_t version, database.integer("PRAGMA user_version"));
  if (version >= kSchemaVersion) return {};
  ROOFGEN_CHECK(
      database.execute(version == 0 ? kCreateEvaluation : "ALTER TABLE evaluation ADD COLUMN checksum INTEGER"));
  ROOFGEN_CHECK(database.execute(fmt::format(kCreateTrial, kTrialKey)));
  ROOFGEN_CHECK(database.execute(fmt::format("PRAGMA user_version={}", kSchemaVersion)));
  return transaction.commit();
}

// ---- Repair ------------------------------------------------------------------------------------

// Rows that one damaged page may hide; further after it the scan ends.
constexpr int64_t kMostUnreadable = 100'000;

/// Copies the rows that can be read, and in `evaluation` only those that are what was written.
int64_t copy_readable(const Database& from, const std::string& columns_there, const char* table,
                      const std::string& columns, Database& to) {
  const int count = static_cast<int>(std::count(columns.begin(), columns.end(), ',')) + 1;
  std::string places = "?1";
  for (int i = 2; i <= count; ++i) places += fmt::format(", ?{}", i);
  Statement insert(to, fmt::format("INSERT OR IGNORE INTO {} ({}) VALUES ({})", table, columns, places).c_str());
  int64_t copied = 0, next = 0, unreadable = 0;
  while (unreadable < kMostUnreadable) {
    Statement select(
        from, fmt::format("SELECT rowid, {} FROM {} WHERE rowid >= ?1 ORDER BY rowid", columns_there, table).c_str());
    if (!select) break;
    select.bind(1, next);
    while (select.row()) {
      next = select.integer(0) + 1;
      unreadable = 0;
      std::vector<std::string> texts;
      for (int i = 0; i < count; ++i) texts.push_back(select.text(i + 1));
      const bool evaluation = table == std::string_view("evaluation");
      if (evaluation && !select.is_null(6) && select.integer(6) != checksum(texts[4])) continue;
      for (int i = 0; i < count; ++i) {
        if (select.is_number(i + 1))
          insert.bind(i + 1, select.number(i + 1));
        else if (select.is_null(i + 1))
          insert.bind(i + 1, std::nullopt);
        else
          insert.bind(i + 1, texts[static_cast<size_t>(i)]);
      }
      copied += insert.done();
    }
    if (from.is_ok()) break;
    ++next;
    ++unreadable;
  }
  return copied;
}

std::string free_name(const std::string& path) {
  const fs::path at(path);
  for (int i = 1;; ++i) {
    const fs::path name =
        at.parent_path() / fmt::format("{}.damaged-{}{}", at.stem().string(), i, at.extension().string());
    if (!fs::exists(name)) return name;
  }
}

}  // namespace

int64_t checksum(std::string_view payload) {
  return static_cast<int64_t>(crc32_z(0, reinterpret_cast<const Bytef*>(payload.data()), payload.size()));
}

Result<void> connect(Database& database, const std::string& path, int* version) {
  ROOFGEN_CHECK(database.open(path, Database::Mode::kCreate));
  ROOFGEN_TRY(const int64_t found, database.integer("PRAGMA user_version"));
  *version = static_cast<int>(found);
  if (found > kSchemaVersion) return {};
  ROOFGEN_TRY(const int64_t tables, database.integer("SELECT count(*) FROM sqlite_master WHERE type = 'table'"));
  ROOFGEN_TRY(const int64_t own, database.integer("SELECT count(*) FROM sqlite_master WHERE name = 'evaluation'"));
  if (tables > 0 && own == 0) return Error{Exit::kUsage, "a database of another program, no store", {path}};
  *version = kSchemaVersion;
  ROOFGEN_CHECK(database.use_wal());
  // In WAL mode, NORMAL loses no commit when a process dies. After a power cut the last rows may be missing; they are
  // simulated again.
  ROOFGEN_CHECK(database.execute("PRAGMA synchronous=NORMAL"));
  if (found < kSchemaVersion) ROOFGEN_CHECK(migrate(database));
  return {};
}

DirectoryLock::DirectoryLock(const std::string& path, bool exclusive) {
  const std::string directory = fs::path(path).parent_path();
  directory_ = ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory_ >= 0) flock(directory_, exclusive ? LOCK_EX : LOCK_SH);
}

DirectoryLock::~DirectoryLock() {
  if (directory_ >= 0) close(directory_);
}

FileIdentity FileIdentity::of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

Result<Repair> repair(const std::string& path, const FileIdentity& damaged) {
  const DirectoryLock lock(path, true);
  if (FileIdentity::of(path) != damaged) return Repair{};
  Repair out;
  // Built aside: a process that dies here leaves the damaged file for the next one.
  const std::string built = fmt::format("{}.rebuilt-{}", path, getpid());
  std::error_code ignored;
  fs::remove(built, ignored);
  {
    Database from, to;
    int version = 0;
    ROOFGEN_CHECK(connect(to, built, &version));
    if (from.open(path, Database::Mode::kRead)) {
      ROOFGEN_TRY(Transaction transaction, Transaction::begin(to));
      const bool has_checksum{Statement(from, "SELECT checksum FROM evaluation")};
      out.rows.evaluations = copy_readable(from, has_checksum ? kEvaluationColumns : kEvaluationColumnsOf1,
                                           "evaluation", kEvaluationColumns, to);
      out.rows.trials = copy_readable(from, kTrialColumns, "trial", kTrialColumns, to);
      ROOFGEN_CHECK(transaction.commit());
    }
  }
  // The log and its index belong to the damaged file, and must not meet the new one. The name `path` always exists: a
  // process that opens it gets the one file or the other.
  out.kept = free_name(path);
  for (const char* part : {"-wal", "-shm"}) fs::rename(path + part, out.kept + part, ignored);
  std::error_code error;
  fs::create_hard_link(path, out.kept, error);
  if (error) fs::copy_file(path, out.kept, error);
  if (!error) fs::rename(built, path, error);
  if (error)
    return Error{Exit::kFailed, fmt::format("the damaged store cannot be replaced: {}", error.message()), {path}};
  return out;
}

}  // namespace roofgen::store

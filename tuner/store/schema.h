// The tables of the evaluation store, and what connects them with files.
#pragma once

#include <string>
#include <string_view>

#include "tuner/store/database.h"
#include "tuner/store/store.h"

namespace roofgen::store {

/// Kept as user_version. Version 1 had `evaluation` without `checksum`, and no `trial`.
inline constexpr int kSchemaVersion = 2;

/// The columns of `evaluation`, the same of version 1, those of `trial` that make rows equal, and all of them.
inline constexpr const char* kEvaluationColumns = "binary, slice, simulator, device, payload, checksum, created";
inline constexpr const char* kEvaluationColumnsOf1 = "binary, slice, simulator, device, payload, NULL, created";
inline constexpr const char* kTrialKey =
    "source, problem, device, variant, stage, params, binary, executor, origin, time_model";
inline constexpr const char* kTrialColumns =
    "source, problem, device, variant, stage, params, binary, executor, origin, time_model, op, outcome, reason, "
    "seconds, floor_seconds, compiler, release, created";

/// CRC-32 of a payload: SQLite does not notice a changed byte within a row.
int64_t checksum(std::string_view payload);

/// Opens the file; makes the tables, or brings them from an older version up to date. `*version`: of the file where it
/// is newer, else ours.
Result<void> connect(Database& database, const std::string& path, int* version);

/// Excludes repair() while a file is opened, and other repairs; ends with its lifetime.
class DirectoryLock {
 public:
  DirectoryLock(const std::string& path, bool exclusive);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;

 private:
  int directory_ = -1;
};

/// What stat() says of a file: another one after it was replaced.
struct FileIdentity {
  unsigned long long device = 0, inode = 0;
  static FileIdentity of(const std::string& path);
  bool operator==(const FileIdentity&) const = default;
};

struct Repair {
  std::string kept;  ///< the damaged file's new name; empty: another process has repaired it
  StoredRows rows;   ///< that could be read
};
/// Replaces the damaged file `path`, which no connection of this process may have open.
Result<Repair> repair(const std::string& path, const FileIdentity& damaged);

}  // namespace roofgen::store

#include "tuner/search/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>

namespace roofgen {
namespace {

namespace fs = std::filesystem;

// Stored as user_version. Increase it when the table changes; older files are then left alone.
constexpr int kSchemaVersion = 1;
constexpr int kBusyTimeoutMs = 5000;
// Switching to WAL ignores the busy timeout: processes that create the same file at once need a few tries.
constexpr int kWalTries = 100;
constexpr auto kWalPause = std::chrono::milliseconds(20);

constexpr const char* kCreate =
    "BEGIN IMMEDIATE;"
    "CREATE TABLE IF NOT EXISTS evaluation ("
    "  binary TEXT NOT NULL, slice TEXT NOT NULL, simulator TEXT NOT NULL, device TEXT NOT NULL,"
    "  payload TEXT NOT NULL,"
    "  created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,"  // for inspection; never part of a result
    "  PRIMARY KEY (binary, slice, simulator, device));";
constexpr const char* kLookup =
    "SELECT payload FROM evaluation WHERE binary = ?1 AND slice = ?2 AND simulator = ?3 AND device = ?4";
constexpr const char* kPut =
    "INSERT OR REPLACE INTO evaluation (binary, slice, simulator, device, payload) VALUES (?1, ?2, ?3, ?4, "
    "?5)";

std::string sibling(const std::string& path) {
  fs::path at(path);
  return at.parent_path() / fmt::format("{}.v{}{}", at.stem().string(), kSchemaVersion, at.extension().string());
}

void bind(sqlite3_stmt* statement, int index, const std::string& text) {
  // SQLite need not copy: the statement is reset before `text` ends.
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

void bind(sqlite3_stmt* statement, const StoreKey& key) {
  bind(statement, 1, key.binary);
  bind(statement, 2, key.slice);
  bind(statement, 3, key.simulator);
  bind(statement, 4, key.device);
}

}  // namespace

class Store::Database {
 public:
  explicit Database(std::string path, std::function<void(const std::string&)> warn)
      : path_(std::move(path)), warn_(std::move(warn)) {}
  ~Database() {
    sqlite3_finalize(lookup_);
    sqlite3_finalize(put_);
    sqlite3_close(db_);
  }
  Database(const Database&) = delete;

  /// Opens the file and makes the table. `*version`: of the file if its schema differs, else ours.
  Result<void> open(int* version) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(path_.c_str(), &db_, flags, nullptr) != SQLITE_OK) return unusable();
    sqlite3_busy_timeout(db_, kBusyTimeoutMs);
    ROOFGEN_TRY(*version, user_version());
    if (*version != 0 && *version != kSchemaVersion) return {};
    *version = kSchemaVersion;
    ROOFGEN_CHECK(use_wal());
    // In WAL mode, NORMAL loses no commit when a process dies. After a power cut the last rows may be missing; they are
    // simulated again.
    ROOFGEN_CHECK(execute("PRAGMA synchronous=NORMAL"));
    ROOFGEN_CHECK(execute(kCreate));
    ROOFGEN_CHECK(execute(fmt::format("PRAGMA user_version={}; COMMIT", kSchemaVersion).c_str()));
    if (sqlite3_prepare_v2(db_, kLookup, -1, &lookup_, nullptr) != SQLITE_OK) return unusable();
    if (sqlite3_prepare_v2(db_, kPut, -1, &put_, nullptr) != SQLITE_OK) return unusable();
    return {};
  }

  std::optional<std::string> lookup(const StoreKey& key) {
    std::lock_guard lock(mutex_);
    if (!readable_) return std::nullopt;
    bind(lookup_, key);
    std::optional<std::string> payload;
    int status = sqlite3_step(lookup_);
    if (status == SQLITE_ROW) {
      auto text = reinterpret_cast<const char*>(sqlite3_column_text(lookup_, 0));
      payload.emplace(text ? text : "", static_cast<size_t>(sqlite3_column_bytes(lookup_, 0)));
    } else if (status != SQLITE_DONE) {
      readable_ = false;
      give_up("read");
    }
    sqlite3_reset(lookup_);
    return payload;
  }

  void put(const StoreKey& key, const std::string& payload) {
    std::lock_guard lock(mutex_);
    if (!writable_) return;
    bind(put_, key);
    bind(put_, 5, payload);
    if (sqlite3_step(put_) != SQLITE_DONE) give_up("written");
    sqlite3_reset(put_);
  }

 private:
  Error unusable() const {
    return {Exit::kFailed,
            fmt::format("the evaluation store {} cannot be used: {}", path_, db_ ? sqlite3_errmsg(db_) : "no memory")};
  }

  void give_up(const char* what) {
    bool first = writable_;
    writable_ = false;
    if (first && warn_)
      warn_(fmt::format("the evaluation store {} cannot be {} any more ({}); going on without", path_, what,
                        sqlite3_errmsg(db_)));
  }

  Result<void> execute(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return unusable();
    return {};
  }

  Result<int> user_version() {
    sqlite3_stmt* statement = nullptr;
    int version = 0;
    int status = sqlite3_prepare_v2(db_, "PRAGMA user_version", -1, &statement, nullptr);
    if (status == SQLITE_OK) {
      status = sqlite3_step(statement);
      version = sqlite3_column_int(statement, 0);
    }
    sqlite3_finalize(statement);
    if (status != SQLITE_ROW) return unusable();
    return version;
  }

  Result<void> use_wal() {
    for (int tries = 1;; ++tries) {
      Result<void> set = execute("PRAGMA journal_mode=WAL");
      int code = sqlite3_errcode(db_) & 0xff;
      if (set || tries == kWalTries || (code != SQLITE_BUSY && code != SQLITE_LOCKED)) return set;
      std::this_thread::sleep_for(kWalPause);
    }
  }

  std::string path_;
  std::function<void(const std::string&)> warn_;
  std::mutex mutex_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* lookup_ = nullptr;
  sqlite3_stmt* put_ = nullptr;
  bool readable_ = true, writable_ = true;
};

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const std::string& path, std::function<void(const std::string&)> warn) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  int version = 0;
  auto database = std::make_unique<Database>(path, warn);
  ROOFGEN_CHECK(database->open(&version));
  if (version != kSchemaVersion) {
    database = std::make_unique<Database>(sibling(path), std::move(warn));
    ROOFGEN_CHECK(database->open(&version));
    if (version != kSchemaVersion)
      return Error{Exit::kFailed, fmt::format("the evaluation store {} is of an unknown version", sibling(path))};
  }
  return Store(std::move(database));
}

std::optional<std::string> Store::lookup(const StoreKey& key) { return database_->lookup(key); }
void Store::put(const StoreKey& key, const std::string& payload) { database_->put(key, payload); }

}  // namespace roofgen

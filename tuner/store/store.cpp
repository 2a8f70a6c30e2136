#include "tuner/store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>

#include "tuner/store/schema.h"

namespace roofgen {
namespace {

namespace fs = std::filesystem;
using store::kSchemaVersion;

constexpr const char* kLookup =
    "SELECT payload, checksum FROM evaluation WHERE binary = ?1 AND slice = ?2 AND simulator = ?3 AND device = ?4";
constexpr const char* kPut =
    "INSERT OR REPLACE INTO evaluation (binary, slice, simulator, device, payload, checksum) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
constexpr const char* kNote =
    "INSERT INTO trial (source, problem, device, variant, stage, params, binary, executor, origin, time_model, op, "
    "outcome, reason, seconds, floor_seconds, compiler, release) "
    "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) "
    "ON CONFLICT (source, problem, device, variant, stage, params, binary, executor, origin, time_model) DO UPDATE SET "
    "outcome = excluded.outcome, reason = excluded.reason, seconds = excluded.seconds, "
    "floor_seconds = excluded.floor_seconds";
/// Measured times first, then those of the better model.
constexpr const char* kBestFirst =
    "seconds IS NULL, origin = 'model', "
    "CASE time_model WHEN 'event model' THEN 0 WHEN 'interval model' THEN 1 ELSE 2 END, seconds, rowid";

std::string sibling(const std::string& path) {
  const fs::path at(path);
  return at.parent_path() / fmt::format("{}.v{}{}", at.stem().string(), kSchemaVersion, at.extension().string());
}

void bind(Statement& statement, const StoreKey& key) {
  statement.bind(1, key.binary);
  statement.bind(2, key.slice);
  statement.bind(3, key.simulator);
  statement.bind(4, key.device);
}

void bind(Statement& s, const StoredTrial& t) {
  int i = 0;
  for (const std::string* text : {&t.source, &t.problem, &t.device, &t.variant, &t.stage, &t.params, &t.binary,
                                  &t.executor, &t.origin, &t.time_model, &t.op, &t.outcome, &t.reason})
    s.bind(++i, *text);
  s.bind(++i, t.seconds);
  s.bind(++i, t.floor_seconds);
  s.bind(++i, t.compiler);
  s.bind(++i, std::string_view(ROOFGEN_VERSION));
}

/// A row of kTrialColumns.
StoredTrial trial_in(const Statement& s) {
  StoredTrial t;
  int i = 0;
  for (std::string* text : {&t.source, &t.problem, &t.device, &t.variant, &t.stage, &t.params, &t.binary, &t.executor,
                            &t.origin, &t.time_model, &t.op, &t.outcome, &t.reason})
    *text = s.text(i++);
  t.seconds = s.number(i++);
  t.floor_seconds = s.number(i++);
  t.compiler = s.text(i++);
  t.release = s.text(i++);
  t.created = s.text(i++);
  return t;
}

}  // namespace

class Store::Rows {
 public:
  Rows(std::string path, std::function<void(const std::string&)> warn, Damage damage)
      : path_(std::move(path)), warn_(std::move(warn)), damage_(damage), claims_(path_ + "-claims") {}

  std::unique_ptr<EvaluationClaim> claim(const StoreKey& key) {
    return claims_.claim({key.binary, key.slice, key.simulator, key.device});
  }

  /// `*version`: of the file where it is newer, else ours.
  Result<void> open(int* version) {
    Result<void> opened = connect(version);
    if (opened || !may_repair()) return opened;
    ROOFGEN_CHECK(repair());
    return connect(version);
  }

  std::optional<std::string> lookup(const StoreKey& key) {
    const std::lock_guard lock(mutex_);
    if (!readable_) return std::nullopt;
    std::optional<std::string> payload;
    const bool read = attempt([&] {
      bind(lookup_, key);
      payload.reset();
      if (lookup_.row()) payload = lookup_.text(0);
      const bool damaged = payload && !lookup_.is_null(1) && lookup_.integer(1) != store::checksum(*payload);
      const bool ok = database_.is_ok();
      if (damaged) payload.reset();
      if (!ok) return Step::kFailed;
      lookup_.reset();
      return damaged ? Step::kDamaged : Step::kDone;
    });
    if (read) return payload;
    readable_ = false;
    give_up("read");
    return std::nullopt;
  }

  void put(const StoreKey& key, const std::string& payload) {
    write([&] {
      bind(put_, key);
      put_.bind(5, payload);
      put_.bind(6, store::checksum(payload));
      return put_.done() ? Step::kDone : Step::kFailed;
    });
  }

  void note(const StoredTrial& trial) {
    write([&] {
      bind(note_, trial);
      return note_.done() ? Step::kDone : Step::kFailed;
    });
  }

  Result<std::vector<StoredTrial>> trials(const TrialFilter& filter) {
    const std::lock_guard lock(mutex_);
    const std::array<std::pair<const char*, const std::string*>, 7> exact = {{{"source", &filter.source},
                                                                              {"op", &filter.op},
                                                                              {"device", &filter.device},
                                                                              {"variant", &filter.variant},
                                                                              {"stage", &filter.stage},
                                                                              {"origin", &filter.origin},
                                                                              {"outcome", &filter.outcome}}};
    std::string where = "instr(op || ' ' || problem, ?1) > 0";
    for (size_t i = 0; i < exact.size(); ++i)
      if (!exact[i].second->empty()) where += fmt::format(" AND {} = ?{}", exact[i].first, i + 2);
    Statement select(database_, fmt::format("SELECT {} FROM trial WHERE {} ORDER BY source = '{}' DESC, source, op, "
                                            "problem, device, variant, stage, {}",
                                            store::kTrialColumns, where, StoredTrial::kOwn, kBestFirst)
                                    .c_str());
    if (!select) return database_.error();
    select.bind(1, filter.problem);
    for (size_t i = 0; i < exact.size(); ++i)
      if (!exact[i].second->empty()) select.bind(static_cast<int>(i) + 2, *exact[i].second);
    std::vector<StoredTrial> out;
    while (select.row()) out.push_back(trial_in(select));
    if (!database_.is_ok()) return database_.error();
    return out;
  }

  Result<StoredRows> count() {
    const std::lock_guard lock(mutex_);
    StoredRows out;
    ROOFGEN_TRY(out.evaluations, database_.integer("SELECT count(*) FROM evaluation"));
    ROOFGEN_TRY(out.trials, database_.integer("SELECT count(*) FROM trial"));
    return out;
  }

  Result<int64_t> add(const std::vector<StoredTrial>& trials) {
    const std::lock_guard lock(mutex_);
    ROOFGEN_TRY(Transaction transaction, Transaction::begin(database_));
    ROOFGEN_TRY(const int64_t before, database_.integer("SELECT count(*) FROM trial"));
    for (const StoredTrial& t : trials) {
      bind(note_, t);
      if (!note_.done()) return database_.error();
    }
    ROOFGEN_TRY(const int64_t after, database_.integer("SELECT count(*) FROM trial"));
    ROOFGEN_CHECK(transaction.commit());
    return after - before;
  }

  Result<StoredRows> merge(const std::string& other) {
    const std::lock_guard lock(mutex_);
    Database from;
    ROOFGEN_CHECK(from.open(other, Database::Mode::kRead));
    ROOFGEN_TRY(const int64_t version, from.integer("PRAGMA user_version"));
    if (version < 1 || version > kSchemaVersion)
      return Error{
          Exit::kUsage,
          fmt::format("expected an evaluation store of version 1 to {}, found version {}", kSchemaVersion, version),
          {other}};
    Statement evaluations(from, fmt::format("SELECT {} FROM evaluation",
                                            version == 1 ? store::kEvaluationColumnsOf1 : store::kEvaluationColumns)
                                    .c_str());
    Statement insert(database_, fmt::format("INSERT OR IGNORE INTO evaluation ({}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                                            store::kEvaluationColumns)
                                    .c_str());
    if (!evaluations) return from.error();
    if (!insert) return database_.error();
    ROOFGEN_TRY(Transaction transaction, Transaction::begin(database_));
    StoredRows out;
    while (evaluations.row()) {
      std::vector<std::string> texts;
      for (int i : {0, 1, 2, 3, 4, 6}) texts.push_back(evaluations.text(i));
      const int64_t checksum = store::checksum(texts[4]);
      if (!evaluations.is_null(5) && evaluations.integer(5) != checksum)
        return Error{Exit::kFailed, "a row is damaged; nothing was merged", {other}};
      for (int i = 0; i < 5; ++i) insert.bind(i + 1, texts[static_cast<size_t>(i)]);
      insert.bind(6, checksum);
      insert.bind(7, texts[5]);
      if (!insert.done()) return database_.error();
      out.evaluations += database_.changes();
    }
    if (!from.is_ok()) return from.error();
    if (version > 1) {
      ROOFGEN_TRY(out.trials, merge_trials(from));
    }
    ROOFGEN_CHECK(transaction.commit());
    return out;
  }

  Result<StoredRows> collect(const Garbage& garbage) {
    const std::lock_guard lock(mutex_);
    std::string stale = "0";
    if (!garbage.versions.empty()) {
      stale = "1";
      for (size_t i = 0; i < garbage.versions.size(); ++i) stale += fmt::format(" AND instr({{0}}, ?{}) = 0", i + 2);
    }
    const std::string old = garbage.older_days > 0 ? "created < datetime('now', ?1)" : "?1 IS NULL";
    StoredRows out;
    {
      ROOFGEN_TRY(Transaction transaction, Transaction::begin(database_));
      ROOFGEN_TRY(
          out.evaluations,
          drop("evaluation", fmt::format("({}) OR {}", fmt::format(fmt::runtime(stale), "simulator"), old), garbage));
      ROOFGEN_TRY(out.trials, drop("trial",
                                   fmt::format("(({}) AND source = '{}' AND origin != 'measured') OR {}",
                                               fmt::format(fmt::runtime(stale), "executor"), StoredTrial::kOwn, old),
                                   garbage));
      if (garbage.dry_run) return out;
      ROOFGEN_CHECK(transaction.commit());
    }
    ROOFGEN_CHECK(database_.execute("VACUUM"));
    ROOFGEN_CHECK(database_.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
    return out;
  }

 private:
  enum class Step { kDone, kDamaged, kFailed };

  Result<void> connect(int* version) {
    const store::DirectoryLock lock(path_, false);
    identity_ = store::FileIdentity::of(path_);
    Result<void> connected = store::connect(database_, path_, version);
    if (identity_ == store::FileIdentity{}) identity_ = store::FileIdentity::of(path_);
    if (!connected || *version > kSchemaVersion) return connected;
    lookup_ = Statement(database_, kLookup);
    put_ = Statement(database_, kPut);
    note_ = Statement(database_, kNote);
    if (!lookup_ || !put_ || !note_) return database_.error();
    return {};
  }

  bool may_repair() const { return damage_ == Damage::kRepair && !repaired_ && database_.is_damaged(); }

  Result<void> repair() {
    const std::string why = database_.is_ok() ? "a row differs from what was written" : database_.message();
    repaired_ = true;
    for (Statement* s : {&lookup_, &put_, &note_}) *s = Statement();
    database_ = Database();
    ROOFGEN_TRY(const store::Repair done, store::repair(path_, identity_));
    if (warn_ && !done.kept.empty())
      warn_(
          fmt::format("the evaluation store {} was damaged ({}): {} evaluations and {} trials could be read and are "
                      "kept; the damaged file is {}",
                      path_, why, done.rows.evaluations, done.rows.trials, done.kept));
    return {};
  }

  /// Takes the step; after damage was found and repaired, once more.
  template <class F>
  bool attempt(F step) {
    const Step first = step();
    if (first == Step::kDone) return true;
    const bool damaged = first == Step::kDamaged && damage_ == Damage::kRepair && !repaired_;
    if (!damaged && !may_repair()) return false;
    int version = 0;
    return repair() && connect(&version) && version == kSchemaVersion && step() == Step::kDone;
  }

  template <class F>
  void write(F step) {
    const std::lock_guard lock(mutex_);
    if (writable_ && !attempt(step)) give_up("written");
  }

  void give_up(const char* what) {
    const bool first = writable_;
    writable_ = false;
    if (first && warn_)
      warn_(fmt::format("the evaluation store {} cannot be {} any more ({}); going on without", path_, what,
                        database_.message()));
  }

  Result<int64_t> merge_trials(const Database& from) {
    Statement select(from, fmt::format("SELECT {} FROM trial", store::kTrialColumns).c_str());
    Statement insert(database_, fmt::format("INSERT OR IGNORE INTO trial ({}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                                            "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
                                            store::kTrialColumns)
                                    .c_str());
    if (!select) return from.error();
    if (!insert) return database_.error();
    int64_t changed = 0;
    while (select.row()) {
      const StoredTrial t = trial_in(select);
      bind(insert, t);
      insert.bind(17, t.release);
      insert.bind(18, t.created);
      if (!insert.done()) return database_.error();
      changed += database_.changes();
    }
    if (!from.is_ok()) return from.error();
    return changed;
  }

  Result<int64_t> drop(const char* table, const std::string& where, const Garbage& garbage) {
    Statement statement(database_, fmt::format("DELETE FROM {} WHERE {}", table, where).c_str());
    if (!statement) return database_.error();
    const std::string age = fmt::format("-{} days", garbage.older_days);
    if (garbage.older_days > 0)
      statement.bind(1, age);
    else
      statement.bind(1, int64_t{0});
    for (size_t i = 0; i < garbage.versions.size(); ++i) statement.bind(static_cast<int>(i) + 2, garbage.versions[i]);
    if (!statement.done()) return database_.error();
    return database_.changes();
  }

  const std::string path_;
  const std::function<void(const std::string&)> warn_;
  const Damage damage_;
  WorkClaims claims_;
  std::mutex mutex_;
  Database database_;
  store::FileIdentity identity_;
  Statement lookup_, put_, note_;
  bool readable_ = true, writable_ = true, repaired_ = false;
};

Store::Store(std::unique_ptr<Rows> rows) : rows_(std::move(rows)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

Result<Store> Store::open(const std::string& path, std::function<void(const std::string&)> warn, Damage damage) {
  std::error_code ignored;
  if (const fs::path directory = fs::path(path).parent_path(); !directory.empty())
    fs::create_directories(directory, ignored);
  int version = 0;
  auto rows = std::make_unique<Rows>(path, warn, damage);
  ROOFGEN_CHECK(rows->open(&version));
  if (version != kSchemaVersion) {
    rows = std::make_unique<Rows>(sibling(path), std::move(warn), damage);
    ROOFGEN_CHECK(rows->open(&version));
    if (version != kSchemaVersion)
      return Error{Exit::kFailed, fmt::format("the evaluation store {} is of an unknown version", sibling(path))};
  }
  return Store(std::move(rows));
}

std::unique_ptr<EvaluationClaim> Store::claim(const StoreKey& key) { return rows_->claim(key); }
std::optional<std::string> Store::lookup(const StoreKey& key) { return rows_->lookup(key); }
void Store::put(const StoreKey& key, const std::string& payload) { rows_->put(key, payload); }
void Store::note(const StoredTrial& trial) { rows_->note(trial); }
Result<std::vector<StoredTrial>> Store::trials(const TrialFilter& filter) { return rows_->trials(filter); }
Result<StoredRows> Store::count() { return rows_->count(); }
Result<int64_t> Store::add(const std::vector<StoredTrial>& trials) { return rows_->add(trials); }
Result<StoredRows> Store::merge(const std::string& other) { return rows_->merge(other); }
Result<StoredRows> Store::collect(const Garbage& garbage) { return rows_->collect(garbage); }

}  // namespace roofgen

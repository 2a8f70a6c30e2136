// The store of evaluations: one row each, written at once. A run after an interrupted or killed one continues from its
// rows. Beside each evaluation stands its trial, in words that a person, another tool or a later search can use.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/work_claims.h"
#include "roofgen/result.h"

namespace roofgen {

/// Everything that an evaluation depends on: equal keys mean equal evaluations.
struct StoreKey {
  std::string binary;     ///< digest of the binary, or several joined
  std::string slice;      ///< the problem, and the parts of it that were run and compared
  std::string simulator;  ///< executor and version of its rules
  std::string device;     ///< the device data that the payload depends on
  auto operator<=>(const StoreKey&) const = default;
};

/// A candidate that was tried. Rows are equal where `source` to `time_model`, without `op`, are equal: a candidate that
/// was timed in several ways has a row for each.
struct StoredTrial {
  std::string source = kOwn;  ///< kOwn, or the format of the file in which another tool recorded it
  std::string op, problem;    ///< `problem`: to_string(Problem); of another tool: its text
  std::string device, variant, stage;
  std::string params;      ///< a JSON object, in the order of the space
  std::string binary;      ///< its digest; empty where the candidate did not compile
  std::string executor;    ///< as StoreKey::simulator
  std::string origin;      ///< of `seconds`: "model", "measured", ...; empty without
  std::string time_model;  ///< where the origin is a model
  std::string outcome;     ///< kVerified, or the step that rejected it: "compile", "spill", "verify", ...
  std::string reason;      ///< why; empty where it was verified
  std::optional<double> seconds;
  std::optional<double> floor_seconds;  ///< of the whole problem: what its score is relative to
  std::string compiler;
  std::string release = {}, created = {};  ///< set by the store; no part of a result

  static constexpr const char* kOwn = "roofgen";
  static constexpr const char* kVerified = "verified";
  bool verified() const { return outcome == kVerified; }
  bool operator==(const StoredTrial&) const = default;
};

/// Empty members and absent ones exclude nothing.
struct TrialFilter {
  std::string source, op, device, variant, stage, origin, outcome;
  std::string problem;  ///< a part of the text "<op> <problem>"
};

/// Rows by their table.
struct StoredRows {
  int64_t evaluations = 0, trials = 0;
};

using EvaluationClaim = WorkClaim;

/// What a run remembers. Thread-safe; failures fail no run.
class Evaluations {
 public:
  virtual ~Evaluations() = default;
  /// nullptr: another process runs the evaluation now. Look it up after a claim: one may just have ended.
  virtual std::unique_ptr<EvaluationClaim> claim(const StoreKey&) { return std::make_unique<EvaluationClaim>(); }
  /// The last payload of this key.
  virtual std::optional<std::string> lookup(const StoreKey& key) = 0;
  /// After the return, the row survives any end of the process.
  virtual void put(const StoreKey& key, const std::string& payload) = 0;
  /// Adds a trial, or replaces outcome and time of an equal one.
  virtual void note(const StoredTrial& trial) = 0;
  /// In the order of problem, device, variant and stage; then the verified ones, the best model and the least time
  /// first.
  virtual Result<std::vector<StoredTrial>> trials(const TrialFilter& filter) = 0;
};

/// A database file shared by any number of threads and processes. After a failed write of put() or note() nothing more
/// is written, and a row that lookup() cannot read counts as absent.
class Store : public Evaluations {
 public:
  /// kAsItIs: a damaged file is an Error. kRepair: it is renamed, a new one made of the rows that can be read, and one
  /// line tells so.
  enum class Damage { kAsItIs, kRepair };

  /// Opens or makes `path`, with its directories, and brings an older schema up to date. A file of a newer schema is
  /// left alone and a sibling `<stem>.v<version><extension>` used. `warn` gets at most one line about a repair and one
  /// about a later failure. An Error, which callers show as a warning: not writable, or not a database.
  static Result<Store> open(const std::string& path, std::function<void(const std::string&)> warn = {},
                            Damage damage = Damage::kRepair);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store() override;

  std::unique_ptr<EvaluationClaim> claim(const StoreKey& key) override;
  std::optional<std::string> lookup(const StoreKey& key) override;
  void put(const StoreKey& key, const std::string& payload) override;
  void note(const StoredTrial& trial) override;
  Result<std::vector<StoredTrial>> trials(const TrialFilter& filter) override;

  // The rest is for `roofgen db`.

  Result<StoredRows> count();
  /// Adds all trials or none. Returns the number of new rows.
  Result<int64_t> add(const std::vector<StoredTrial>& trials);
  /// Adds all rows of another store that this one lacks, or none.
  Result<StoredRows> merge(const std::string& other);

  struct Garbage {
    std::vector<std::string> versions;  ///< rows of executors and models that name none of these are dropped
    int older_days = 0;                 ///< 0: age does not count
    bool dry_run = false;
  };
  /// Drops rows that no run will read, and those of a certain age; then returns the space to the file system. Measured
  /// and imported trials are dropped by age alone. Returns the number of dropped rows.
  Result<StoredRows> collect(const Garbage& garbage);

 private:
  class Rows;
  explicit Store(std::unique_ptr<Rows> rows);
  std::unique_ptr<Rows> rows_;
};

}  // namespace roofgen

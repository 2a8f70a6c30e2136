// The store of evaluations: one row each, written at once. A run after an interrupted or killed one continues from its
// rows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

/// Everything that an evaluation depends on: equal keys mean equal evaluations.
struct StoreKey {
  std::string binary;     ///< digest of the binary, or several joined
  std::string slice;      ///< the problem, and the parts of it that were run and compared
  std::string simulator;  ///< executor and version of its rules
  std::string device;     ///< the device data that the payload depends on
};

/// A launch as part of a key.
std::string launch_text(const Launch& launch);

/// The evaluations that a run remembers. Thread-safe.
class Evaluations {
 public:
  virtual ~Evaluations() = default;
  /// The last payload of this key.
  virtual std::optional<std::string> lookup(const StoreKey& key) = 0;
  /// After the return, the row survives any end of the process.
  virtual void put(const StoreKey& key, const std::string& payload) = 0;
};

/// A database file shared by any number of threads and processes. Its failures fail no run: after a failed write
/// nothing more is written, and a row that cannot be read counts as absent.
class Store : public Evaluations {
 public:
  /// Opens or makes `path`, with its directories. A file of another schema version is left alone and a
  /// sibling `<stem>.v<version><extension>` used. `warn` gets at most one line, about a later
  /// failure. An Error, which callers show as a warning: not writable, or not a database.
  static Result<Store> open(const std::string& path, std::function<void(const std::string&)> warn = {});
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store() override;

  std::optional<std::string> lookup(const StoreKey& key) override;
  void put(const StoreKey& key, const std::string& payload) override;

 private:
  class Database;
  explicit Store(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace roofgen

// The memory of the tuner: one row per evaluation, written as it happens, so that a run that is
// interrupted or killed loses nothing it had finished and the next one continues.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "roofgen/result.h"

namespace roofgen {

/// What an evaluation depends on, and nothing else: two evaluations of equal keys are equal.
struct StoreKey {
  std::string binary;     ///< digest of the binary, or several joined
  std::string slice;      ///< what of which problem was run and checked
  std::string simulator;  ///< executor and version of its rules
  std::string device;     ///< the device data that shapes the payload
};

/// A database file shared by any number of threads and processes. No failure of it ever fails a job:
/// after a write failed nothing more is written, and what cannot be read is not known.
class Store {
 public:
  /// Opens or makes `path`, with its directories. A file of another schema version is left alone and a
  /// sibling `<stem>.v<version><extension>` used. `warn` gets at most one line, when the store fails
  /// later. An Error, for a warning: not writable, or not a database.
  static Result<Store> open(const std::string& path, std::function<void(const std::string&)> warn = {});
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// The payload put last under this key.
  std::optional<std::string> lookup(const StoreKey& key);
  /// On return the row survives the end of the process, however it ends.
  void put(const StoreKey& key, const std::string& payload);

 private:
  class Database;
  explicit Store(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace roofgen

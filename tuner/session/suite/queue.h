// Where the ranks of a suite get their problems and leave their results and evaluations: the queue of rank 0. The
// other ranks reach it by questions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/session/suite/file.h"
#include "tuner/session/suite/ranks.h"
#include "tuner/store/store.h"

namespace roofgen {

/// Gives out the problems of a suite and takes their results. Thread-safe.
class SuiteQueue {
 public:
  virtual ~SuiteQueue() = default;
  /// The next problem that no worker has; none: all are given out, or the run is being stopped.
  virtual std::optional<size_t> next() = 0;
  /// `result`: one line of JSON.
  virtual void finish(size_t problem, std::string result) = 0;
  /// The store of rank 0, or null.
  virtual std::unique_ptr<Evaluations> store() = 0;
};

/// On rank 0, or without ranks.
class LocalQueue : public SuiteQueue {
 public:
  /// `open`: opens the store. `stopped`: no further problem is given out.
  LocalQueue(std::vector<size_t> problems, std::function<std::unique_ptr<Evaluations>()> open,
             std::function<bool()> stopped);
  std::optional<size_t> next() override;
  void finish(size_t problem, std::string result) override;
  std::unique_ptr<Evaluations> store() override { return open_(); }

  /// The answer to a question of another rank.
  std::string answer(const std::string& question);
  /// By problem.
  std::map<size_t, std::string> results() const;
  size_t finished() const { return results().size(); }

 private:
  const std::vector<size_t> problems_;
  const std::function<std::unique_ptr<Evaluations>()> open_;
  const std::function<bool()> stopped_;
  const std::unique_ptr<Evaluations> store_;  ///< for the questions
  mutable std::mutex mutex_;
  size_t given_ = 0;
  std::map<size_t, std::string> results_;
};

/// The queue as another rank sees it.
std::unique_ptr<SuiteQueue> remote_queue(Ranks& ranks);

}  // namespace roofgen

// The state of one measurement: buffers, modules, what each contender has shown so far. measure.cpp has
// the protocol, bench.cpp how a round is fired and what a fault costs.
#pragma once

#include <string>
#include <vector>

#include "runtime/measure/measure.h"
#include "runtime/measure/statistics.h"

namespace roofgen::measuring {

/// The samples of one contender in one way of timing. Times are of one repetition.
struct Phase {
  std::vector<double> times_ns;
  std::vector<Sample> samples;  ///< those that count
  uint64_t discarded = 0;
  double spent_s = 0;
  std::string stopped;
};

struct Entry {
  const Contender* contender = nullptr;
  std::vector<ModuleId> modules;
  int batch = 1;
  double screened_ns = 0;
  Phase cold, hot;
  std::optional<Rejected> rejected;
  bool out() const { return rejected.has_value(); }
};

class Bench {
 public:
  Bench(GpuExecutor& gpu, const Workload& workload, const std::vector<Contender>& contenders, const Protocol& protocol, const BenchHooks& hooks);
  ~Bench();

  /// Buffers for the first time: an Error where not even one set fits.
  Result<void> set_up();
  /// One sample of each of `entries`, in that order, as few messages as the time-out allows. An entry that
  /// faults is out and the others are fired again. Empty where the GPU was lost or the run interrupted.
  /// `index`: which set of buffers a cold shot takes.
  struct Fired {
    size_t entry;
    Sample sample;  ///< time of one repetition
  };
  std::vector<Fired> fire(const std::vector<size_t>& entries, bool cold, uint64_t index);
  bool over() const { return lost || interrupted(); }
  bool interrupted() const { return hooks.stop && hooks.stop->load(); }
  void progress(const char* phase, uint64_t done, uint64_t total) const;
  /// Once each, in the order they came up.
  void note(const std::string& text, bool warn = false);

  GpuExecutor& gpu;
  const Workload& workload;
  const Protocol& protocol;
  const BenchHooks& hooks;
  std::vector<Entry> entries;
  std::vector<std::string> notes;
  int sets = 1;
  bool lost = false;
  std::string lost_because;

 private:
  using Addresses = std::map<std::string, DevicePtr>;
  Result<void> allocate(int wanted);
  Result<void> load();
  Result<void> prepare();
  Result<bool> restore();
  void release();
  Shot shot_of(const Entry& entry, bool cold, uint64_t index) const;
  Launch bind(const Launch& launch, size_t set) const;
  void blame(size_t entry, const Error& error);

  std::vector<Addresses> buffers_;  ///< by set
  uint64_t generation_ = 0;
};

}  // namespace roofgen::measuring

// Timing of calls that queue work on a stream, a library's or our own, by the rules of docs/peers.md: gate, flush
// outside the timed region, turns, cold and hot apart.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "roofgen/result.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/gate.h"
#include "runtime/cuda/nvml.h"
#include "runtime/measure/measure.h"

namespace roofgen::peers {

/// One GPU: its current context, a stream, memory, and the helper kernels. All is freed at the end of the process.
class Gpu {
 public:
  static Result<std::unique_ptr<Gpu>> open(int ordinal);
  const cuda::Driver& driver() const { return *driver_; }
  cuda::Handle stream() const { return stream_; }
  Result<uint64_t> allocate(uint64_t bytes, const std::string& what);
  void free(uint64_t address) { driver_->free(address); }
  Result<void> upload(uint64_t to, const void* from, size_t bytes);
  Result<void> download(void* to, uint64_t from, size_t bytes);
  Result<void> wait(const std::string& doing);
  Result<cuda::Handle> load(const std::string& cubin, const std::string& ptx, const std::string& entry,
                            uint32_t smem_bytes);

  /// Nanoseconds of the work that `queue` puts on the stream.
  using Queue = std::function<Result<void>()>;
  Result<double> time(const Queue& queue, bool cold);

  std::string name, driver_version, uuid;
  int sms = 0, cc = 0;
  uint64_t l2_bytes = 0, memory_bytes = 0;
  cuda::Nvml nvml;

 private:
  Gpu() = default;
  Result<void> start(int ordinal);
  Result<void> flush();
  std::unique_ptr<cuda::Driver> driver_;
  cuda::Handle stream_ = nullptr, start_ = nullptr, stop_ = nullptr, gate_ = nullptr, sweep_ = nullptr;
  uint64_t scratch_ = 0, scratch_bytes_ = 0;
  cuda::GateFactor gate_factor_;
};

struct Rounds {
  std::string mode = "steady";
  int most = 300, least = 10;
  double seconds = 60, warmup_s = 3, rest_s = 0, settled = 0.005;
  static Rounds of(const std::string& mode, int most, double seconds);
};

/// The samples by way ("cold", "hot") and contender, one a round.
struct Turns {
  std::map<std::string, std::vector<std::vector<double>>> times;
  std::vector<double> sm_mhz, power_w;
  int rounds = 0;
  std::string stopped;
};

/// `run(i, set)` queues contender i on buffer set `set`; `time` is Gpu::time or a fake. The first error ends
/// the run.
struct Stage {
  std::function<Result<void>(size_t contender, size_t set)> run;
  std::function<Result<double>(const Gpu::Queue&, bool cold)> time;
  std::function<void(Turns&)> state;  ///< after each round
  BenchClock clock = BenchClock::real();
};
Result<Turns> take_turns(const Stage& stage, size_t contenders, size_t sets, const Rounds& rounds);

}  // namespace roofgen::peers

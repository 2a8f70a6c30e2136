// Measures the ceilings of a GPU with micro-kernels, and stores them in a profile (docs/evidence/ceilings.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "roofline/device.h"
#include "roofline/lint/lint.h"
#include "runtime/compiler.h"
#include "runtime/executor.h"
#include "runtime/measure/measure.h"
#include "tuner/ceilings/kernels.h"

namespace roofgen {

inline constexpr const char* kCeilingsSchema = "roofgen.ceilings.1";

/// The prefix of the source of measured cells.
inline constexpr const char* kOwnSource = "roofgen roofline --measure";

/// Above this share of the stated limit, the work or the time must be wrong.
inline constexpr double kCeilingSlack = 1.02;

struct CeilingPoint {
  Schedule schedule;
  double rate = 0;       ///< in the ceiling's unit
  std::string rejected;  ///< why it was not timed; empty: it was
};

/// The result of one ceiling.
struct CeilingResult {
  const CeilingSpec* spec = nullptr;
  std::string missing;                 ///< one line: why there is no rate; empty: there is one
  bool impossible = false;             ///< measured, but above the stated limit: a bug, not stored
  bool not_here = false;               ///< this GPU has no such ceiling
  double rate = 0, low = 0, high = 0;  ///< in the ceiling's unit: median and its 95 % interval
  double chip_rate = 0;                ///< of all SMs, at the clock it ran at
  std::string chip_unit;               ///< "TFLOP/s", "GB/s", "T/s"; empty: the rate is the chip's
  Schedule point;                      ///< the fastest
  double amount = 0;                   ///< of one launch
  Timing timing;                       ///< of one launch
  double sm_mhz = 0, power_w = 0, temperature_c = 0;
  std::optional<RateLimit> limit;
  std::vector<CeilingPoint> points;
  std::vector<std::pair<std::string, double>> extra;  ///< launch: "graph_us"

  bool measured() const { return spec && missing.empty(); }
};

/// One measurement of a GPU. A profile replaces the device's values by `cells`.
struct CeilingsReport {
  Device device;
  GpuIdentity gpu;
  Origin origin = Origin::kMeasured;  ///< kSimulated: the driver has no GPU behind it
  std::string date, compiler, protocol;
  std::vector<CeilingResult> results;
  std::map<std::string, Cell> cells;
  std::vector<std::string> notes;
  bool lost = false, interrupted = false;
  bool chosen = false;  ///< only some were asked for
  std::string lost_because;

  bool complete() const { return !lost && !interrupted && !chosen; }
  const CeilingResult* find(const std::string& name) const;
};

struct CeilingsContext {
  const DataFiles& files;
  const Device& device;  ///< matched with the GPU
  Compiler& compiler;    ///< for the device's arch
  GpuExecutor& gpu;
};

struct CeilingsOptions {
  Protocol protocol = short_protocol();
  std::optional<CeilingSizes> sizes;  ///< nullopt: ceiling_sizes
  std::vector<std::string> only;      ///< names; empty: all
  std::string date;                   ///< "2026-11-21T12:00:00Z"
  BenchHooks hooks;

  /// The points of one ceiling differ by more than noise: a fraction of the protocol's time suffices.
  static Protocol short_protocol();
};

/// Verifies every micro-kernel on the GPU, then times its points against each other. A fault, a wrong result or a
/// compile error costs only that ceiling. After a lost GPU or Ctrl-C, finished ceilings are kept. An Error only when
/// nothing can be measured: an invalid search space, an unknown name in `only` (Exit::kUsage).
Result<CeilingsReport> measure_ceilings(const CeilingsContext& context, const CeilingsOptions& options);

/// The report as the table and as the document of `roofline --measure`; both end with a newline.
std::string ceilings_text(const CeilingsReport& report);
std::string ceilings_json(const CeilingsReport& report);

// ---- Comparison with measured times (rule R12) -----------------------------------------------------

/// The measured time of a kernel or variant, and its counted work. 0: unknown.
struct MeasuredWork {
  std::string name;
  double seconds = 0;
  double dram_bytes = 0;  ///< 0 also if an intermediate stays in L2
  double mma_flops = 0;   ///< by mma.sync
  std::string kind;       ///< of those: "bf16", "fp16_acc16"
  double sm_mhz = 0;      ///< the clock it ran at
};

/// R12 for each measured ceiling of the device that the work exceeds by more than 2 %: then the ceiling, the work or
/// the time is wrong. Other cells are skipped: rule R12 itself compares with them.
std::vector<Warning> above_measured_ceilings(const Device& device, const MeasuredWork& work);

}  // namespace roofgen

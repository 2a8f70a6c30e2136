// NVML by dlopen: clocks, power and other processes on the GPU. Optional: every unavailable number is 0.
#pragma once

#include <string>
#include <vector>

#include "runtime/executor.h"

namespace roofgen::cuda {

// Numbers, layouts and signatures from nvml.h; all are older than the oldest supported driver.
namespace nvml {
inline constexpr int kInsufficientSize = 7;
inline constexpr int kClockSm = 1, kClockMemory = 2;
inline constexpr int kTemperatureGpu = 0;
inline constexpr unsigned kDriverVersionBytes = 80;

/// nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v2 and _v3.
struct ProcessInfo {
  unsigned pid = 0;
  unsigned long long used_bytes = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
}  // namespace nvml

#define ROOFGEN_NVML_ENTRY_POINTS(X)                                                               \
  X(init, "nvmlInit_v2")                                                                           \
  X(shutdown, "nvmlShutdown")                                                                      \
  X(driver_version, "nvmlSystemGetDriverVersion", char*, unsigned)                                 \
  X(by_uuid, "nvmlDeviceGetHandleByUUID", const char*, void**)                                     \
  X(by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2", const char*, void**)                            \
  X(clock, "nvmlDeviceGetClockInfo", void*, int, unsigned*)                                        \
  X(max_clock, "nvmlDeviceGetMaxClockInfo", void*, int, unsigned*)                                 \
  X(default_clock, "nvmlDeviceGetDefaultApplicationsClock", void*, int, unsigned*)                 \
  X(power, "nvmlDeviceGetPowerUsage", void*, unsigned*)                                            \
  X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", void*, unsigned*)                              \
  X(temperature, "nvmlDeviceGetTemperature", void*, int, unsigned*)                                \
  X(event_reasons, "nvmlDeviceGetCurrentClocksEventReasons", void*, unsigned long long*)           \
  X(throttle_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons", void*, unsigned long long*)     \
  X(processes_v3, "nvmlDeviceGetComputeRunningProcesses_v3", void*, unsigned*, nvml::ProcessInfo*) \
  X(processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2", void*, unsigned*, nvml::ProcessInfo*)

/// One GPU as seen by NVML.
class Nvml {
 public:
  Nvml() = default;
  ~Nvml();
  Nvml(const Nvml&) = delete;

  /// Opens $ROOFGEN_LIBNVML, else libnvidia-ml.so.1, and finds the GPU by UUID, else by bus id.
  void open(const std::string& uuid, const std::string& bus_id);
  bool available() const { return device_ != nullptr; }
  const std::string& why_not() const { return why_not_; }  ///< one line

  std::string driver() const;
  double sm_mhz() const { return clock(clock_, nvml::kClockSm); }
  double memory_mhz() const { return clock(clock_, nvml::kClockMemory); }
  double max_sm_mhz() const { return clock(max_clock_, nvml::kClockSm); }
  double max_memory_mhz() const { return clock(max_clock_, nvml::kClockMemory); }
  double default_sm_mhz() const { return clock(default_clock_, nvml::kClockSm); }
  double power_w() const;
  double power_limit_w() const;
  double temperature_c() const;
  uint64_t limits() const;
  /// Number of processes with a compute context on the GPU, including this one.
  int processes() const;

 private:
  using Clock = int (*)(void*, int, unsigned*);
  double clock(Clock ask, int domain) const;

#define ROOFGEN_DECLARE(member, symbol, ...) int (*member##_)(__VA_ARGS__) = nullptr;
  ROOFGEN_NVML_ENTRY_POINTS(ROOFGEN_DECLARE)
#undef ROOFGEN_DECLARE
  const char* (*error_string_)(int) = nullptr;
  void* device_ = nullptr;
  bool started_ = false;
  std::string why_not_ = "not asked";
};

}  // namespace roofgen::cuda

#include "runtime/cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace roofgen::cuda {

Nvml::~Nvml() {
  // The library stays loaded, like the driver; shutdown only returns NVML's reference.
  if (started_ && shutdown_) shutdown_();
}

void Nvml::open(const std::string& uuid, const std::string& bus_id) {
  const char* chosen = std::getenv("ROOFGEN_LIBNVML");
  const std::string library = chosen && *chosen ? chosen : "libnvidia-ml.so.1";
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    why_not_ = reason ? reason : library + " cannot be loaded";
    return;
  }
  auto bind = [&](auto& member, const char* symbol) {
    void* address = dlsym(handle, symbol);
    std::memcpy(&member, &address, sizeof address);
  };
#define ROOFGEN_BIND(member, symbol, ...) bind(member##_, symbol);
  ROOFGEN_NVML_ENTRY_POINTS(ROOFGEN_BIND)
#undef ROOFGEN_BIND
  bind(error_string_, "nvmlErrorString");
  if (!init_) {
    why_not_ = library + " is no NVML: it has no nvmlInit_v2";
    return;
  }
  auto failed = [&](const char* doing, int status) {
    const char* text = error_string_ ? error_string_(status) : nullptr;
    why_not_ = fmt::format("{}: {}", doing, text ? text : fmt::format("error {}", status));
  };
  if (int status = init_(); status != 0) return failed("starting NVML", status);
  started_ = true;
  int status = 6;  // NVML_ERROR_NOT_FOUND
  if (by_uuid_ && !uuid.empty()) status = by_uuid_(uuid.c_str(), &device_);
  if (status != 0 && by_bus_id_ && !bus_id.empty()) status = by_bus_id_(bus_id.c_str(), &device_);
  if (status != 0) {
    device_ = nullptr;
    return failed("finding the GPU in NVML", status);
  }
  why_not_.clear();
}

std::string Nvml::driver() const {
  char version[nvml::kDriverVersionBytes + 1] = {};
  if (!started_ || !driver_version_ || driver_version_(version, nvml::kDriverVersionBytes) != 0) return "";
  return version;
}

double Nvml::clock(Clock ask, int domain) const {
  unsigned mhz = 0;
  return device_ && ask && ask(device_, domain, &mhz) == 0 ? mhz : 0;
}

double Nvml::power_w() const {
  unsigned milliwatts = 0;
  return device_ && power_ && power_(device_, &milliwatts) == 0 ? milliwatts / 1000.0 : 0;
}

double Nvml::power_limit_w() const {
  unsigned milliwatts = 0;
  return device_ && power_limit_ && power_limit_(device_, &milliwatts) == 0 ? milliwatts / 1000.0 : 0;
}

double Nvml::temperature_c() const {
  unsigned celsius = 0;
  return device_ && temperature_ && temperature_(device_, nvml::kTemperatureGpu, &celsius) == 0 ? celsius : 0;
}

uint64_t Nvml::limits() const {
  unsigned long long reasons = 0;
  if (!device_) return 0;
  if (event_reasons_ && event_reasons_(device_, &reasons) == 0) return reasons;
  // The call's name until CUDA 12.2, with the same bits.
  return throttle_reasons_ && throttle_reasons_(device_, &reasons) == 0 ? reasons : 0;
}

int Nvml::processes() const {
  // Two versions of the call with the same layout; v3 also lists confined processes.
  auto* ask = processes_v3_ ? processes_v3_ : processes_v2_;
  if (!device_ || !ask) return 0;
  std::vector<nvml::ProcessInfo> list(64);
  auto count = static_cast<unsigned>(list.size());
  int status = ask(device_, &count, list.data());
  // With more processes than fit into the list, the returned count is still right.
  return status == 0 || status == nvml::kInsufficientSize ? static_cast<int>(std::min(count, 100'000u)) : 0;
}

}  // namespace roofgen::cuda

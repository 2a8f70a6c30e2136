#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace roofgen::cuda {
namespace {

Error unavailable(std::string message) { return {Exit::kUnavailable, std::move(message)}; }
Error no_driver(std::string message) { return {Exit::kUnavailable, std::move(message), {}, {}, true}; }

/// Messages for the common causes of a failing cuInit.
Error init_error(const Driver& driver, Status status, const std::string& library) {
  switch (status) {
    case kNoDevice: return no_gpu();
    case kStubLibrary: return unavailable(library + " is the stub that a CUDA toolkit links against, not a driver");
    case kSystemDriverMismatch:
      return unavailable("the CUDA driver library and the kernel module are of different versions; a reboot helps");
    default: {
      Error error = driver.check(status, "starting the CUDA driver").error();
      error.exit = Exit::kUnavailable;
      return error;
    }
  }
}

}  // namespace

Error no_gpu() { return no_driver("the CUDA driver finds no GPU"); }

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Result<std::unique_ptr<Driver>> Driver::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return no_driver(fmt::format("no CUDA driver: {}", reason ? reason : library + " cannot be loaded"));
  }
  auto driver = std::make_unique<Driver>();
  driver->simulated = dlsym(handle, kSimulatedMark) != nullptr;
  std::string missing;
  auto bind = [&](auto& member, const char* symbol, bool needed) {
    void* address = dlsym(handle, symbol);
    if (!address && needed && missing.empty()) missing = symbol;
    std::memcpy(&member, &address, sizeof address);
  };
#define ROOFGEN_BIND(member, symbol, ...) bind(driver->member, symbol, true);
  ROOFGEN_CUDA_ENTRY_POINTS(ROOFGEN_BIND)
#undef ROOFGEN_BIND
#define ROOFGEN_BIND(member, symbol, ...) bind(driver->member, symbol, false);
  ROOFGEN_CUDA_OPTIONAL_ENTRY_POINTS(ROOFGEN_BIND)
#undef ROOFGEN_BIND
  // The version is checked first: it needs no initialisation, and an old driver is the likely cause of other failures.
  if (driver->driver_version && driver->driver_version(&driver->version) == 0 && driver->version < kMinDriverVersion)
    return unavailable(fmt::format("the CUDA driver is too old: it supports CUDA {}, {} or newer is needed",
                                   version_text(driver->version), version_text(kMinDriverVersion)));
  if (!missing.empty()) return no_driver(fmt::format("{} is no CUDA driver: it has no {}", library, missing));
  if (Status status = driver->init(0); status != 0) return init_error(*driver, status, library);
  return driver;
}

Result<void> Driver::check(Status status, const std::string& doing) const {
  if (status == 0) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  error_name(status, &name);
  error_string(status, &text);
  return Error{Exit::kFailed, fmt::format("{}: {} ({}, {})", doing, text ? text : "unknown error",
                                          name ? name : "CUDA_ERROR", status)};
}

Error Driver::lacks(const char* what) const {
  return {Exit::kUnavailable,
          fmt::format("{} need a newer driver; this one supports CUDA {}", what, version_text(version))};
}

Fault fault_of(Status status) {
  switch (status) {
    case 0: return Fault::kNone;
    case kOutOfMemory: return Fault::kMemory;
    // Errors that destroy the context ("the context cannot be used, so it must be destroyed") or leave the process in
    // an inconsistent state.
    case 700:  // ILLEGAL_ADDRESS
    case 709:  // CONTEXT_IS_DESTROYED
    case 710:  // ASSERT
    case 714:  // HARDWARE_STACK_ERROR: a corrupted or exhausted stack
    case 715:  // ILLEGAL_INSTRUCTION
    case 716:  // MISALIGNED_ADDRESS
    case 717:  // INVALID_ADDRESS_SPACE
    case 718:  // INVALID_PC
    case 719:  // LAUNCH_FAILED
    case 721:  // TENSOR_MEMORY_LEAK
      return Fault::kKernel;
    case 702:  // LAUNCH_TIMEOUT: the display watchdog
      return Fault::kTimeout;
    // Errors of the device, its driver or the connection between them.
    case 3:  // NOT_INITIALIZED
    case 4:  // DEINITIALIZED
    case kDeviceUnavailable:
    case kNoDevice:
    case 101:  // INVALID_DEVICE
    case 201:  // INVALID_CONTEXT
    case 214:  // ECC_UNCORRECTABLE
    case 220:  // NVLINK_UNCORRECTABLE
    case 226:  // CONTAINED
    case 304:  // OPERATING_SYSTEM
    case 802:  // SYSTEM_NOT_READY
    case kSystemDriverMismatch:
    case 805:  // MPS_CONNECTION_FAILED
    case 806:  // MPS_RPC_FAILURE
    case 807:  // MPS_SERVER_NOT_READY
    case 810:  // MPS_CLIENT_TERMINATED
    case 999:  // UNKNOWN
      return Fault::kLost;
    default: return Fault::kRefused;
  }
}

std::string uuid_text(const Uuid& uuid) {
  std::string out = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}", uuid.bytes[i]);
  }
  return out;
}

std::string default_library() {
  const char* chosen = std::getenv("ROOFGEN_LIBCUDA");
  return chosen && *chosen ? chosen : "libcuda.so.1";
}

}  // namespace roofgen::cuda

namespace roofgen {

const char* to_string(Fault fault) {
  switch (fault) {
    case Fault::kNone: return "none";
    case Fault::kRefused: return "refused";
    case Fault::kMemory: return "out of memory";
    case Fault::kKernel: return "kernel fault";
    case Fault::kTimeout: return "timeout";
    case Fault::kLost: return "lost";
  }
  return "?";
}

}  // namespace roofgen

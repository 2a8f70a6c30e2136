#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

namespace roofgen::cuda {
namespace {

Error unavailable(std::string message) { return {Exit::kUnavailable, std::move(message)}; }

/// cuInit fails for a few well-known reasons; each gets its own sentence.
Error init_error(const Driver& driver, Status status, const std::string& library) {
  switch (status) {
    case kNoDevice:
      return unavailable("the CUDA driver finds no GPU");
    case kStubLibrary:
      return unavailable(library + " is the stub that a CUDA toolkit links against, not a driver");
    case kSystemDriverMismatch:
      return unavailable(
          "the CUDA driver library and the kernel module are of different versions; a reboot helps");
    default: {
      Error error = driver.check(status, "starting the CUDA driver").error();
      error.exit = Exit::kUnavailable;
      return error;
    }
  }
}

}  // namespace

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Result<std::unique_ptr<Driver>> Driver::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return unavailable(fmt::format("no CUDA driver: {}", reason ? reason : library + " cannot be loaded"));
  }
  auto driver = std::make_unique<Driver>();
  std::string missing;
  auto bind = [&](auto& member, const char* symbol) {
    void* address = dlsym(handle, symbol);
    if (!address && missing.empty()) missing = symbol;
    std::memcpy(&member, &address, sizeof address);
  };
#define ROOFGEN_BIND(member, symbol, ...) bind(driver->member, symbol);
  ROOFGEN_CUDA_ENTRY_POINTS(ROOFGEN_BIND)
#undef ROOFGEN_BIND
  // The version first: it needs no initialisation, and an old driver is the likely cause of whatever else
  // fails.
  if (driver->driver_version && driver->driver_version(&driver->version) == 0 &&
      driver->version < kMinDriverVersion)
    return unavailable(fmt::format("the CUDA driver is too old: it supports CUDA {}, {} or newer is needed",
                                   version_text(driver->version), version_text(kMinDriverVersion)));
  if (!missing.empty())
    return unavailable(fmt::format("{} is no CUDA driver: it has no {}", library, missing));
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

}  // namespace roofgen::cuda

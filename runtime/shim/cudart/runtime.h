// The CUDA runtime API on the simulated driver (docs/use/shim.md): a thin layer of calls of driver entry points. Its
// own state is the code that host programs register, the configurations of launches, and each thread's last error.
//
// cudaError_t has the driver's numbers, and adds a few.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/shim/cudart/driver.h"
#include "runtime/shim/cudart/layouts.h"

namespace roofgen::shim::cudart {

using Error = int;  // cudaError_t
inline constexpr Error kSuccess = 0, kInvalidValue = 1, kInvalidConfiguration = 9, kInvalidSymbol = 13,
                       kInvalidChannelDescriptor = 20, kInvalidDirection = 21, kMissingConfiguration = 52,
                       kInvalidFunction = 98, kInvalidDevice = 101, kNotSupported = 801;

/// The version of a library is that of its API (version.cpp, compiled for each).
extern const int kRuntimeVersion;

/// A fat binary that the host program registered; its module is loaded on the first use.
struct Binary {
  const void* image = nullptr;
  Handle module = nullptr;
};
struct Symbol {
  Binary* binary = nullptr;
  std::string name;
  Handle function = nullptr;  ///< of a kernel, after its first use
};

class Runtime {
 public:
  /// Never destroyed, as calls may come after main.
  static Runtime& instance();

  std::recursive_mutex mutex;
  std::map<Binary*, std::unique_ptr<Binary>> binaries;
  /// By their addresses in the host program; of a managed variable, the place of its pointer.
  std::map<const void*, Symbol> kernels, variables, managed;
  std::set<Handle> handles;  ///< kernels of libraries, which are launched by handle

  /// Initialises the driver, and makes the primary context current on a thread without context.
  Error start();
  Error module(Binary& binary, Handle* out);
  Error function(const char* call, const void* host, Handle* out);
  Error variable(const char* call, const void* host, Address* at, size_t* bytes);
  /// Sets the host program's pointers to the managed variables of a binary.
  Error set_managed(Binary& binary);
  /// After a reset of the device.
  void forget_modules();
};

extern thread_local Error last_error;

Error refuse(const char* call, Error error, const std::string& why);

/// Bytes of a channel of an array, by CUarray_format: unsigned, signed, floating-point.
constexpr size_t bytes_of_format(int format) {
  const int width = format >= 16 ? format / 16 : format >= 8 ? format - 8 : format - 1;
  return size_t{1} << width;
}

/// Wraps every call: takes the lock, starts the driver, and keeps the error.
template <class F>
Error enter(const char* call, F&& body) {
  Runtime& r = Runtime::instance();
  const std::lock_guard lock(r.mutex);
  Error error = kSuccess;
  try {
    error = r.start();
    if (error == kSuccess) error = body(r);
  } catch (const std::exception& e) {
    error = refuse(call, 999, e.what());
  }
  if (error != kSuccess) last_error = error;
  return error;
}

}  // namespace roofgen::shim::cudart

/// In a call named `call`: logs why, and returns the error unless the condition holds.
#define NEED(condition, error, ...) \
  if (!(condition)) return refuse(call, error, fmt::format(__VA_ARGS__))
/// Returns the error of a call that fails.
#define TRY(...) \
  if (const Error failed = (__VA_ARGS__); failed != kSuccess) return failed

/// Defines and exports NAME(params) { body }, with the Runtime as `r`.
#ifndef ROOFGEN_CUDART
#define ROOFGEN_CUDART(name, params, ...)                                                  \
  extern "C" __attribute__((visibility("default"))) int name params;                       \
  extern "C" __attribute__((visibility("default"))) int name params {                      \
    constexpr const char* call = #name;                                                    \
    return ::roofgen::shim::cudart::enter(call, [&](::roofgen::shim::cudart::Runtime& r) { \
      (void)r;                                                                             \
      return [&]() -> int __VA_ARGS__();                                                   \
    });                                                                                    \
  }
/// The same with the form for per-thread default streams, an alias: all streams run in one order.
#define ROOFGEN_CUDART_PTSZ(name, ...) \
  ROOFGEN_CUDART(name, __VA_ARGS__)    \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) name##_ptsz;
#define ROOFGEN_CUDART_PTDS(name, ...) \
  ROOFGEN_CUDART(name, __VA_ARGS__)    \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) name##_ptds;
/// A call that passes its arguments to one of the driver.
#define PASS(name, params, ...) ROOFGEN_CUDART(name, params, { return __VA_ARGS__; })
#define PASS_PTSZ(name, params, ...) ROOFGEN_CUDART_PTSZ(name, params, { return __VA_ARGS__; })
#endif

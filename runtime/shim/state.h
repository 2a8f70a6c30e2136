// A CUDA driver without a GPU: what libcuda.so.1 of the build folder keeps between calls. One device out
// of the catalogue, its memory and kernels in the PTX simulator, one timeline. docs/shim.md says what of
// the driver API is there.
//
// Work is queued and runs, in the order of queueing over all streams, when something waits for it or asks
// whether it is done. That order is one of those that streams, events and the default stream allow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "roofline/device.h"
#include "runtime/compile/log.h"
#include "runtime/cuda/driver.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/ptx_ast.h"

namespace roofgen::shim {

using cuda::Address;
using cuda::Handle;
using cuda::Status;

// CUresult, as cuda.h numbers them; tests/shim compares the names.
inline constexpr Status kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialised = 3, kNoDevice = 100,
                        kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201, kNoBinary = 209,
                        kUnsupportedLimit = 215, kInvalidPtx = 218, kFileNotFound = 301, kOperatingSystem = 304,
                        kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700,
                        kOutOfResources = 701, kLaunchTimeout = 702, kAssert = 710, kMisaligned = 716,
                        kLaunchFailed = 719, kTooLarge = 720, kNotSupported = 801, kCaptureUnsupported = 900,
                        kInvalidClusterSize = 912, kUnknown = 999;

/// The version of the driver API: what it has is in entries.def.
inline constexpr int kVersion = 13000;

struct Module;

struct Function {
  sim::Kernel kernel;
  Module* module = nullptr;
  uint32_t cluster[3] = {0, 0, 0};  ///< required; 0: none is
  bool big_clusters = false;        ///< of more than 8 CTAs
  int max_dynamic_smem = 0;         ///< cuFuncSetAttribute's; before that what is left of 48 KiB
};

struct Module {
  std::string text, file;
  sim::PtxModule ptx;                    ///< points into `text`
  int max_registers = 0;                 ///< asked for when it was loaded; 0: not
  std::optional<std::string> ptxas_log;  ///< none yet
  std::map<std::string, Address, std::less<>> variables;
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
};

/// A launch as queued: it owns its arguments.
struct LaunchOp {
  const Function* function = nullptr;
  Launch launch;
  std::vector<std::byte> params;
  std::vector<void*> args;  ///< into `params`, one by one
  bool cooperative = false;
};

using Op = std::function<Status()>;

inline constexpr int kJitMaxRegisters = 0;  ///< CU_JIT_MAX_REGISTERS

/// CUgraphNodeType, those that there are.
enum class WorkType {
  kKernel = 0,
  kMemcpy = 1,
  kMemset = 2,
  kHost = 3,
  kGraph = 4,
  kEmpty = 5,
  kWaitEvent = 6,
  kRecordEvent = 7
};

/// What a stream does in one piece, or a node of a graph.
struct Work {
  WorkType type = WorkType::kEmpty;
  Op op;                             ///< null: nothing
  std::shared_ptr<LaunchOp> launch;  ///< of a kernel
  Handle event = nullptr;            ///< that it records
};

struct Graph;
struct Node {
  Work work;
  std::vector<Node*> after;
  std::unique_ptr<Graph> child;
};
struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  Node* add(Work work, std::vector<Node*> after);
  std::unique_ptr<Graph> clone() const;
};
struct Executable {
  struct Step {
    Handle node;  ///< of the graph that it was made of
    Work work;
  };
  std::vector<Step> steps;
  unsigned long long flags = 0;
};

struct Stream {
  std::unique_ptr<Graph> capture;
  unsigned flags = 0;
  int priority = 0;
  Handle context = nullptr;
};
struct Event {
  bool recorded = false, timed = true;
  int pending = 0;  ///< records that are queued
  double time_ns = 0;
};
struct Context {
  unsigned flags = 0;
  size_t limits[3] = {1024, 1 << 20,
                      8 << 20};  ///< CUlimit: stack of a thread, printf's buffer, malloc's heap; as CUDA begins
};

/// Of the stream-ordered allocator. It holds nothing back: what is freed is the device's again.
struct Pool {
  size_t most_bytes = 0;  ///< 0: what the device has
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};
  size_t used = 0, used_high = 0, reserved_high = 0;
};

/// cuLinkCreate's: the one PTX that is there to link is its own image.
struct Link {
  std::string image;
  bool complete = false;
  int max_registers = 0;
  std::vector<int> options;
  void** values = nullptr;  ///< the caller's until the linker is destroyed (cuda.h)
};

/// Objects by their address, so that a stale handle is an error and no crash.
template <class T>
class Handles {
 public:
  T* add(std::unique_ptr<T> object) {
    T* at = object.get();
    objects_[at] = std::move(object);
    return at;
  }
  T* find(Handle handle) const {
    auto at = objects_.find(handle);
    return at == objects_.end() ? nullptr : at->second.get();
  }
  bool remove(Handle handle) { return objects_.erase(handle) != 0; }
  void clear() { objects_.clear(); }
  const auto& all() const { return objects_; }

 private:
  std::map<Handle, std::unique_ptr<T>> objects_;
};

class State {
 public:
  /// The one of this process; never destroyed, as calls may come after main.
  static State& instance();

  std::recursive_mutex mutex;
  Device device;
  Handles<Context> contexts;
  Handles<Module> modules;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Graph> graphs;
  Handles<Executable> executables;
  Handles<Pool> pools;
  Handles<Link> links;
  Pool *default_pool = nullptr, *current_pool = nullptr;
  Context* primary = nullptr;
  unsigned primary_count = 0;
  std::map<Address, size_t> allocations;
  std::map<Address, Pool*> pooled;  ///< those of them that came out of a pool
  std::set<Address> leaving;        ///< those whose cuMemFreeAsync is queued
  std::map<void*, size_t> host_allocations;
  std::set<void*> registered;  ///< those of them that the program made itself
  size_t allocated = 0;
  Status sticky = kSuccess;  ///< of the launch that took the context; every later call fails with it
  bool initialised = false;

  Status initialise();
  /// One line to $ROOFGEN_SIM_LOG: a file, or "stderr", as is a file that cannot be written.
  void log(const std::string& line);
  /// A function that was looked up and is not there. Whoever binds all that there is asks for dozens in a row: the
  /// first one has a line at once, those after it share one.
  void absent(const char* call, Status status, const std::string& name);
  void end_of_lookups();
  /// Logs why and returns the status.
  Status refuse(const char* call, Status status, const std::string& why);

  int attribute(int attribute) const;
  /// Frees all that contexts hold: after the last is gone, or at a reset.
  void wipe();
  /// Empties the queue, and reports its launches as not run.
  void drop_queue();

  Status load(const char* call, const void* image, std::string* why, Module** out);
  Status function(const char* call, Module& module, const std::string& name, Function** out);
  Status variable(Module& module, const std::string& name, Address* out, size_t* bytes);
  void unload(Module& module);
  Status is_function(Handle handle, Function** out) const;
  /// Registers and the like, by ptxas. Nothing: it is not there, or does not take the PTX.
  std::optional<PtxasReport> compiled(const Function& function);

  Status allocate(size_t bytes, Address* out);
  Status free(Address at);
  /// Gives an allocation back, now.
  void release(Address at);
  /// Whether [at, at + bytes) is in one allocation.
  bool holds(Address at, size_t bytes) const;
  Status write(Address to, const void* from, size_t bytes);
  Status read(void* to, Address from, size_t bytes);
  Status fill(Address at, const void* pattern, size_t size, size_t count);

  /// 0, 1 and 2 are the default streams. Null: there is no such stream.
  Stream* stream(Handle handle);
  /// Into the queue, or into the graph that the stream captures.
  Status queue(const char* call, Handle stream, Work work);
  Status drain();     ///< all that is queued
  Status progress();  ///< one piece of it, and kNotReady while there is more
  Status run_op(const Op& op);

  Status execute(const LaunchOp& op);

  double now_ns = 1e9;  ///< of the device's timeline

 private:
  /// One line on stderr whatever the log: cuInit fails of a setting that makes no sense.
  Status misconfigured(const std::string& why);
  Status read_settings();
  void write_log(const std::string& line);
  double modelled_ns(const LaunchOp& op, const Counts& counts) const;
  double clock_mhz() const;

  sim::DeviceMemory memory_;
  std::deque<Work> queue_;
  Stream default_;
  std::set<Function*> functions_;
  bool strict_ = false;
  int threads_ = 1;         ///< for the CTAs of a launch
  std::string unwritable_;  ///< the log that was complained of
  std::set<std::string> absent_;
  std::vector<std::string> more_absent_;  ///< those of a row of lookups that have no line yet
  bool in_lookups_ = false;
};

/// The context current on this thread, null: none. Those below it were pushed over.
extern thread_local std::vector<Context*> current;

const char* error_name(Status status);  ///< null: no such error
const char* error_text(Status status);

enum class Needs { kNothing, kDriver, kContext };

/// Every entry point: one at a time, an error that stays where the context is lost, nothing thrown to C.
template <class F>
Status enter(const char* call, Needs needs, F&& body) {
  State& s = State::instance();
  const std::lock_guard lock(s.mutex);
  if (needs != Needs::kNothing) s.end_of_lookups();
  if (needs != Needs::kNothing && !s.initialised) return s.refuse(call, kNotInitialised, "cuInit was not called");
  if (needs == Needs::kContext) {
    if (s.sticky != kSuccess) return s.sticky;
    if (current.empty() || !current.back() || !s.contexts.find(current.back()))
      return s.refuse(call, kInvalidContext, "no context is current on this thread");
  }
  try {
    return body(s);
  } catch (const std::bad_alloc&) {
    return s.refuse(call, kOutOfMemory, "the host is out of memory");
  } catch (const std::exception& error) {
    return s.refuse(call, kUnknown, error.what());
  }
}

}  // namespace roofgen::shim

/// Exported: NAME(params) { body } with the State as `s`.
#ifndef ROOFGEN_CU
#define ROOFGEN_CU(name, needs, params, ...)                                                            \
  extern "C" __attribute__((visibility("default"))) ::roofgen::shim::Status name params;                \
  extern "C" __attribute__((visibility("default"))) ::roofgen::shim::Status name params {               \
    constexpr const char* call = #name;                                                                 \
    return ::roofgen::shim::enter(call, ::roofgen::shim::Needs::needs, [&](::roofgen::shim::State& s) { \
      (void)s;                                                                                          \
      return [&]() -> ::roofgen::shim::Status __VA_ARGS__();                                            \
    });                                                                                                 \
  }
/// Its form for per-thread default streams. It is the same one: all streams run in one order.
#define ROOFGEN_CU_PER_THREAD(name, suffix) \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) name##suffix
#endif

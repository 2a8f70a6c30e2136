// State of the simulated CUDA driver (docs/use/shim.md): one device of the catalogue with its memory and kernels in the
// PTX simulator, and one timeline.
//
// Work is queued, and runs in submission order over all streams when a call waits for it or queries it. The API allows
// this order.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "roofline/device.h"
#include "runtime/compile/log.h"
#include "runtime/cuda/driver.h"
#include "runtime/shim/layouts.h"
#include "runtime/shim/stream_races.h"
#include "runtime/sim/decode.h"
#include "runtime/sim/image.h"
#include "runtime/sim/memory.h"
#include "runtime/sim/prerequisites.h"
#include "runtime/sim/ptx_ast.h"

namespace roofgen::shim {

using cuda::Address;
using cuda::Handle;
using cuda::Status;

// CUresult; tests/shim compares the numbers with cuda.h.
inline constexpr Status kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialised = 3, kNoDevice = 100,
                        kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201, kNoBinary = 209,
                        kUnsupportedLimit = 215, kInvalidPtx = 218, kFileNotFound = 301, kOperatingSystem = 304,
                        kInvalidHandle = 400, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700,
                        kOutOfResources = 701, kLaunchTimeout = 702, kAssert = 710, kMisaligned = 716,
                        kLaunchFailed = 719, kTooLarge = 720, kNotSupported = 801, kCaptureUnsupported = 900,
                        kInvalidClusterSize = 912, kUnknown = 999;

/// The version of the driver API; its functions are in entries.def.
inline constexpr int kVersion = 13000;
inline constexpr int kMostThreads = 1024;  ///< of a CTA

struct Module;

struct Function {
  sim::Kernel kernel;
  Module* module = nullptr;
  uint32_t cluster[3] = {0, 0, 0};      ///< required; 0: not required
  bool big_clusters = false;            ///< more than 8 CTAs are allowed
  int max_dynamic_smem = 0;             ///< set by cuFuncSetAttribute; initially 48 KiB less the static shared memory
  mutable bool waited_in_vain = false;  ///< its first launch ran with waits that fail
  mutable std::optional<std::optional<PtxasReport>> report;  ///< empty until ptxas was asked
  struct {
    Dim3 block = {1, 1, 1};
    unsigned smem_bytes = 0;
    std::vector<std::byte> params;
  } next;  ///< of the next cuLaunch (api_old.cpp)
};

struct Module {
  std::string text, file;
  sim::PtxModule ptx;                    ///< points into `text`
  int max_registers = 0;                 ///< option of the load; 0: none
  std::optional<std::string> ptxas_log;  ///< empty until ptxas ran
  std::map<std::string, Address, std::less<>> variables;
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
  bool has_dependent_launches = false;                          ///< a kernel executes griddepcontrol
  std::map<std::string, std::string, std::less<>> unsupported;  ///< kernels that the simulator refuses, with the reason
};

/// A queued launch, which owns its arguments.
struct LaunchOp {
  const Function* function = nullptr;
  Launch launch;
  std::vector<std::byte> params;
  std::vector<void*> args;  ///< pointers into `params`
  bool cooperative = false;
  /// The launches before it in its stream, past the last work of another kind; null: in a graph.
  std::shared_ptr<sim::Prerequisites> prerequisites = nullptr;
};

using Op = std::function<Status()>;

inline constexpr int kJitMaxRegisters = 0;  ///< CU_JIT_MAX_REGISTERS

/// The supported values of CUgraphNodeType.
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

/// An item of a stream, or a graph node.
struct Work {
  WorkType type = WorkType::kEmpty;
  Op op;                             ///< null: no effect
  std::shared_ptr<LaunchOp> launch;  ///< of a kernel
  Handle event = nullptr;            ///< of kRecordEvent
  bool touches_host = false;         ///< when it runs
  std::vector<Area> areas = {};      ///< that it accesses, unless it is a kernel
  Handle waits = nullptr;            ///< the event of kWaitEvent
  Item item = {};                    ///< of work in the queue
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
    Handle node;  ///< in the original graph
    Work work;
  };
  std::vector<Step> steps;
  std::shared_ptr<const NodeOrder> order;  ///< of the steps; null: one after another
  unsigned long long flags = 0;
};

struct Stream {
  std::unique_ptr<Graph> capture;
  uint64_t capture_id = 0;  ///< of the capture: another one for each
  unsigned flags = 0;
  int priority = 0;
  uint32_t number = StreamOrder::kLegacyStream;
  Handle context = nullptr;
  std::shared_ptr<sim::Prerequisites> launches = nullptr;  ///< LaunchOp::prerequisites of the next launch
};
struct Event {
  bool recorded = false, timed = true;
  int pending = 0;  ///< queued records
  double time_ns = 0;
  StreamOrder::Clock clock;  ///< of the last record
};
struct Context {
  unsigned flags = 0, uses = 1;                 ///< cuCtxAttach adds one
  size_t limits[3] = {1024, 1 << 20, 8 << 20};  ///< CUlimit: stack, printf buffer, malloc heap; CUDA's defaults
};

/// A pool of the stream-ordered allocator. It keeps no freed memory.
struct Pool {
  size_t most_bytes = 0;  ///< 0: the device's
  uint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};
  size_t used = 0, used_high = 0, reserved_high = 0;
};

/// An array (cuArray3DCreate): rows one after the other.
struct Array {
  Array3dDescriptor shape;
  Address at = 0;
  sim::Image image() const;
};
/// What a texture or surface object was made of.
struct ImageObject {
  bool is_surface = false;
  Resource resource;
  TextureDescription how;
};

/// A linker (cuLinkCreate). The image is the text of its one PTX.
struct Link {
  std::string image;
  bool complete = false;
  int max_registers = 0;
  std::vector<int> options;
  void** values = nullptr;  ///< valid until the linker is destroyed (cuda.h)
};

/// Objects by address, so that a stale handle is an error instead of a crash.
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
  /// Never destroyed, as calls may come after main.
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
  Handles<Array> arrays;
  std::map<uint64_t, ImageObject> image_objects;  ///< by the address of the image's description
  Pool *default_pool = nullptr, *current_pool = nullptr;
  Context* primary = nullptr;
  unsigned primary_count = 0;
  std::map<Address, size_t> allocations;
  std::map<Address, Pool*> pooled;  ///< allocations from pools
  std::set<Address> leaving;        ///< allocations with a queued cuMemFreeAsync
  std::map<void*, size_t> host_allocations;
  std::set<void*> registered;             ///< host memory of cuMemHostRegister
  std::set<Address> managed;              ///< allocations that the host uses under the same address
  std::map<Address, size_t> shared_host;  ///< page-locked memory that kernels have got a pointer to
  size_t allocated = 0;
  Status sticky = kSuccess;  ///< error of a failed launch; every later call returns it
  bool initialised = false;

  Status initialise();
  /// Writes a line to $ROOFGEN_SIM_LOG, a file or "stderr"; to stderr if the file cannot be written.
  void log(const std::string& line);
  /// Logs a lookup of a missing function. Bindings look up dozens in a series: the first one gets a line at once, the
  /// others share one line.
  void absent(const char* call, Status status, const std::string& name);
  void end_of_lookups();
  /// Logs why and returns the status.
  Status refuse(const char* call, Status status, const std::string& why);
  /// The same with the name of an error of the runtime (cudart/).
  Status refuse(const char* call, Status status, const char* name, const std::string& why);

  int attribute(int attribute) const;
  /// Frees all objects and memory: after the last context is destroyed, or at a reset.
  void wipe();
  /// False in a child of the process that queued the work.
  bool queued_by_this_process() const { return queued_by_ == getpid(); }
  /// At exit: runs the queue up to the first work that touches host memory.
  void run_left_over();
  /// Empties the queue, and reports its launches as not run.
  void drop_queue();

  Status load(const char* call, const void* image, std::string* why, Module** out);
  Status function(const char* call, Module& module, const std::string& name, Function** out);
  /// `init`: its initial bytes, where they hold addresses; null: as the PTX has them.
  Status variable(Module& module, const std::string& name, Address* out, size_t* bytes,
                  const std::vector<uint8_t>* init = nullptr);
  /// The initial bytes of `v`, with the addresses of the functions and variables that they name.
  std::vector<uint8_t> initial_value(Module& module, const sim::PtxVar& v);
  void unload(Module& module);
  Function* function_of(Handle handle) const;  ///< null if the function does not exist
  /// ptxas's report; empty if there is no ptxas or it refuses the PTX.
  const std::optional<PtxasReport>& compiled(const Function& function);
  /// Threads of the largest CTA, by the PTX and by the registers if they are known.
  int most_threads_of(const Function& function);

  /// `at`: the address; 0: any.
  Status allocate(size_t bytes, Address* out, Address at = 0);
  /// Managed memory: the host has pages at the simulated address. Both sides are made equal around the queued work.
  Status allocate_managed(size_t bytes, Address* out);
  Status free(Address at);
  /// Kernels may use page-locked memory by its host address: the allocations that a launch's arguments point to are
  /// made equal on both sides from now on, like managed memory.
  void share_page_locked(std::span<const std::byte> arguments);
  /// Before the host frees page-locked memory.
  Status stop_sharing(const void* host);
  /// Frees an allocation without waiting.
  void release(Address at);
  /// Whether [at, at + bytes) is in one allocation.
  bool holds(Address at, size_t bytes) const;
  Status write(Address to, const void* from, size_t bytes);
  Status read(void* to, Address from, size_t bytes);
  Status fill(Address at, const void* pattern, size_t size, size_t count);

  /// 0, 1 and 2 are the default streams. Null if the stream does not exist.
  Stream* stream(Handle handle);
  /// The number of a stream that exists in `races`. The third default stream is one for each thread.
  uint32_t number_of(Handle handle);
  /// Appends to the queue, or to the graph that the stream captures. `item`: of the graph that the work is a node of.
  Status queue(const char* call, Handle stream, Work work, const Item* item = nullptr);
  /// Checks work against what ran before, as it begins.
  void look_for_races(const Item& item, Doer doer, const std::vector<Area>& areas);
  void look_for_races(const Item& item, Doer doer, Footprint footprint);
  Status drain();        ///< runs all queued work
  Status synchronise();  ///< the host waits for the device
  /// Runs all queued work, because the host waits for a stream or an event.
  Status drain_for(uint32_t stream);
  Status drain_for(const StreamOrder::Clock& event);
  Status progress();  ///< runs one item; kNotReady if there are more
  Status run_op(const Op& op);
  Status run_next();

  Status execute(const LaunchOp& op);

  double now_ns = 1e9;  ///< time of the device's timeline
  StreamRaces races;
  unsigned streams_made = 0;

 private:
  /// cuInit fails because of an invalid setting: writes a line to stderr as well as to the log.
  Status misconfigured(const std::string& why);
  void take_from_host();  ///< managed memory
  void give_to_host();
  std::string decode(Module& module);
  const std::string& ptxas_log(Module& module);
  /// The first error of ptxas; empty if there is none or no ptxas.
  std::string ptxas_error(Module& module);
  Status read_settings();
  void write_log(const std::string& line);
  double modelled_ns(const LaunchOp& op, const Counts& counts) const;
  double clock_mhz() const;

  sim::DeviceMemory memory_;
  std::deque<Work> queue_;
  const Item* running_ = nullptr;
  uint64_t queues_begun_ = 0;
  pid_t queued_by_ = 0;  ///< a child of this process is not to run the queue at its exit
  Stream default_;
  std::set<Function*> functions_;
  bool strict_ = false;       ///< undefined behaviour fails a launch
  bool keeps_going_ = false;  ///< no finding fails a launch
  bool allows_unfenced_ = false;
  int threads_ = 1;         ///< cores for the CTAs of a launch
  std::string unwritable_;  ///< the log file that could not be written
  std::set<std::string> absent_;
  std::vector<std::string> more_absent_;  ///< lookups of the series that are not logged yet
  bool in_lookups_ = false;
};

/// The stack of current contexts of this thread; null entries mean no context.
extern thread_local std::vector<Context*> current;

const char* error_name(Status status);  ///< null for unknown errors
const char* error_text(Status status);

enum class Needs { kNothing, kDriver, kContext };

/// Wraps every entry point: takes the lock, returns the sticky error, and stops exceptions.
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

/// In a call named `call`, with the State as `s`: logs why, in fmt's format, and returns the status unless the
/// condition holds.
#define CHECK(condition, status, ...) \
  if (!(condition)) return s.refuse(call, status, fmt::format(__VA_ARGS__))

/// Defines and exports NAME(params) { body }, with the State as `s`.
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
/// The same with the form for per-thread default streams, an alias: all streams run in one order.
#define ROOFGEN_CU_PTSZ(name, ...) \
  ROOFGEN_CU(name, __VA_ARGS__)    \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) name##_ptsz;
#define ROOFGEN_CU_PTDS(name, ...) \
  ROOFGEN_CU(name, __VA_ARGS__)    \
  extern "C" __attribute__((visibility("default"), alias(#name))) decltype(name) name##_ptds;
#endif

#include "runtime/shim/state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "base/paths.h"
#include "base/suggest.h"
#include "runtime/shim/report.h"

namespace roofgen::shim {

thread_local std::vector<Context*> current;

State& State::instance() {
  static State* state = new State;
  return *state;
}

namespace {

constexpr int kMostSimulatorThreads = 256;

/// The parts of "a:b:c".
std::vector<std::string> directories(const std::string& paths) {
  std::vector<std::string> out;
  std::istringstream in(paths);
  for (std::string path; std::getline(in, path, ':');) out.push_back(path);
  return out;
}

std::string stamped(const std::string& line) { return fmt::format("roofgen-sim[{}]: {}\n", getpid(), line); }

}  // namespace

void State::write_log(const std::string& line) {
  const std::string to = environment("ROOFGEN_SIM_LOG");
  if (to.empty()) return;
  std::FILE* file = to == "stderr" ? stderr : std::fopen(to.c_str(), "ae");
  if (!file && unwritable_ != to) {
    unwritable_ = to;
    std::fputs(stamped(fmt::format("ROOFGEN_SIM_LOG={}: {}; the log goes to stderr", to, std::strerror(errno))).c_str(),
               stderr);
  }
  if (!file) file = stderr;
  const std::string whole = stamped(line);
  std::fwrite(whole.data(), 1, whole.size(), file);  // one write per line, as processes share the file
  if (file != stderr) std::fclose(file);
}

void State::log(const std::string& line) {
  end_of_lookups();
  write_log(line);
}

void State::absent(const char* call, Status status, const std::string& name) {
  if (!absent_.insert(name).second) return;
  if (absent_.size() == 1) std::atexit([] { instance().end_of_lookups(); });
  const std::string why = name + ": no such function here";
  if (in_lookups_) {
    Report::instance().failed(call, status, error_name(status), why);
    more_absent_.push_back(name);
  } else {
    refuse(call, status, why);
  }
  in_lookups_ = true;
}

void State::end_of_lookups() {
  in_lookups_ = false;
  if (more_absent_.empty()) return;
  write_log(fmt::format("cuGetProcAddress: {} other functions that do not exist here: {}", more_absent_.size(),
                        fmt::join(more_absent_, ", ")));
  more_absent_.clear();
}

Status State::refuse(const char* call, Status status, const std::string& why) {
  const char* name = error_name(status);
  return refuse(call, status, name ? name : "CUDA_ERROR", why);
}

Status State::refuse(const char* call, Status status, const char* name, const std::string& why) {
  Report::instance().failed(call, status, name, why);
  log(fmt::format("{}: {} ({}): {}", call, name, status, why));
  return status;
}

Status State::misconfigured(const std::string& why) {
  const std::string to = environment("ROOFGEN_SIM_LOG");
  if (to != "stderr") std::fputs(stamped("cuInit: " + why).c_str(), stderr);
  return refuse("cuInit", kNoDevice, why);
}

Status State::read_settings() {
  const std::string asked = environment("ROOFGEN_SIM_DEVICE"), name = asked.empty() ? "h200-sxm" : asked;
  const DataFiles files(directories(environment("ROOFGEN_SIM_DATA_DIRS")));
  const std::vector<std::string> all = device_names(files);
  if (std::find(all.begin(), all.end(), name) == all.end()) {
    std::vector<std::string> usable;
    for (const std::string& known : all)
      if (auto d = load_device(files, known); d && tunable(*d)) usable.push_back(known);
    return misconfigured(fmt::format("ROOFGEN_SIM_DEVICE: unknown device \"{}\"{}", name, did_you_mean(name, usable)));
  }
  auto loaded = load_device(files, name);
  if (loaded)
    if (auto fits = tunable(*loaded); !fits) loaded = fits.error();
  if (!loaded) return misconfigured("ROOFGEN_SIM_DEVICE: " + loaded.error().message);
  for (const auto& [variable, setting] : {std::pair{"ROOFGEN_SIM_STRICT", &strict_},
                                          {"ROOFGEN_SIM_KEEP_GOING", &keeps_going_},
                                          {"ROOFGEN_SIM_ALLOW_UNFENCED", &allows_unfenced_}}) {
    const std::string value = environment(variable);
    if (!value.empty() && value != "0" && value != "1")
      return misconfigured(fmt::format("{}={}: 0 or 1 was expected", variable, value));
    *setting = value == "1";
  }
  if (strict_ && keeps_going_)
    return misconfigured("ROOFGEN_SIM_STRICT=1 and ROOFGEN_SIM_KEEP_GOING=1 exclude each other");
  const std::string threads = environment("ROOFGEN_SIM_THREADS");
  int count = static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1u, static_cast<unsigned>(kMostSimulatorThreads)));
  if (!threads.empty()) {
    const auto [end, error] = std::from_chars(threads.data(), threads.data() + threads.size(), count);
    if (error != std::errc() || *end || count < 1 || count > kMostSimulatorThreads)
      return misconfigured(fmt::format("ROOFGEN_SIM_THREADS={}: a number of cores from 1 to {} was expected", threads,
                                       kMostSimulatorThreads));
  }
  threads_ = count;
  device = std::move(*loaded);
  return kSuccess;
}

Status State::initialise() {
  if (initialised) return kSuccess;
  if (Status status = read_settings(); status != kSuccess) return status;
  if (auto memory = memory_.initialise(); !memory) return refuse("cuInit", kOutOfMemory, memory.error().message);
  default_pool = current_pool = pools.add(std::make_unique<Pool>());
  initialised = true;
  Report::instance().initialised(device.name, device.title);
  log(fmt::format("a simulated {}: no GPU is used, and times are modelled", device.title));
  return kSuccess;
}

/// CUdevice_attribute by number; 0 for features that the device does not have.
int State::attribute(int attribute) const {
  const auto cell = [&](const char* name) { return device.has(name) ? static_cast<int>(device.integer(name)) : 0; };
  const int arch = cell("arch");
  switch (attribute) {
    case 1: return cell("max_threads_per_block");
    case 2:
    case 3: return cell("max_threads_per_block");
    case 4: return 64;
    case 5: return 0x7fffffff;
    case 6:
    case 7: return 65535;
    case 8: return 48 * 1024;
    case 9: return 64 * 1024;
    case 10: return 32;
    case 12:
    case 82: return cell("regs_per_sm");
    case 11: return 0x7fffffff;
    case 13: return static_cast<int>(1e3 * device.at("clock_fp32_mhz"));
    case 15: return 1;  // GPU_OVERLAP
    case 16: return cell("sms");
    case 19: return 1;  // CAN_MAP_HOST_MEMORY
    case 31: return 1;
    case 36:
      // Drivers report the clock of double data rate memory.
      return device.has("dram_bus_bits")
                 ? static_cast<int>(device.at("dram_gb_s") * 1e6 / (2 * device.at("dram_bus_bits") / 8))
                 : 0;
    case 37: return cell("dram_bus_bits");
    case 38: return cell("l2_bytes");
    case 39: return cell("max_threads_per_sm");
    case 40: return 1;
    case 41: return 1;
    case 75: return arch / 10;
    case 76: return arch % 10;
    case 79:
    case 80: return 1;
    case 81: return cell("smem_per_sm");
    case 83: return 1;  // MANAGED_MEMORY
    case 95: return 1;  // COOPERATIVE_LAUNCH
    case 97: return cell("smem_per_block");
    case 106: return cell("max_ctas_per_sm");
    case 111: return cell("smem_reserved_per_block");
    case 115: return 1;           // MEMORY_POOLS_SUPPORTED
    case 120: return arch >= 90;  // CLUSTER_LAUNCH
    case 127: return arch >= 90;  // TENSOR_MAP_ACCESS_SUPPORTED
    default: return 0;
  }
}

void State::wipe() {
  drop_queue();
  default_.capture.reset();
  executables.clear();
  links.clear();
  arrays.clear();
  image_objects.clear();
  graphs.clear();
  events.clear();
  races.order().host_waits_for_all();
  races.forget_all();
  for (const auto& [handle, stream] : streams.all()) races.close(stream->number);
  streams.clear();
  streams_made = 0;
  for (const auto& [handle, module] : modules.all()) unload(*module);
  modules.clear();
  while (!allocations.empty()) release(allocations.begin()->first);
  for (const auto& [at, bytes] : shared_host) memory_.release(at);
  shared_host.clear();
  for (const auto& [handle, pool] : pools.all()) pool->used = 0;
  allocated = 0;
  sticky = kSuccess;
}

// ---- Memory --------------------------------------------------------------------------------------------

namespace {
std::byte* on_host(Address at) { return reinterpret_cast<std::byte*>(at); }
/// The host's pages for so many bytes, with the guards on both sides.
size_t mapped_bytes(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page + 2 * sim::kGuardBytes;
}
}  // namespace

Status State::allocate(size_t bytes, Address* out, Address at) {
  const auto total = static_cast<size_t>(device.at("memory_bytes"));
  if (bytes == 0) return kInvalidValue;
  if (bytes > total - allocated) return kOutOfMemory;
  auto made = memory_.allocate(bytes, "allocation", nullptr, at);
  if (!made) return kOutOfMemory;
  allocations[*made] = bytes;
  allocated += bytes;
  Report::instance().allocated(allocated);
  *out = *made;
  return kSuccess;
}

Status State::allocate_managed(size_t bytes, Address* out) {
  if (bytes > static_cast<size_t>(device.at("memory_bytes"))) return kOutOfMemory;
  const size_t size = mapped_bytes(bytes);
  void* const pages = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return kOutOfMemory;
  std::byte* const at = static_cast<std::byte*>(pages) + sim::kGuardBytes;
  Status status = kOutOfMemory;
  if (mprotect(at, size - 2 * sim::kGuardBytes, PROT_READ | PROT_WRITE) == 0)
    status = allocate(bytes, out, reinterpret_cast<uintptr_t>(at));
  if (status != kSuccess) return munmap(pages, size), status;
  managed.insert(*out);
  const uint8_t zero = 0;
  return fill(*out, &zero, 1, bytes);
}

void State::take_from_host() {
  std::vector<std::byte> known(managed.empty() && shared_host.empty() ? 0 : size_t{1} << 16);
  const auto take = [&](Address base, size_t all) {
    for (size_t done = 0; done < all; done += known.size()) {
      const Address at = base + done;
      const size_t bytes = std::min(known.size(), all - done);
      if (read(known.data(), at, bytes) == kSuccess && std::memcmp(known.data(), on_host(at), bytes) != 0)
        write(at, on_host(at), bytes);
    }
  };
  for (const Address base : managed) take(base, allocations.at(base));
  for (const auto& [base, bytes] : shared_host) take(base, bytes);
}

void State::give_to_host() {
  for (const Address at : managed) read(on_host(at), at, allocations.at(at));
  for (const auto& [at, bytes] : shared_host) read(on_host(at), at, bytes);
}

void State::share_page_locked(std::span<const std::byte> arguments) {
  for (size_t at = 0; at + sizeof(Address) <= arguments.size() && !host_allocations.empty(); at += sizeof(Address)) {
    Address pointer;
    std::memcpy(&pointer, arguments.data() + at, sizeof pointer);
    auto after = host_allocations.upper_bound(on_host(pointer));
    if (after == host_allocations.begin()) continue;
    const auto& [host, bytes] = *std::prev(after);
    const auto base = reinterpret_cast<uintptr_t>(host);
    // The simulator counts lines from the begin of an allocation, and has other uses for low addresses.
    if (pointer - base >= bytes || base % sim::kLineBytes || base < sim::kGlobalBase || shared_host.count(base))
      continue;
    const auto list = memory_.buffers();
    if (sim::DeviceMemory::find(*list, base) || !memory_.allocate(bytes, "page-locked memory", nullptr, base)) continue;
    shared_host[base] = bytes;
    write(base, host, bytes);
  }
}

Status State::stop_sharing(const void* host) {
  const auto at = shared_host.find(reinterpret_cast<uintptr_t>(host));
  if (at == shared_host.end()) return kSuccess;
  if (Status status = synchronise(); status != kSuccess) return status;
  memory_.release(at->first);
  shared_host.erase(at);
  return kSuccess;
}

Status State::free(Address at) {
  if (!allocations.count(at) || leaving.count(at)) return kInvalidValue;
  if (Status status = synchronise(); status != kSuccess) return status;  // cuMemFree waits for the device
  release(at);
  return kSuccess;
}

void State::release(Address at) {
  const auto found = allocations.find(at);
  allocated -= found->second;
  if (managed.erase(at)) munmap(on_host(at) - sim::kGuardBytes, mapped_bytes(found->second));
  if (const auto from = pooled.find(at); from != pooled.end()) {
    from->second->used -= found->second;
    pooled.erase(from);
  }
  races.forget(at, found->second);
  allocations.erase(found);
  leaving.erase(at);
  memory_.release(at);
}

bool State::holds(Address at, size_t bytes) const {
  auto list = memory_.buffers();
  const sim::Buffer* b = sim::DeviceMemory::find(*list, at);
  return b && bytes <= b->bytes - (at - b->base);
}

Status State::write(Address to, const void* from, size_t bytes) {
  return memory_.write(to, {static_cast<const std::byte*>(from), bytes}) ? kSuccess : kInvalidValue;
}

Status State::read(void* to, Address from, size_t bytes) {
  return memory_.read(from, {static_cast<std::byte*>(to), bytes}, nullptr) ? kSuccess : kInvalidValue;
}

Status State::fill(Address at, const void* pattern, size_t size, size_t count) {
  std::vector<std::byte> part(std::min<size_t>(count, 1 << 16) * size);
  for (size_t i = 0; i < part.size(); i += size) std::memcpy(part.data() + i, pattern, size);
  for (size_t left = size * count; left;) {
    const size_t n = std::min(left, part.size());
    if (Status status = write(at, part.data(), n); status != kSuccess) return status;
    at += n;
    left -= n;
  }
  return kSuccess;
}

// ---- The queue -----------------------------------------------------------------------------------------

Stream* State::stream(Handle handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return &default_;
  return streams.find(handle);
}

uint32_t State::number_of(Handle handle) {
  constexpr uintptr_t kPerThread = 2;
  thread_local std::optional<uint32_t> own;
  if (reinterpret_cast<uintptr_t>(handle) != kPerThread) return stream(handle)->number;
  if (!own) own = races.open(StreamOrder::Kind::kBlocking, "a default stream of a thread");
  return *own;
}

Status State::queue(const char* call, Handle handle, Work work, const Item* item) {
  Stream* on = stream(handle);
  if (!on) return refuse(call, kInvalidHandle, "no such stream");
  if (on->capture) {
    auto& nodes = on->capture->nodes;
    on->capture->add(std::move(work), nodes.empty() ? std::vector<Node*>() : std::vector<Node*>{nodes.back().get()});
    return kSuccess;
  }
  work.item = item ? *item : races.submit(number_of(handle));
  if (Event* event = events.find(work.event)) {
    event->recorded = true;
    ++event->pending;
    event->clock = work.item.clock;
  }
  if (!work.launch || !on->launches) on->launches = std::make_shared<sim::Prerequisites>();
  if (work.launch) work.launch->prerequisites = on->launches;
  // Handlers run in reverse order: at exit before the destructors of what the launches until then have made.
  if (queue_.empty() && std::has_single_bit(++queues_begun_)) std::atexit([] { instance().run_left_over(); });
  // The program may wait for a host function without a driver call, so it runs at once.
  const bool at_once = work.type == WorkType::kHost;
  // It may tell the program that what was before it has ended.
  if (at_once && !item) races.order().host_waits(work.item.at.stream);
  races.enqueue(work.item);
  queue_.push_back(std::move(work));
  queued_by_ = getpid();
  if (at_once) drain();
  return kSuccess;
}

/// A GPU runs what was queued although the program ends, as a rule. Host memory may be gone: work that touches it does
/// not run, nor what comes after.
void State::run_left_over() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock() || !queued_by_this_process()) return;
  while (!queue_.empty() && sticky == kSuccess && queue_.front().type != WorkType::kHost &&
         !queue_.front().touches_host)
    run_next();
}

void State::drop_queue() {
  for (const Work& work : queue_) {
    // Its module may have been unloaded.
    if (work.launch && function_of(const_cast<Function*>(work.launch->function)))
      Report::instance().not_run(work.launch->function->kernel.name);
  }
  queue_.clear();
  races.drop_queue();
}

namespace {
/// At the end of the process. Another thread may be inside a call: then the queue is left alone.
[[gnu::destructor]] void drop_queue_at_exit() {
  State& s = State::instance();
  const std::unique_lock lock(s.mutex, std::try_to_lock);
  if (lock.owns_lock() && s.queued_by_this_process()) s.drop_queue();
}
}  // namespace

Status State::run_op(const Op& op) {
  if (sticky != kSuccess) return sticky;
  const Status status = op ? op() : kSuccess;
  if (status != kSuccess) {
    sticky = status;
    queue_.clear();
    races.drop_queue();
  }
  return status;
}

Status State::run_next() {
  const Work work = std::move(queue_.front());
  queue_.pop_front();
  races.dequeue(work.item);
  if (work.type == WorkType::kHost) give_to_host();
  if (!work.areas.empty() && sticky == kSuccess) {
    const bool frees = work.type == WorkType::kEmpty;
    look_for_races(work.item,
                   frees                            ? Doer{"cuMemFreeAsync", "", false, "frees"}
                   : work.type == WorkType::kMemset ? Doer{"a memset", ""}
                                                    : Doer{"a copy", ""},
                   work.areas);
  }
  running_ = &work.item;
  const Status status = run_op(work.op);
  running_ = nullptr;
  if (work.type == WorkType::kHost) take_from_host();
  return status;
}

Status State::drain() {
  take_from_host();
  const bool works = !queue_.empty();
  while (!queue_.empty() && sticky == kSuccess) run_next();
  if (works) give_to_host();
  races.forget_known();
  return sticky;
}

Status State::synchronise() {
  races.order().host_waits_for_all();
  return drain();
}

Status State::drain_for(uint32_t stream) {
  races.order().host_waits(stream);
  return drain();
}

Status State::drain_for(const StreamOrder::Clock& event) {
  races.order().host_waits(event);
  return drain();
}

void State::look_for_races(const Item& item, Doer doer, const std::vector<Area>& areas) {
  if (!races.follows(item)) return;
  Footprint footprint;
  for (const Area& area : areas) footprint.add(area);
  look_for_races(item, std::move(doer), std::move(footprint));
}

void State::look_for_races(const Item& item, Doer doer, Footprint footprint) {
  const auto describe = [&](uint64_t address) {
    const auto list = memory_.buffers();
    const sim::Buffer* b = sim::DeviceMemory::find(*list, address);
    if (!b) return std::string("memory that was freed");
    return allocations.count(b->base) ? fmt::format("byte {} of an allocation of {} bytes", address - b->base, b->bytes)
                                      : fmt::format("{}[byte {}]", b->label, address - b->base);
  };
  for (const Finding& f : races.ran(item, std::move(doer), std::move(footprint), describe)) {
    log(fmt::format("finding {}: {}", f.kind, f.message));
    Report::instance().found(f, "");
  }
  if (races.overflows())
    log("races between streams: the host waits for too little of the work; from now on the oldest work is left out");
}

Status State::progress() {
  if (sticky != kSuccess) return sticky;
  if (queue_.empty()) return kSuccess;
  take_from_host();
  const Status status = run_next();
  give_to_host();
  if (status != kSuccess) return status;
  return queue_.empty() ? kSuccess : kNotReady;
}

}  // namespace roofgen::shim

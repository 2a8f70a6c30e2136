#include "bench/peers/stream_timer.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/helpers.h"

namespace roofgen::peers {
namespace {

constexpr uint64_t kGateNs = 100'000, kMostGateNs = 100'000'000;
constexpr int kMostGates = 8;
// Two halves of at least twice L2: one is written; reading the other evicts its dirty lines, so that no sample pays for
// their write-back.
constexpr uint64_t kSweptL2 = 2;
constexpr unsigned kSweepThreads = 256, kSweepCtasPerSm = 8;

}  // namespace

Result<std::unique_ptr<Gpu>> Gpu::open(int ordinal) {
  auto gpu = std::unique_ptr<Gpu>(new Gpu);
  ROOFGEN_CHECK(gpu->start(ordinal));
  return gpu;
}

Result<void> Gpu::start(int ordinal) {
  ROOFGEN_TRY(driver_, cuda::Driver::open(cuda::default_library()));
  const cuda::Driver& cu = *driver_;
  int count = 0;
  ROOFGEN_CHECK(cu.check(cu.device_count(&count), "counting GPUs"));
  if (count == 0) return Error{Exit::kUnavailable, "the CUDA driver finds no GPU"};
  if (ordinal < 0 || ordinal >= count)
    return Error{Exit::kUsage, fmt::format("there is no GPU {}; this machine has {}, counted from 0", ordinal, count)};
  cuda::Device device = 0;
  ROOFGEN_CHECK(cu.check(cu.device(&device, ordinal), "opening the GPU"));
  char text[256] = {};
  ROOFGEN_CHECK(cu.check(cu.device_name(text, sizeof text - 1, device), "asking for the GPU's name"));
  name = text;
  // CUdevice_attribute 16: multiprocessors.
  int major = 0, minor = 0, l2 = 0;
  cu.device_attribute(&sms, 16, device);
  cu.device_attribute(&major, cuda::kAttributeMajor, device);
  cu.device_attribute(&minor, cuda::kAttributeMinor, device);
  cu.device_attribute(&l2, cuda::kAttributeL2Bytes, device);
  cc = 10 * major + minor;
  l2_bytes = static_cast<uint64_t>(std::max(l2, 0));
  size_t memory = 0;
  if (cu.total_memory(&memory, device) == 0) memory_bytes = memory;
  if (cuda::Uuid id; cu.device_uuid && cu.device_uuid(&id, device) == 0) uuid = cuda::uuid_text(id);
  std::string bus;
  if (char bus_text[64] = {}; cu.device_bus_id && cu.device_bus_id(bus_text, sizeof bus_text, device) == 0)
    bus = bus_text;
  nvml.open(uuid, bus);
  driver_version = nvml.driver();
  // cuBLASLt uses the primary context too.
  cuda::Handle context = nullptr;
  ROOFGEN_CHECK(cu.check(cu.retain_context(&context, device), "creating a context"));
  ROOFGEN_CHECK(cu.check(cu.set_context(context), "selecting the GPU"));
  ROOFGEN_CHECK(cu.check(cu.create_stream(&stream_, cuda::kStreamNonBlocking), "creating a stream"));
  ROOFGEN_CHECK(cu.check(cu.create_event(&start_, 0), "creating an event"));
  ROOFGEN_CHECK(cu.check(cu.create_event(&stop_, 0), "creating an event"));
  ROOFGEN_TRY(gate_, load("", std::string(cuda::helper_ptx()), "roofgen_gate", 0));
  ROOFGEN_TRY(sweep_, load("", std::string(cuda::helper_ptx()), "roofgen_sweep", 0));
  scratch_bytes_ = 2 * kSweptL2 * std::max<uint64_t>(l2_bytes, uint64_t{32} << 20) / 32 * 32;
  ROOFGEN_TRY(scratch_, allocate(scratch_bytes_, "emptying L2"));
  ROOFGEN_CHECK(cu.check(cu.fill(scratch_, 0, scratch_bytes_, stream_), "clearing memory"));
  return wait("starting");
}

Result<uint64_t> Gpu::allocate(uint64_t bytes, const std::string& what) {
  cuda::Address at = 0;
  ROOFGEN_CHECK(driver_->check(driver_->allocate(&at, std::max<uint64_t>(bytes, 1)),
                               fmt::format("allocating {} bytes of GPU memory for {}", bytes, what)));
  return at;
}
Result<void> Gpu::upload(uint64_t to, const void* from, size_t bytes) {
  ROOFGEN_CHECK(driver_->check(driver_->copy_in(to, from, bytes, stream_), "copying to the GPU"));
  return wait("copying to the GPU");
}
Result<void> Gpu::download(void* to, uint64_t from, size_t bytes) {
  ROOFGEN_CHECK(driver_->check(driver_->copy_out(to, from, bytes, stream_), "copying from the GPU"));
  return wait("copying from the GPU");
}
Result<void> Gpu::wait(const std::string& doing) { return driver_->check(driver_->wait_stream(stream_), doing); }

Result<cuda::Handle> Gpu::load(const std::string& cubin, const std::string& ptx, const std::string& entry,
                               uint32_t smem_bytes) {
  cuda::Handle module = nullptr, function = nullptr;
  cuda::Status status =
      cubin.empty() ? cuda::kInvalidImage : driver_->load_module(&module, cubin.data(), 0, nullptr, nullptr);
  if ((status == cuda::kInvalidImage || status == cuda::kNoBinaryForGpu) && !ptx.empty())
    status = driver_->load_module(&module, ptx.c_str(), 0, nullptr, nullptr);
  ROOFGEN_CHECK(driver_->check(status, "loading kernel " + entry));
  ROOFGEN_CHECK(driver_->check(driver_->function(&function, module, entry.c_str()), "finding kernel " + entry));
  ROOFGEN_CHECK(driver_->check(
      driver_->set_function_attribute(function, cuda::kFunctionMaxDynamicSmem, static_cast<int>(smem_bytes)),
      "shared memory of " + entry));
  return function;
}

Result<void> Gpu::flush() {
  const auto ctas = static_cast<unsigned>(std::max(sms, 1)) * kSweepCtasPerSm;
  uint64_t base = scratch_, words = scratch_bytes_ / 2 / 16;
  for (uint32_t write : {1u, 0u}) {
    void* arguments[] = {&base, &words, &write};
    ROOFGEN_CHECK(driver_->check(
        driver_->launch(sweep_, ctas, 1, 1, kSweepThreads, 1, 1, 0, stream_, arguments, nullptr), "emptying L2"));
    base += scratch_bytes_ / 2;
  }
  return {};
}

Result<double> Gpu::time(const Queue& queue, bool cold) {
  const cuda::Driver& cu = *driver_;
  for (int late = 0; late < kMostGates; ++late) {
    if (cold) {
      ROOFGEN_CHECK(flush());
    } else {
      ROOFGEN_CHECK(queue());
    }
    uint64_t gate_ns = std::min(kGateNs * gate_factor_.of_attempt(late), kMostGateNs);
    void* arguments[] = {&gate_ns};
    ROOFGEN_CHECK(cu.check(cu.launch(gate_, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr), "holding the stream"));
    ROOFGEN_CHECK(cu.check(cu.record_event(start_, stream_), "recording an event"));
    ROOFGEN_CHECK(queue());
    ROOFGEN_CHECK(cu.check(cu.record_event(stop_, stream_), "recording an event"));
    // While the gate is closed nothing has run: all was queued in time.
    const bool in_time = cu.query_event(start_) == cuda::kNotReady;
    ROOFGEN_CHECK(wait("running"));
    float ms = 0;
    ROOFGEN_CHECK(cu.check(cu.elapsed_ms(&ms, start_, stop_), "timing"));
    if (!in_time) continue;
    gate_factor_.ended(late);
    return double{ms} * 1e6;
  }
  gate_factor_.ended(kMostGates);
  return Error{Exit::kFailed, "the host could not queue the launches while the stream was held"};
}

}  // namespace roofgen::peers

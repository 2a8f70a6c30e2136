// The GPU worker: it reads requests from standard input, writes replies to the same socket, and has one executor on one
// GPU. It is a separate process because a fault destroys the context and a hang blocks the process.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "base/child.h"
#include "base/frame.h"
#include "runtime/cuda/executor.h"
#include "runtime/cuda/staging.h"
#include "runtime/cuda/wire.h"

namespace roofgen {
namespace {

using namespace wire;

class Server {
 public:
  /// Returns false when the client has ended or sends an invalid request.
  bool serve(const Fields& request) {
    if (request.size() != 2) return false;
    Unpacker in(request[1]);
    const std::string& op = request[0];
    if (op == kOpen) return open(in);
    if (!gpu_) return false;
    if (op == kAllocate) return allocate(in);
    if (op == kRelease) return release(in);
    if (op == kWrite) return write(in);
    if (op == kRead) return read(in);
    if (op == kPoison) return poison(in);
    if (op == kLoad) return load(in);
    if (op == kUnload) return unload(in);
    if (op == kRun) return run(in);
    if (op == kState) return state(in);
    if (op == kTime) return time(in);
    return false;
  }

 private:
  bool reply(const char* kind, Packer& out) { return write_frame(kWorkerSocket, {kind, out.take()}); }
  bool ok() {
    Packer none;
    return reply(kOk, none);
  }
  bool fail(const Error& error, Fault fault) {
    Packer out;
    out.put(static_cast<int>(fault));
    pack(out, error);
    return reply(kError, out);
  }
  bool fail(const Error& error) { return fail(error, gpu_->fault()); }
  bool done(const Result<void>& result) { return result ? ok() : fail(result.error()); }

  bool open(Unpacker& in) {
    int ordinal = 0;
    in.get(ordinal);
    if (!in.done() || gpu_) return false;
    if (auto attached = staging_.attach(kWorkerMemory); !attached) return fail(attached.error(), Fault::kRefused);
    auto made = cuda::make_executor(cuda::default_library(), ordinal);
    if (!made) return fail(made.error(), Fault::kRefused);
    gpu_ = std::move(*made);
    Packer out;
    out.put(gpu_->origin() == Origin::kSimulated);
    pack(out, gpu_->info());
    pack(out, gpu_->identity());
    auto state = gpu_->state();
    pack(out, state ? *state : GpuState{});
    return reply(kOk, out);
  }

  bool allocate(Unpacker& in) {
    uint64_t bytes = 0;
    std::string label;
    bool input = false;
    in.get(bytes).get(label).get(input);
    if (!in.done()) return false;
    Fill fill;
    bool broken = false;
    if (input)
      fill = [&](uint64_t offset, std::span<std::byte> part) {
        Packer want;
        want.put(offset).put(uint64_t{part.size()});
        if (broken || part.size() > staging_.bytes().size() || !reply(kWant, want)) return void(broken = true);
        if (!read_frame(kWorkerSocket)) return void(broken = true);
        std::memcpy(part.data(), staging_.bytes().data(), part.size());
      };
    auto made = gpu_->allocate(bytes, std::move(label), fill);
    if (broken) return false;
    if (!made) return fail(made.error());
    Packer out;
    out.put(made->address);
    return reply(kOk, out);
  }

  bool release(Unpacker& in) {
    DevicePtr ptr;
    in.get(ptr.address);
    if (!in.done()) return false;
    gpu_->release(ptr);
    return ok();
  }

  bool write(Unpacker& in) {
    DevicePtr to;
    std::string bytes;
    in.get(to.address).get(bytes);
    return in.done() && done(gpu_->write(to, std::as_bytes(std::span(bytes))));
  }

  bool read(Unpacker& in) {
    DevicePtr from;
    uint64_t size = 0;
    bool wants_written = false;
    in.get(from.address).get(size).get(wants_written);
    if (!in.done() || size > kMostBytes) return false;
    std::string bytes(size, '\0');
    std::vector<bool> written;
    auto got = gpu_->read(from, std::as_writable_bytes(std::span(bytes)), wants_written ? &written : nullptr);
    if (!got) return fail(got.error());
    std::string map(written.size(), '\0');
    for (size_t i = 0; i < written.size(); ++i) map[i] = written[i];
    Packer out;
    out.put(bytes).put(map);
    return reply(kOk, out);
  }

  bool poison(Unpacker& in) {
    DevicePtr ptr;
    in.get(ptr.address);
    return in.done() && done(gpu_->poison(ptr));
  }

  bool load(Unpacker& in) {
    Binary binary;
    unpack(in, binary);
    if (!in.done()) return false;
    auto module = gpu_->load(binary);
    if (!module) return fail(module.error());
    Packer out;
    out.put(module->id);
    return reply(kOk, out);
  }

  bool unload(Unpacker& in) {
    ModuleId module;
    in.get(module.id);
    if (!in.done()) return false;
    gpu_->unload(module);
    return ok();
  }

  bool run(Unpacker& in) {
    ModuleId module;
    Launch launch;
    in.get(module.id);
    unpack(in, launch);
    if (!in.done()) return false;
    auto result = gpu_->run(module, launch, {});
    if (!result) return fail(result.error());
    Packer out;
    out.put(result->time_ns.value_or(0));
    return reply(kOk, out);
  }

  bool state(Unpacker& in) {
    auto state = gpu_->state();
    if (!in.done()) return false;
    if (!state) return fail(state.error());
    Packer out;
    pack(out, *state);
    return reply(kOk, out);
  }

  /// Sends each sample immediately, so that the client's time-out applies to a single shot.
  bool time(Unpacker& in) {
    std::vector<Shot> shots;
    unpack(in, shots);
    if (!in.done()) return false;
    auto& gpu = static_cast<cuda::CudaExecutor&>(*gpu_);
    for (const Shot& shot : shots) {
      auto sample = gpu.fire(shot);
      if (!sample) {
        gpu.drop_graphs();
        return fail(sample.error());
      }
      Packer out;
      pack(out, *sample);
      if (!reply(kSample, out)) return false;
    }
    gpu.drop_graphs();
    return ok();
  }

  static constexpr uint64_t kMostBytes = uint64_t{1} << 29;  // of one read; the client requests less

  std::unique_ptr<GpuExecutor> gpu_;
  Staging staging_;  ///< of inputs that the client makes
};

}  // namespace

int gpu_worker_main() {
  // Set before the driver reads it and before a second thread exists. Lazy loading would load a kernel at its first
  // launch, between two events.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  rlimit no_core = {};
  setrlimit(RLIMIT_CORE, &no_core);
  exit_with_parent();
  Server server;
  while (auto request = read_frame(kWorkerSocket))
    if (!server.serve(*request)) _exit(2);
  // _exit instead of exit: the driver's own threads still run, and the end of the process frees everything.
  _exit(0);
}

}  // namespace roofgen

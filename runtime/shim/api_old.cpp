// The driver API: launches as before CUDA 4. Block, shared memory and arguments belong to the function and stay for
// its next launch.
#include <fmt/format.h>

#include <cstring>

#include "runtime/shim/work.h"

using namespace roofgen::shim;

namespace {

constexpr size_t kMostParams = 1 << 16;

Status set_params(State& s, const char* call, Handle handle, int offset, const void* from, size_t bytes) {
  Function* f = s.function_of(handle);
  CHECK(f, kInvalidHandle, "no such function");
  CHECK(from && offset >= 0 && static_cast<size_t>(offset) + bytes <= kMostParams, kInvalidValue,
        "{} bytes of arguments at {}", bytes, offset);
  auto& params = f->next.params;
  params.resize(std::max(params.size(), static_cast<size_t>(offset) + bytes));
  std::memcpy(params.data() + offset, from, bytes);
  return kSuccess;
}

Status launch(State& s, const char* call, Handle handle, int width, int height, Handle stream) {
  Function* f = s.function_of(handle);
  CHECK(f, kInvalidHandle, "no such function");
  CHECK(width > 0 && height > 0, kInvalidValue, "a grid of {} x {} CTAs", width, height);
  auto& next = f->next;
  size_t bytes = next.params.size();
  void* extra[] = {reinterpret_cast<void*>(1), next.params.data(), reinterpret_cast<void*>(2), &bytes, nullptr};
  const LaunchShape shape = {
      {static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1}, next.block, {0, 0, 0}, next.smem_bytes};
  Work work;
  const Status status = make_launch(s, call, handle, shape, nullptr, f->kernel.params.empty() ? nullptr : extra, &work);
  return status == kSuccess ? s.queue(call, stream, std::move(work)) : status;
}

}  // namespace

ROOFGEN_CU(cuFuncSetBlockShape, kContext, (Handle handle, int x, int y, int z), {
  Function* f = s.function_of(handle);
  CHECK(f, kInvalidHandle, "no such function");
  CHECK(x > 0 && y > 0 && z > 0, kInvalidValue, "a block of {} x {} x {} threads", x, y, z);
  f->next.block = {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
  return kSuccess;
})
ROOFGEN_CU(cuFuncSetSharedSize, kContext, (Handle handle, unsigned bytes), {
  Function* f = s.function_of(handle);
  CHECK(f, kInvalidHandle, "no such function");
  f->next.smem_bytes = bytes;
  return kSuccess;
})
ROOFGEN_CU(cuParamSetSize, kContext, (Handle handle, unsigned bytes), {
  Function* f = s.function_of(handle);
  CHECK(f, kInvalidHandle, "no such function");
  CHECK(bytes <= kMostParams, kInvalidValue, "{} bytes of arguments", bytes);
  f->next.params.resize(bytes);
  return kSuccess;
})
ROOFGEN_CU(cuParamSeti, kContext, (Handle handle, int offset, unsigned value),
           { return set_params(s, call, handle, offset, &value, sizeof value); })
ROOFGEN_CU(cuParamSetf, kContext, (Handle handle, int offset, float value),
           { return set_params(s, call, handle, offset, &value, sizeof value); })
ROOFGEN_CU(cuParamSetv, kContext, (Handle handle, int offset, void* from, unsigned bytes),
           { return set_params(s, call, handle, offset, from, bytes); })
ROOFGEN_CU(cuLaunch, kContext, (Handle handle), { return launch(s, call, handle, 1, 1, nullptr); })
ROOFGEN_CU(cuLaunchGrid, kContext, (Handle handle, int width, int height),
           { return launch(s, call, handle, width, height, nullptr); })
ROOFGEN_CU(cuLaunchGridAsync, kContext, (Handle handle, int width, int height, Handle stream),
           { return launch(s, call, handle, width, height, stream); })

// The runtime API: kernels and their launches, occupancy, libraries.
#include <cstring>

#include "runtime/shim/cudart/runtime.h"

using namespace roofgen::shim::cudart;

namespace {

constexpr unsigned kMostThreads = 1024;

/// The driver calls a wrong grid or block an invalid value, the runtime an invalid configuration.
Error check(const char* call, const Extent& grid, const Extent& block) {
  const auto count = [](const Extent& e) { return uint64_t{e.x} * e.y * e.z; };
  NEED(count(grid) > 0 && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535, kInvalidConfiguration,
       "a grid of {} x {} x {} CTAs", grid.x, grid.y, grid.z);
  NEED(count(block) > 0 && count(block) <= kMostThreads && block.z <= 64, kInvalidConfiguration,
       "a block of {} x {} x {} threads", block.x, block.y, block.z);
  return kSuccess;
}

Error launch(Runtime& r, const char* call, const void* kernel, Extent grid, Extent block, void** args, size_t smem,
             Handle stream) {
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  TRY(check(call, grid, block));
  return cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, static_cast<unsigned>(smem), stream, args,
                        nullptr);
}

LaunchConfig driver_form(const RuntimeLaunch& c) {
  return {c.grid.x, c.grid.y,     c.grid.z,         c.block.x, c.block.y, c.block.z, static_cast<unsigned>(c.smem),
          c.stream, c.attributes, c.attribute_count};
}

}  // namespace

PASS_PTSZ(cudaLaunchKernel, (const void* kernel, Extent grid, Extent block, void** args, size_t smem, Handle stream),
          launch(r, call, kernel, grid, block, args, smem, stream))
PASS_PTSZ(__cudaLaunchKernel, (Handle kernel, Extent grid, Extent block, void** args, size_t smem, Handle stream),
          launch(r, call, kernel, grid, block, args, smem, stream))
ROOFGEN_CUDART_PTSZ(cudaLaunchCooperativeKernel,
                    (const void* kernel, Extent grid, Extent block, void** args, size_t smem, Handle stream), {
                      Handle f = nullptr;
                      TRY(r.function(call, kernel, &f));
                      TRY(check(call, grid, block));
                      return cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                       static_cast<unsigned>(smem), stream, args);
                    })
ROOFGEN_CUDART_PTSZ(cudaLaunchKernelExC, (const RuntimeLaunch* c, const void* kernel, void** args), {
  NEED(c, kInvalidValue, "null");
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  TRY(check(call, c->grid, c->block));
  const LaunchConfig config = driver_form(*c);
  return cuLaunchKernelEx(&config, f, args, nullptr);
})
PASS_PTSZ(cudaLaunchHostFunc, (Handle stream, HostFunction function, void* data),
          cuLaunchHostFunc(stream, function, data))

// ---- Kernels -------------------------------------------------------------------------------------------

ROOFGEN_CUDART(cudaGetKernel, (Handle * out, const void* kernel), {
  NEED(out, kInvalidValue, "null");
  TRY(r.function(call, kernel, out));
  r.handles.insert(*out);
  return kSuccess;
})
ROOFGEN_CUDART(cudaGetFuncBySymbol, (Handle * out, const void* kernel), {
  NEED(out, kInvalidValue, "null");
  return r.function(call, kernel, out);
})
ROOFGEN_CUDART(cudaFuncGetAttributes, (FunctionAttributes * out, const void* kernel), {
  NEED(out, kInvalidValue, "null");
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  int values[15] = {};
  for (int i = 0; i < 15; ++i)
    if (const Error failed = cuFuncGetAttribute(&values[i], i, f); failed != kSuccess && i != 4)
      return failed;  // 4: without ptxas the number of registers stays 0
  std::memset(out, 0, sizeof *out);
  out->shared = static_cast<size_t>(values[1]);
  out->constant = static_cast<size_t>(values[2]);
  out->local = static_cast<size_t>(values[3]);
  out->threads = values[0];
  std::memcpy(&out->registers, &values[4], 10 * sizeof(int));  // in the order of the attributes
  out->big_clusters = values[14];
  return kSuccess;
})
ROOFGEN_CUDART(cudaFuncSetAttribute, (const void* kernel, int attribute, int value), {
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  return cuFuncSetAttribute(f, attribute, value);
})
ROOFGEN_CUDART(cudaFuncSetCacheConfig, (const void* kernel, int config), {
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  return cuFuncSetCacheConfig(f, config);
})
ROOFGEN_CUDART(cudaFuncSetSharedMemConfig, (const void* kernel, int), {
  Handle f = nullptr;
  return r.function(call, kernel, &f);  // without effect since sm_50
})
ROOFGEN_CUDART(cudaFuncGetName, (const char** out, const void* kernel), {
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  return cuFuncGetName(out, f);
})
ROOFGEN_CUDART(cudaFuncGetParamInfo, (const void* kernel, size_t index, size_t* offset, size_t* bytes), {
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  return cuFuncGetParamInfo(f, index, offset, bytes);
})

// ---- Occupancy -----------------------------------------------------------------------------------------

ROOFGEN_CUDART(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
               (int* out, const void* kernel, int threads, size_t smem, unsigned flags), {
                 Handle f = nullptr;
                 TRY(r.function(call, kernel, &f));
                 return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, f, threads, smem, flags);
               })
ROOFGEN_CUDART(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int* out, const void* kernel, int threads, size_t smem),
               {
                 Handle f = nullptr;
                 TRY(r.function(call, kernel, &f));
                 return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, f, threads, smem, 0);
               })
ROOFGEN_CUDART(cudaOccupancyAvailableDynamicSMemPerBlock, (size_t * out, const void* kernel, int ctas, int threads), {
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  return cuOccupancyAvailableDynamicSMemPerBlock(out, f, ctas, threads);
})
ROOFGEN_CUDART(cudaOccupancyMaxPotentialClusterSize, (int* out, const void* kernel, const RuntimeLaunch* c), {
  NEED(c, kInvalidValue, "null");
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  const LaunchConfig config = driver_form(*c);
  return cuOccupancyMaxPotentialClusterSize(out, f, &config);
})
ROOFGEN_CUDART(cudaOccupancyMaxActiveClusters, (int* out, const void* kernel, const RuntimeLaunch* c), {
  NEED(c, kInvalidValue, "null");
  Handle f = nullptr;
  TRY(r.function(call, kernel, &f));
  const LaunchConfig config = driver_form(*c);
  return cuOccupancyMaxActiveClusters(out, f, &config);
})

// ---- Libraries -----------------------------------------------------------------------------------------

PASS(cudaLibraryLoadData,
     (Handle * out, const void* image, int* jit, void** jit_values, unsigned jit_count, int* options, void** values,
      unsigned count),
     cuLibraryLoadData(out, image, jit, jit_values, jit_count, options, values, count))
PASS(cudaLibraryLoadFromFile,
     (Handle * out, const char* path, int* jit, void** jit_values, unsigned jit_count, int* options, void** values,
      unsigned count),
     cuLibraryLoadFromFile(out, path, jit, jit_values, jit_count, options, values, count))
PASS(cudaLibraryUnload, (Handle library), cuLibraryUnload(library))
ROOFGEN_CUDART(cudaLibraryGetKernel, (Handle * out, Handle library, const char* name), {
  TRY(cuLibraryGetKernel(out, library, name));
  r.handles.insert(*out);
  return kSuccess;
})
PASS(cudaLibraryGetKernelCount, (unsigned* count, Handle library), cuLibraryGetKernelCount(count, library))
ROOFGEN_CUDART(cudaLibraryEnumerateKernels, (Handle * out, unsigned room, Handle library), {
  unsigned count = 0;
  TRY(cuLibraryGetKernelCount(&count, library));
  TRY(cuLibraryEnumerateKernels(out, room, library));
  r.handles.insert(out, out + std::min(room, count));
  return kSuccess;
})
ROOFGEN_CUDART(cudaLibraryGetGlobal, (void** at, size_t* bytes, Handle library, const char* name), {
  NEED(at, kInvalidValue, "null");
  roofgen::cuda::Address address = 0;
  TRY(cuLibraryGetGlobal(&address, bytes, library, name));
  std::memcpy(at, &address, sizeof address);
  return kSuccess;
})

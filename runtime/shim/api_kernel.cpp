// The driver API: modules, functions, launches.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "runtime/shim/work.h"

using namespace roofgen::shim;

namespace {

Status load(State& s, const char* call, Handle* out, const void* image, unsigned count = 0, int* options = nullptr,
            void** values = nullptr) {
  CHECK(out, kInvalidValue, "null");
  std::string why;
  Module* module = nullptr;
  const Status status = s.load(call, image, &why, &module);
  fill_log(why, count, options, values);
  for (unsigned i = 0; i < count && module && options && values; ++i)
    if (options[i] == kJitMaxRegisters)
      module->max_registers = static_cast<int>(reinterpret_cast<uintptr_t>(values[i]) & 0xffff);
  for (const auto& [handle, link] : s.links.all())
    if (module && image == link->image.c_str()) module->max_registers = link->max_registers;
  if (module && module->max_registers > 0) module->ptxas_log.reset();  // of a run without this limit
  *out = module;
  return status;
}

Status launch(State& s, const char* call, Handle function, const LaunchShape& shape, Handle stream, void** args,
              void** extra) {
  Work work;
  if (Status status = make_launch(s, call, function, shape, args, extra, &work); status != kSuccess) return status;
  return s.queue(call, stream, std::move(work));
}

Status shape_of(State& s, const char* call, const roofgen::cuda::LaunchConfig& c, LaunchShape* out) {
  *out = {{c.gridDimX, c.gridDimY, c.gridDimZ},
          {c.blockDimX, c.blockDimY, c.blockDimZ},
          {0, 0, 0},
          c.sharedMemBytes,
          false};
  CHECK(c.attrs || c.numAttrs == 0, kInvalidValue, "null");
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    const roofgen::cuda::LaunchAttribute& a = c.attrs[i];
    switch (a.id) {
      case 0: break;
      case 2:
        out->cooperative = a.value.programmaticStreamSerializationAllowed != 0;
        break;  // COOPERATIVE: an int, too
      case roofgen::cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        out->cluster = {a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z};
        CHECK(out->cluster.count() > 0, kInvalidClusterSize, "a cluster of no CTAs");
        break;
      case roofgen::cuda::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        out->overlap = a.value.programmaticStreamSerializationAllowed != 0;
        break;
      // Hints: cluster scheduling, priority, a preferred cluster beside the one that is always possible, shared memory
      // carve-out.
      case 5:
      case 8:
      case 11:
      case 14: break;
      default: return s.refuse(call, kNotSupported, fmt::format("launch attribute {}", a.id));
    }
  }
  return kSuccess;
}

Status attribute(State& s, const char* call, int* out, int attribute, Handle handle) {
  Function* f = s.function_of(handle);
  CHECK(out, kInvalidValue, "null");
  CHECK(f, kInvalidHandle, "no such function");
  const roofgen::sim::Kernel& k = f->kernel;
  switch (attribute) {
    case 0: *out = s.most_threads_of(*f); break;
    case 1: *out = static_cast<int>(k.static_shared); break;
    case 2: *out = 0; break;
    case 3: {
      const auto& report = s.compiled(*f);
      *out = static_cast<int>(report ? report->stack_bytes : k.local_bytes);
      break;
    }
    case 4: {
      const auto& report = s.compiled(*f);
      CHECK(report, kNotSupported, "register counts need ptxas, which is missing or refuses the PTX");
      *out = report->registers;
      break;
    }
    case 5: {
      const std::string_view version = f->module->ptx.version;
      double number = 0;
      std::from_chars(version.data(), version.data() + version.size(), number);
      *out = static_cast<int>(10 * number + 0.5);
      break;
    }
    case 6: *out = static_cast<int>(s.device.integer("arch")); break;
    case 7: *out = 0; break;
    case 8: *out = f->max_dynamic_smem; break;
    case 9: *out = -1; break;
    case 10: *out = 0; break;  // CLUSTER_SIZE_MUST_BE_SET: PTX states a required size, or accepts any
    case 11:
    case 12:
    case 13: *out = static_cast<int>(f->cluster[attribute - 11]); break;
    case 14: *out = f->big_clusters; break;
    case 15: *out = 0; break;
    default: return s.refuse(call, kNotSupported, fmt::format("function attribute {}", attribute));
  }
  return kSuccess;
}

Status occupancy_of(State& s, const char* call, int* out, Handle handle, int threads, size_t smem) {
  Function* f = s.function_of(handle);
  CHECK(out, kInvalidValue, "null");
  CHECK(f, kInvalidHandle, "no such function");
  CHECK(threads > 0 && threads <= kMostThreads, kInvalidValue, "{} threads", threads);
  *out = resident(s, call, *f, threads, static_cast<int64_t>(smem));
  return kSuccess;
}

/// The largest block size with the most resident threads, and the number of such CTAs that the device holds.
Status potential(State& s, const char* call, int* grid, int* block, Handle handle, size_t (*smem_of)(int), size_t smem,
                 int limit) {
  Function* f = s.function_of(handle);
  CHECK(grid && block, kInvalidValue, "null");
  CHECK(f, kInvalidHandle, "no such function");
  int most = s.most_threads_of(*f);
  if (limit > 0) most = std::min(most, limit);
  int best = 0;
  for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
    const int ctas = resident(s, call, *f, threads, static_cast<int64_t>(smem_of ? smem_of(threads) : smem));
    if (ctas * threads <= best) continue;
    best = ctas * threads;
    *block = threads;
    *grid = ctas * static_cast<int>(s.device.integer("sms"));
  }
  CHECK(best > 0, kInvalidValue, "no block of this kernel fits an SM");
  return kSuccess;
}

Status load_file(State& s, const char* call, Handle* out, const char* path) {
  CHECK(path, kInvalidValue, "null");
  std::ifstream in(path, std::ios::binary);
  CHECK(in, kFileNotFound, "{}", path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return load(s, call, out, text.c_str());
}

Status unload(State& s, const char* call, Handle handle) {
  Module* module = s.modules.find(handle);
  CHECK(module, kInvalidHandle, "no such module");
  const Status status = s.synchronise();
  s.unload(*module);
  s.modules.remove(handle);
  return status;
}

Status get_function(State& s, const char* call, Handle* out, Handle handle, const char* name) {
  Module* module = s.modules.find(handle);
  CHECK(out && name, kInvalidValue, "null");
  CHECK(module, kInvalidHandle, "no such module");
  Function* f = nullptr;
  const Status status = s.function(call, *module, name, &f);
  *out = f;
  return status;
}

Status get_global(State& s, const char* call, Address* at, size_t* bytes, Handle handle, const char* name) {
  Module* module = s.modules.find(handle);
  CHECK(name, kInvalidValue, "null");
  CHECK(module, kInvalidHandle, "no such module");
  Address found = 0;
  size_t size = 0;
  if (Status status = s.variable(*module, name, &found, &size); status != kSuccess) return s.refuse(call, status, name);
  if (at) *at = found;
  if (bytes) *bytes = size;
  return kSuccess;
}

std::vector<std::string> kernels_of(const Module& module) {
  std::vector<std::string> names;
  for (const auto& f : module.ptx.functions)
    if (f.is_entry && f.defined) names.emplace_back(f.name);
  return names;
}

Status kernel_count(State& s, const char* call, unsigned* count, Handle handle) {
  const Module* module = s.modules.find(handle);
  CHECK(count, kInvalidValue, "null");
  CHECK(module, kInvalidHandle, "no such module");
  *count = static_cast<unsigned>(kernels_of(*module).size());
  return kSuccess;
}

Status kernel_list(State& s, const char* call, Handle* out, unsigned room, Handle handle) {
  Module* module = s.modules.find(handle);
  CHECK(out || room == 0, kInvalidValue, "null");
  CHECK(module, kInvalidHandle, "no such module");
  const std::vector<std::string> names = kernels_of(*module);
  for (size_t i = 0; i < names.size() && i < room; ++i) {
    Function* f = nullptr;
    if (Status status = s.function(call, *module, names[i], &f); status != kSuccess) return status;
    out[i] = f;
  }
  return kSuccess;
}

Status parameter(State& s, const char* call, Handle handle, size_t index, size_t* offset, size_t* bytes) {
  Function* f = s.function_of(handle);
  CHECK(offset, kInvalidValue, "null");
  CHECK(f, kInvalidHandle, "no such function");
  CHECK(index < f->kernel.params.size(), kInvalidValue, "parameter {} of {}", index, f->kernel.params.size());
  *offset = f->kernel.params[index].offset;
  if (bytes) *bytes = f->kernel.params[index].bytes;
  return kSuccess;
}

Status name_of(State& s, const char* call, const char** out, Handle handle) {
  Function* f = s.function_of(handle);
  CHECK(out && f, kInvalidHandle, "no such function");
  *out = f->kernel.name.c_str();
  return kSuccess;
}

Status set_attribute(State& s, const char* call, Handle handle, int attribute, int value) {
  Function* f = s.function_of(handle);
  CHECK(f, kInvalidHandle, "no such function");
  if (attribute == 9) return kSuccess;  // there is no L1 to configure
  if (attribute >= 11 && attribute <= 13) {
    CHECK(value >= 0 && value <= static_cast<int>(roofgen::sim::kMaxClusterCtas), kInvalidValue, "clusters of {} CTAs",
          value);
    CHECK(f->kernel.required_cluster[0] == 0, kInvalidValue, "{}: the PTX fixes its clusters", f->kernel.name);
    f->cluster[attribute - 11] = static_cast<uint32_t>(value);
    return kSuccess;
  }
  if (attribute == 14) return f->big_clusters = value != 0, kSuccess;
  if (attribute == 15) return kSuccess;  // cluster scheduling policy, without effect
  CHECK(attribute == roofgen::cuda::kFunctionMaxDynamicSmem, kNotSupported, "function attribute {}", attribute);
  const int most = static_cast<int>(s.device.integer("smem_per_block")) - static_cast<int>(f->kernel.static_shared);
  CHECK(value >= 0 && value <= most, kInvalidValue, "{} bytes of dynamic shared memory; at most {}", value, most);
  f->max_dynamic_smem = value;
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuModuleLoadData, kContext, (Handle * out, const void* image), { return load(s, call, out, image); })
ROOFGEN_CU(cuModuleLoadDataEx, kContext, (Handle * out, const void* image, unsigned count, int* options, void** values),
           { return load(s, call, out, image, count, options, values); })
ROOFGEN_CU(cuModuleLoadFatBinary, kContext, (Handle * out, const void* image), { return load(s, call, out, image); })
ROOFGEN_CU(cuModuleLoad, kContext, (Handle * out, const char* path), { return load_file(s, call, out, path); })
ROOFGEN_CU(cuModuleUnload, kContext, (Handle handle), { return unload(s, call, handle); })
ROOFGEN_CU(cuModuleGetFunction, kContext, (Handle * out, Handle handle, const char* name),
           { return get_function(s, call, out, handle, name); })
ROOFGEN_CU(cuModuleGetGlobal_v2, kContext, (Address * at, size_t* bytes, Handle handle, const char* name),
           { return get_global(s, call, at, bytes, handle, name); })
ROOFGEN_CU(cuModuleGetLoadingMode, kDriver, (int* mode), {
  CHECK(mode, kInvalidValue, "null");
  *mode = 1;  // CU_MODULE_EAGER_LOADING
  return kSuccess;
})

// Libraries are modules and kernels are functions here, as there is one device.
ROOFGEN_CU(cuLibraryLoadData, kContext,
           (Handle * out, const void* image, int* options, void** values, unsigned count, int*, void**, unsigned),
           { return load(s, call, out, image, count, options, values); })
ROOFGEN_CU(cuLibraryLoadFromFile, kContext,
           (Handle * out, const char* path, int*, void**, unsigned, int*, void**, unsigned),
           { return load_file(s, call, out, path); })
ROOFGEN_CU(cuLibraryUnload, kContext, (Handle handle), { return unload(s, call, handle); })
ROOFGEN_CU(cuLibraryGetKernel, kContext, (Handle * out, Handle handle, const char* name),
           { return get_function(s, call, out, handle, name); })
ROOFGEN_CU(cuLibraryGetModule, kContext, (Handle * out, Handle handle), {
  CHECK(out && s.modules.find(handle), kInvalidHandle, "no such library");
  *out = handle;
  return kSuccess;
})
ROOFGEN_CU(cuLibraryGetGlobal, kContext, (Address * at, size_t* bytes, Handle handle, const char* name),
           { return get_global(s, call, at, bytes, handle, name); })
ROOFGEN_CU(cuKernelGetFunction, kContext, (Handle * out, Handle kernel), {
  Function* f = s.function_of(kernel);
  CHECK(out && f, kInvalidHandle, "no such kernel");
  *out = f;
  return kSuccess;
})
ROOFGEN_CU(cuKernelGetAttribute, kContext, (int* out, int which, Handle kernel, int),
           { return attribute(s, call, out, which, kernel); })
ROOFGEN_CU(cuKernelSetAttribute, kContext, (int which, int value, Handle kernel, int),
           { return set_attribute(s, call, kernel, which, value); })

ROOFGEN_CU(cuFuncGetAttribute, kContext, (int* out, int which, Handle function),
           { return attribute(s, call, out, which, function); })
ROOFGEN_CU(cuFuncSetAttribute, kContext, (Handle function, int which, int value),
           { return set_attribute(s, call, function, which, value); })
ROOFGEN_CU(cuFuncSetCacheConfig, kContext, (Handle handle, int), {
  CHECK(s.function_of(handle), kInvalidHandle, "no such function");
  return kSuccess;  // there is no L1 to configure
})
ROOFGEN_CU(cuFuncSetSharedMemConfig, kContext, (Handle handle, int), {
  CHECK(s.function_of(handle), kInvalidHandle, "no such function");
  return kSuccess;  // without effect since sm_50
})
ROOFGEN_CU(cuFuncLoad, kContext, (Handle handle), {
  CHECK(s.function_of(handle), kInvalidHandle, "no such function");
  return kSuccess;
})
ROOFGEN_CU(cuFuncGetModule, kContext, (Handle * out, Handle handle), {
  Function* f = s.function_of(handle);
  CHECK(out && f, kInvalidHandle, "no such function");
  *out = f->module;
  return kSuccess;
})
ROOFGEN_CU(cuFuncGetName, kContext, (const char** out, Handle handle), { return name_of(s, call, out, handle); })
ROOFGEN_CU(cuKernelGetName, kContext, (const char** out, Handle handle), { return name_of(s, call, out, handle); })
ROOFGEN_CU(cuFuncGetParamInfo, kContext, (Handle handle, size_t index, size_t* offset, size_t* bytes),
           { return parameter(s, call, handle, index, offset, bytes); })
ROOFGEN_CU(cuKernelGetParamInfo, kContext, (Handle handle, size_t index, size_t* offset, size_t* bytes),
           { return parameter(s, call, handle, index, offset, bytes); })
ROOFGEN_CU(cuFuncIsLoaded, kContext, (int* state, Handle handle), {
  CHECK(state && s.function_of(handle), kInvalidHandle, "no such function");
  *state = 1;  // CU_FUNCTION_LOADING_STATE_LOADED
  return kSuccess;
})
ROOFGEN_CU(cuKernelSetCacheConfig, kContext, (Handle handle, int, int), {
  CHECK(s.function_of(handle), kInvalidHandle, "no such kernel");
  return kSuccess;  // there is no L1 to configure
})
ROOFGEN_CU(cuKernelGetLibrary, kContext, (Handle * out, Handle handle), {
  Function* f = s.function_of(handle);
  CHECK(out && f, kInvalidHandle, "no such kernel");
  *out = f->module;
  return kSuccess;
})
ROOFGEN_CU(cuModuleGetFunctionCount, kContext, (unsigned* count, Handle module),
           { return kernel_count(s, call, count, module); })
ROOFGEN_CU(cuModuleEnumerateFunctions, kContext, (Handle * out, unsigned room, Handle module),
           { return kernel_list(s, call, out, room, module); })
ROOFGEN_CU(cuLibraryGetKernelCount, kContext, (unsigned* count, Handle library),
           { return kernel_count(s, call, count, library); })
ROOFGEN_CU(cuLibraryEnumerateKernels, kContext, (Handle * out, unsigned room, Handle library),
           { return kernel_list(s, call, out, room, library); })
ROOFGEN_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, kContext, (int* out, Handle function, int threads, size_t smem),
           { return occupancy_of(s, call, out, function, threads, smem); })
ROOFGEN_CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, kContext,
           (int* out, Handle function, int threads, size_t smem, unsigned),
           { return occupancy_of(s, call, out, function, threads, smem); })

ROOFGEN_CU(cuOccupancyMaxPotentialBlockSize, kContext,
           (int* grid, int* block, Handle function, size_t (*smem_of)(int), size_t smem, int limit),
           { return potential(s, call, grid, block, function, smem_of, smem, limit); })
ROOFGEN_CU(cuOccupancyMaxPotentialBlockSizeWithFlags, kContext,
           (int* grid, int* block, Handle function, size_t (*smem_of)(int), size_t smem, int limit, unsigned),
           { return potential(s, call, grid, block, function, smem_of, smem, limit); })
ROOFGEN_CU(cuOccupancyMaxActiveClusters, kContext, (int* out, Handle handle, const roofgen::cuda::LaunchConfig* c), {
  Function* f = s.function_of(handle);
  LaunchShape shape;
  CHECK(out && c, kInvalidValue, "null");
  CHECK(f, kInvalidHandle, "no such function");
  if (Status status = shape_of(s, call, *c, &shape); status != kSuccess) return status;
  const uint64_t ctas = std::max<uint64_t>(1, shape.cluster.count()), threads = shape.block.count();
  CHECK(threads > 0 && threads <= kMostThreads && ctas <= roofgen::sim::kMaxClusterCtas, kInvalidValue,
        "no such block or cluster");
  // An upper bound: the grouping of SMs is unknown, so any SMs may form a cluster.
  *out = static_cast<int>(static_cast<uint64_t>(resident(s, call, *f, static_cast<int>(threads), shape.smem_bytes)) *
                          static_cast<uint64_t>(s.device.integer("sms")) / ctas);
  return kSuccess;
})
ROOFGEN_CU(cuOccupancyMaxPotentialClusterSize, kContext,
           (int* out, Handle handle, const roofgen::cuda::LaunchConfig* c), {
             Function* f = s.function_of(handle);
             CHECK(out && c, kInvalidValue, "null");
             CHECK(f, kInvalidHandle, "no such function");
             *out = !s.attribute(120) ? 1 : f->big_clusters ? static_cast<int>(roofgen::sim::kMaxClusterCtas) : 8;
             return kSuccess;
           })
ROOFGEN_CU(cuOccupancyAvailableDynamicSMemPerBlock, kContext, (size_t * out, Handle handle, int ctas, int threads), {
  Function* f = s.function_of(handle);
  CHECK(out && ctas > 0 && threads > 0 && threads <= kMostThreads, kInvalidValue, "{} CTAs of {} threads", ctas,
        threads);
  CHECK(f, kInvalidHandle, "no such function");
  CHECK(resident(s, call, *f, threads, 0) >= ctas, kInvalidValue, "{} CTAs do not fit an SM", ctas);
  const int64_t unit = s.device.integer("smem_alloc_unit"),
                share = s.device.integer("smem_per_sm") / ctas / unit * unit;
  const int64_t own = std::min(share - s.device.integer("smem_reserved_per_block"), s.device.integer("smem_per_block"));
  *out = static_cast<size_t>(std::max<int64_t>(0, own - f->kernel.static_shared));
  return kSuccess;
})

ROOFGEN_CU_PTSZ(cuLaunchKernel, kContext,
                (Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                 unsigned smem, Handle stream, void** args, void** extra),
                {
                  return launch(s, call, function, {{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, smem}, stream, args, extra);
                })
ROOFGEN_CU_PTSZ(cuLaunchKernelEx, kContext,
                (const roofgen::cuda::LaunchConfig* c, Handle function, void** args, void** extra), {
                  CHECK(c, kInvalidValue, "null");
                  LaunchShape shape;
                  if (Status status = shape_of(s, call, *c, &shape); status != kSuccess) return status;
                  return launch(s, call, function, shape, c->hStream, args, extra);
                })
ROOFGEN_CU_PTSZ(
    cuLaunchCooperativeKernel, kContext,
    (Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
     Handle stream, void** args),
    {
      return launch(s, call, function, {{gx, gy, gz}, {bx, by, bz}, {0, 0, 0}, smem, true}, stream, args, nullptr);
    })

// The driver API: modules, functions, launches.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "runtime/shim/state.h"

using namespace roofgen::shim;

#define CHECK(condition, status, why) \
  if (!(condition)) return s.refuse(call, status, why)

namespace {

constexpr uint32_t kMostThreads = 1024;

/// `why` into the caller's log buffer, cut to its size.
void fill_log(const std::string& why, unsigned count, const int* options, void** values) {
  char* buffer = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count && options && values; ++i) {
    if (options[i] == roofgen::cuda::kJitErrorLogBuffer) buffer = static_cast<char*>(values[i]);
    if (options[i] == roofgen::cuda::kJitErrorLogBufferSize) size = reinterpret_cast<uintptr_t>(values[i]) & 0xffffffffu;
  }
  if (buffer && size > 0) buffer[why.copy(buffer, size - 1)] = '\0';
}

Status load(State& s, const char* call, Handle* out, const void* image, unsigned count = 0, int* options = nullptr, void** values = nullptr) {
  CHECK(out, kInvalidValue, "null");
  std::string why;
  Module* module = nullptr;
  const Status status = s.load(call, image, &why, &module);
  fill_log(why, count, options, values);
  *out = module;
  return status;
}

Status launch(State& s, const char* call, Handle handle, roofgen::Dim3 grid, roofgen::Dim3 block, unsigned smem, Handle stream, void** args, void** extra) {
  Function* f = nullptr;
  CHECK(s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  const roofgen::sim::Kernel& k = f->kernel;
  CHECK(block.count() > 0 && block.count() <= kMostThreads && block.z <= 64, kInvalidValue,
        fmt::format("{}: a block of {} x {} x {} threads", k.name, block.x, block.y, block.z));
  CHECK(grid.count() > 0 && grid.x <= 0x7fffffff && grid.y <= 65535 && grid.z <= 65535, kInvalidValue,
        fmt::format("{}: a grid of {} x {} x {} CTAs", k.name, grid.x, grid.y, grid.z));
  CHECK(grid.count() <= 0xffffffffu, kNotSupported, "over 2^32 CTAs");
  const uint64_t most = uint64_t{k.max_threads[0]} * k.max_threads[1] * k.max_threads[2];
  CHECK(k.max_threads[0] == 0 || block.count() <= most, kOutOfResources, fmt::format("{}: {} threads of at most {}", k.name, block.count(), most));
  CHECK(k.required_threads[0] == 0 || (block.x == k.required_threads[0] && block.y == k.required_threads[1] && block.z == k.required_threads[2]), kInvalidValue,
        k.name + ": its block is fixed to another size");
  CHECK(smem <= static_cast<unsigned>(f->max_dynamic_smem), kInvalidValue,
        fmt::format("{}: {} bytes of dynamic shared memory; it may have {}", k.name, smem, f->max_dynamic_smem));
  auto op = std::make_shared<LaunchOp>();
  op->function = f;
  op->launch.grid = grid;
  op->launch.block = block;
  op->launch.smem_bytes = smem;
  op->params.resize(k.param_bytes);
  if (extra) {
    // Pairs of a marker and a value: 1 the buffer, 2 the address of its size, 0 the end.
    CHECK(!args, kInvalidValue, "arguments given twice");
    const void* buffer = nullptr;
    size_t size = 0;
    for (; *extra; extra += 2) {
      const auto marker = reinterpret_cast<uintptr_t>(*extra);
      CHECK(marker == 1 || marker == 2, kInvalidValue, "an unknown kind of extra argument");
      if (marker == 1) buffer = extra[1];
      else std::memcpy(&size, extra[1], sizeof size);
    }
    CHECK(buffer && size >= op->params.size(), kInvalidValue, fmt::format("{}: {} bytes of arguments, it takes {}", k.name, size, op->params.size()));
    std::memcpy(op->params.data(), buffer, op->params.size());
  } else {
    CHECK(args || k.params.empty(), kInvalidValue, k.name + ": no arguments");
    for (size_t i = 0; i < k.params.size(); ++i) {
      CHECK(args[i], kInvalidValue, fmt::format("{}: argument {} is null", k.name, i));
      std::memcpy(op->params.data() + k.params[i].offset, args[i], k.params[i].bytes);
    }
  }
  return s.queue(call, stream, [&s, op] {
    // Unloading a module that is still to run is the program's mistake.
    Function* still = nullptr;
    if (s.is_function(const_cast<Function*>(op->function), &still) != kSuccess) return s.refuse("cuLaunchKernel", kInvalidHandle, "the module was unloaded before the launch ran");
    return s.execute(*op);
  });
}

Status attribute(State& s, const char* call, int* out, int attribute, Handle handle) {
  Function* f = nullptr;
  CHECK(out, kInvalidValue, "null");
  CHECK(s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  const roofgen::sim::Kernel& k = f->kernel;
  switch (attribute) {
    case 0: *out = k.max_threads[0] ? static_cast<int>(k.max_threads[0] * k.max_threads[1] * k.max_threads[2]) : static_cast<int>(kMostThreads); break;
    case 1: *out = static_cast<int>(k.static_shared); break;
    case 2: *out = 0; break;
    case 3: *out = static_cast<int>(k.local_bytes); break;
    case 5: *out = static_cast<int>(10 * std::strtod(std::string(f->module->ptx.version).c_str(), nullptr) + 0.5); break;
    case 6: *out = static_cast<int>(s.device.integer("arch")); break;
    case 7: *out = 0; break;
    case 8: *out = f->max_dynamic_smem; break;
    case 9: *out = -1; break;
    // 4, registers: PTX has as many as it likes. Others: clusters.
    default: return s.refuse(call, kNotSupported, fmt::format("function attribute {} is not known of PTX", attribute));
  }
  return kSuccess;
}

/// Registers are unknown, so this is what threads and shared memory allow: at least the true figure.
Status occupancy_of(State& s, const char* call, int* out, Handle handle, int threads, size_t smem) {
  Function* f = nullptr;
  CHECK(out, kInvalidValue, "null");
  CHECK(s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  CHECK(threads > 0 && threads <= static_cast<int>(kMostThreads), kInvalidValue, fmt::format("{} threads", threads));
  s.log(fmt::format("{}: {}: without its registers, which PTX does not tell", call, f->kernel.name));
  *out = roofgen::occupancy(s.device, 1, static_cast<int64_t>(smem) + f->kernel.static_shared, threads).ctas_per_sm;
  return kSuccess;
}

Status load_file(State& s, const char* call, Handle* out, const char* path) {
  CHECK(path, kInvalidValue, "null");
  std::ifstream in(path, std::ios::binary);
  CHECK(in, kFileNotFound, path);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return load(s, call, out, text.c_str());
}

Status unload(State& s, const char* call, Handle handle) {
  Module* module = s.modules.find(handle);
  CHECK(module, kInvalidHandle, "no such module");
  const Status status = s.drain();
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

Status set_attribute(State& s, const char* call, Handle handle, int attribute, int value) {
  Function* f = nullptr;
  CHECK(s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  if (attribute == 9) return kSuccess;  // a preference for L1: there is none
  CHECK(attribute == roofgen::cuda::kFunctionMaxDynamicSmem, kNotSupported, fmt::format("function attribute {}", attribute));
  const int most = static_cast<int>(s.device.integer("smem_per_block")) - static_cast<int>(f->kernel.static_shared);
  CHECK(value >= 0 && value <= most, kInvalidValue, fmt::format("{} bytes of dynamic shared memory; at most {}", value, most));
  f->max_dynamic_smem = value;
  return kSuccess;
}

}  // namespace

ROOFGEN_CU(cuModuleLoadData, kContext, (Handle * out, const void* image), { return load(s, call, out, image); })
ROOFGEN_CU(cuModuleLoadDataEx, kContext, (Handle * out, const void* image, unsigned count, int* options, void** values), { return load(s, call, out, image, count, options, values); })
ROOFGEN_CU(cuModuleLoadFatBinary, kContext, (Handle*, const void*), { return s.refuse(call, kNoBinary, "fat binaries are not read; load the PTX itself"); })
ROOFGEN_CU(cuModuleLoad, kContext, (Handle * out, const char* path), { return load_file(s, call, out, path); })
ROOFGEN_CU(cuModuleUnload, kContext, (Handle handle), { return unload(s, call, handle); })
ROOFGEN_CU(cuModuleGetFunction, kContext, (Handle * out, Handle handle, const char* name), { return get_function(s, call, out, handle, name); })
ROOFGEN_CU(cuModuleGetGlobal_v2, kContext, (Address * at, size_t* bytes, Handle handle, const char* name), { return get_global(s, call, at, bytes, handle, name); })
ROOFGEN_CU(cuModuleGetLoadingMode, kDriver, (int* mode), {
  CHECK(mode, kInvalidValue, "null");
  *mode = 2;  // CU_MODULE_LAZY_LOADING: a kernel is decoded when it is asked for
  return kSuccess;
})

// Libraries are modules here, and kernels functions: there is one device and one memory.
ROOFGEN_CU(cuLibraryLoadData, kContext, (Handle * out, const void* image, int* options, void** values, unsigned count, int*, void**, unsigned), { return load(s, call, out, image, count, options, values); })
ROOFGEN_CU(cuLibraryLoadFromFile, kContext, (Handle * out, const char* path, int*, void**, unsigned, int*, void**, unsigned), { return load_file(s, call, out, path); })
ROOFGEN_CU(cuLibraryUnload, kContext, (Handle handle), { return unload(s, call, handle); })
ROOFGEN_CU(cuLibraryGetKernel, kContext, (Handle * out, Handle handle, const char* name), { return get_function(s, call, out, handle, name); })
ROOFGEN_CU(cuLibraryGetModule, kContext, (Handle * out, Handle handle), {
  CHECK(out && s.modules.find(handle), kInvalidHandle, "no such library");
  *out = handle;
  return kSuccess;
})
ROOFGEN_CU(cuLibraryGetGlobal, kContext, (Address * at, size_t* bytes, Handle handle, const char* name), { return get_global(s, call, at, bytes, handle, name); })
ROOFGEN_CU(cuKernelGetFunction, kContext, (Handle * out, Handle kernel), {
  Function* f = nullptr;
  CHECK(out && s.is_function(kernel, &f) == kSuccess, kInvalidHandle, "no such kernel");
  *out = f;
  return kSuccess;
})
ROOFGEN_CU(cuKernelGetAttribute, kContext, (int* out, int which, Handle kernel, int), { return attribute(s, call, out, which, kernel); })
ROOFGEN_CU(cuKernelSetAttribute, kContext, (int which, int value, Handle kernel, int), { return set_attribute(s, call, kernel, which, value); })

ROOFGEN_CU(cuFuncGetAttribute, kContext, (int* out, int which, Handle function), { return attribute(s, call, out, which, function); })
ROOFGEN_CU(cuFuncSetAttribute, kContext, (Handle function, int which, int value), { return set_attribute(s, call, function, which, value); })
ROOFGEN_CU(cuFuncSetCacheConfig, kContext, (Handle handle, int), {
  Function* f = nullptr;
  CHECK(s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  return kSuccess;  // a preference for L1: there is none
})
ROOFGEN_CU(cuFuncLoad, kContext, (Handle handle), {
  Function* f = nullptr;
  CHECK(s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  return kSuccess;
})
ROOFGEN_CU(cuFuncGetModule, kContext, (Handle * out, Handle handle), {
  Function* f = nullptr;
  CHECK(out && s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  *out = f->module;
  return kSuccess;
})
ROOFGEN_CU(cuFuncGetName, kContext, (const char** out, Handle handle), {
  Function* f = nullptr;
  CHECK(out && s.is_function(handle, &f) == kSuccess, kInvalidHandle, "no such function");
  *out = f->kernel.name.c_str();
  return kSuccess;
})
ROOFGEN_CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, kContext, (int* out, Handle function, int threads, size_t smem), { return occupancy_of(s, call, out, function, threads, smem); })
ROOFGEN_CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, kContext, (int* out, Handle function, int threads, size_t smem, unsigned), { return occupancy_of(s, call, out, function, threads, smem); })

ROOFGEN_CU(cuLaunchKernel, kContext,
           (Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem, Handle stream, void** args, void** extra),
           { return launch(s, call, function, {gx, gy, gz}, {bx, by, bz}, smem, stream, args, extra); })
ROOFGEN_CU(cuLaunchKernelEx, kContext, (const roofgen::cuda::LaunchConfig* c, Handle function, void** args, void** extra), {
  CHECK(c, kInvalidValue, "null");
  for (unsigned i = 0; i < c->attribute_count; ++i) {
    const roofgen::cuda::LaunchAttribute& a = c->attributes[i];
    // Overlap with the launch before is a permission: it is not used.
    if (a.id == 0 || a.id == roofgen::cuda::kLaunchOverlap) continue;
    if (a.id == roofgen::cuda::kLaunchCluster && a.value.cluster.x == 1 && a.value.cluster.y == 1 && a.value.cluster.z == 1) continue;
    return s.refuse(call, kNotSupported, fmt::format("launch attribute {}{}", a.id, a.id == roofgen::cuda::kLaunchCluster ? ", clusters" : ""));
  }
  return launch(s, call, function, {c->grid_x, c->grid_y, c->grid_z}, {c->block_x, c->block_y, c->block_z}, c->smem_bytes, c->stream, args, extra);
})
ROOFGEN_CU(cuLaunchCooperativeKernel, kContext, (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**),
           { return s.refuse(call, kNotSupported, "CTAs run one after another, so a grid cannot wait for itself"); })
ROOFGEN_CU(cuTensorMapEncodeTiled, kDriver,
           (void*, int, unsigned, void*, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int, int, int, int),
           { return s.refuse(call, kNotSupported, "the simulator has no tensor copies"); })

ROOFGEN_CU_PER_THREAD(cuLaunchKernel, _ptsz);
ROOFGEN_CU_PER_THREAD(cuLaunchKernelEx, _ptsz);
ROOFGEN_CU_PER_THREAD(cuLaunchCooperativeKernel, _ptsz);

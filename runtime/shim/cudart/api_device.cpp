// The runtime API: the device, its properties, errors, versions.
#include <cstring>

#include "runtime/shim/cudart/properties.h"
#include "runtime/shim/cudart/runtime.h"

using namespace roofgen::shim::cudart;

namespace {

int attribute(int number) {
  int out = 0;
  cuDeviceGetAttribute(&out, number, 0);
  return out;
}

/// The attributes by number are in driver_types.h; members without one stay 0.
template <class T>
Error fill(T* p) {
  std::memset(p, 0, sizeof *p);
  TRY(cuDeviceGetName(p->name, sizeof p->name, 0));
  roofgen::cuda::Uuid uuid;
  TRY(cuDeviceGetUuid_v2(&uuid, 0));
  std::memcpy(p->uuid, uuid.bytes, sizeof p->uuid);
  TRY(cuDeviceTotalMem_v2(&p->global_bytes, 0));
  p->pitch = static_cast<size_t>(attribute(11));
  p->shared_per_block = static_cast<size_t>(attribute(8));
  p->constant_bytes = static_cast<size_t>(attribute(9));
  p->shared_per_sm = static_cast<size_t>(attribute(81));
  p->shared_per_block_optin = static_cast<size_t>(attribute(97));
  p->reserved_shared = static_cast<size_t>(attribute(111));
  p->texture_alignment = p->surface_alignment = 512;
  p->texture_pitch_alignment = 32;
  for (int i = 0; i < 3; ++i) {
    p->threads_dim[i] = attribute(2 + i);
    p->grid_size[i] = attribute(5 + i);
  }
  const std::pair<int*, int> members[] = {{&p->threads_per_block, 1},
                                          {&p->warp_size, 10},
                                          {&p->registers_per_block, 12},
                                          {&p->sms, 16},
                                          {&p->integrated, 18},
                                          {&p->can_map_host, 19},
                                          {&p->concurrent_kernels, 31},
                                          {&p->ecc, 32},
                                          {&p->pci_bus, 33},
                                          {&p->pci_device, 34},
                                          {&p->pci_domain, 50},
                                          {&p->async_engines, 40},
                                          {&p->unified_addressing, 41},
                                          {&p->bus_bits, 37},
                                          {&p->l2_bytes, 38},
                                          {&p->persisting_l2_bytes, 108},
                                          {&p->threads_per_sm, 39},
                                          {&p->stream_priorities, 78},
                                          {&p->global_l1, 79},
                                          {&p->local_l1, 80},
                                          {&p->registers_per_sm, 82},
                                          {&p->managed, 83},
                                          {&p->concurrent_managed, 89},
                                          {&p->cooperative, 95},
                                          {&p->ctas_per_sm, 106},
                                          {&p->access_window, 109},
                                          {&p->memory_pools, 115},
                                          {&p->cluster_launch, 120},
                                          {&p->major, 75},
                                          {&p->minor, 76}};
  for (const auto& [member, number] : members) *member = attribute(number);
  return kSuccess;
}

Error only_device(const char* call, int device) {
  NEED(device == 0, kInvalidDevice, "device {}: there is one device", device);
  return kSuccess;
}

}  // namespace

ROOFGEN_CUDART(cudaGetDeviceCount, (int* count), {
  NEED(count, kInvalidValue, "null");
  *count = 1;
  return kSuccess;
})
ROOFGEN_CUDART(cudaGetDevice, (int* device), {
  NEED(device, kInvalidValue, "null");
  *device = 0;
  return kSuccess;
})
PASS(cudaSetDevice, (int device), only_device(call, device))
PASS(cudaInitDevice, (int device, unsigned, unsigned), only_device(call, device))
PASS(cudaSetValidDevices, (int*, int), kSuccess)
ROOFGEN_CUDART(cudaChooseDevice, (int* device, const void*), {
  NEED(device, kInvalidValue, "null");
  *device = 0;
  return kSuccess;
})
ROOFGEN_CUDART(cudaGetDeviceProperties, (Properties * out, int device), {
  NEED(out, kInvalidValue, "null");
  NEED(kRuntimeVersion >= 13000, kNotSupported, "the struct of CUDA 11");
  TRY(only_device(call, device));
  return fill(out);
})
ROOFGEN_CUDART(cudaGetDeviceProperties_v2, (Properties12 * out, int device), {
  NEED(out, kInvalidValue, "null");
  TRY(only_device(call, device));
  TRY(fill(out));
  out->clock_khz = attribute(13);
  out->memory_clock_khz = attribute(36);
  out->device_overlap = 1;
  return kSuccess;
})
PASS(cudaDeviceGetAttribute, (int* out, int which, int device), cuDeviceGetAttribute(out, which, device))
PASS(cudaDeviceGetPCIBusId, (char* out, int room, int device), cuDeviceGetPCIBusId(out, room, device))
PASS(cudaDeviceGetByPCIBusId, (int* device, const char* id), cuDeviceGetByPCIBusId(device, id))
ROOFGEN_CUDART(cudaDeviceCanAccessPeer, (int* can, int device, int peer), {
  NEED(can, kInvalidValue, "null");
  TRY(only_device(call, device));
  TRY(only_device(call, peer));
  *can = 0;  // a device is not its own peer
  return kSuccess;
})
PASS(cudaDeviceSynchronize, (), cuCtxSynchronize())
PASS(cudaThreadSynchronize, (), cuCtxSynchronize())
ROOFGEN_CUDART(cudaDeviceReset, (), {
  TRY(cuDevicePrimaryCtxReset_v2(0));
  r.forget_modules();
  return kSuccess;
})
PASS(cudaDeviceGetLimit, (size_t * value, int limit), cuCtxGetLimit(value, limit))
PASS(cudaDeviceSetLimit, (int limit, size_t value), cuCtxSetLimit(limit, value))
PASS(cudaDeviceGetCacheConfig, (int* config), cuCtxGetCacheConfig(config))
PASS(cudaDeviceSetCacheConfig, (int config), cuCtxSetCacheConfig(config))
ROOFGEN_CUDART(cudaDeviceGetSharedMemConfig, (int* config), {
  NEED(config, kInvalidValue, "null");
  *config = 1;  // banks of four bytes
  return kSuccess;
})
PASS(cudaDeviceSetSharedMemConfig, (int), kSuccess)  // without effect since sm_50
PASS(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest), cuCtxGetStreamPriorityRange(least, greatest))
PASS(cudaGetDeviceFlags, (unsigned* flags), cuCtxGetFlags(flags))
PASS(cudaSetDeviceFlags, (unsigned flags), cuCtxSetFlags(flags))
PASS(cudaDeviceGetDefaultMemPool, (Handle * out, int device), cuDeviceGetDefaultMemPool(out, device))
PASS(cudaDeviceGetMemPool, (Handle * out, int device), cuDeviceGetMemPool(out, device))
PASS(cudaDeviceSetMemPool, (int device, Handle pool), cuDeviceSetMemPool(device, pool))
PASS(cudaProfilerStart, (), kSuccess)  // there is no profiler to control
PASS(cudaProfilerStop, (), kSuccess)
PASS(cudaDriverGetVersion, (int* version), cuDriverGetVersion(version))
ROOFGEN_CUDART(cudaRuntimeGetVersion, (int* version), {
  NEED(version, kInvalidValue, "null");
  *version = kRuntimeVersion;
  return kSuccess;
})
ROOFGEN_CUDART_PTSZ(cudaGetDriverEntryPoint, (const char* name, void** out, unsigned long long flags, int* how), {
  NEED(name && out, kInvalidValue, "null");
  int result = 0;
  return cuGetProcAddress_v2(name, out, kRuntimeVersion, flags, how ? how : &result);
})
ROOFGEN_CUDART_PTSZ(cudaGetDriverEntryPointByVersion,
                    (const char* name, void** out, unsigned version, unsigned long long flags, int* how), {
                      NEED(name && out, kInvalidValue, "null");
                      int result = 0;
                      return cuGetProcAddress_v2(name, out, static_cast<int>(version), flags, how ? how : &result);
                    })
ROOFGEN_CUDART(cudaGetExportTable, (const void** table, const void*), {
  if (table) *table = nullptr;
  return refuse(call, kNotSupported, "internal tables of NVIDIA's libraries");
})

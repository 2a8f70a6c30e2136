// cudaDeviceProp: of CUDA 13, and of CUDA 12 (cudaGetDeviceProperties_v2).
#pragma once

#include <cstddef>

namespace roofgen::shim::cudart {

// Members that both have, from `name` to the reserved words; OLD marks those that CUDA 13 dropped.
#define ROOFGEN_DEVICE_PROPERTIES(OLD)                                                                  \
  char name[256], uuid[16], luid[8];                                                                    \
  unsigned luid_mask;                                                                                   \
  size_t global_bytes, shared_per_block;                                                                \
  int registers_per_block, warp_size;                                                                   \
  size_t pitch;                                                                                         \
  int threads_per_block, threads_dim[3], grid_size[3];                                                  \
  OLD(int clock_khz;)                                                                                   \
  size_t constant_bytes;                                                                                \
  int major, minor;                                                                                     \
  size_t texture_alignment, texture_pitch_alignment;                                                    \
  OLD(int device_overlap;)                                                                              \
  int sms;                                                                                              \
  OLD(int kernel_timeout;)                                                                              \
  int integrated, can_map_host;                                                                         \
  OLD(int compute_mode;)                                                                                \
  int texture_1d, texture_1d_mipmap;                                                                    \
  OLD(int texture_1d_linear;)                                                                           \
  int textures[23], surfaces[14];                                                                       \
  size_t surface_alignment;                                                                             \
  int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, async_engines, unified_addressing; \
  OLD(int memory_clock_khz;)                                                                            \
  int bus_bits, l2_bytes, persisting_l2_bytes, threads_per_sm, stream_priorities, global_l1, local_l1;  \
  size_t shared_per_sm;                                                                                 \
  int registers_per_sm, managed, multi_gpu, multi_gpu_group, host_atomics;                              \
  OLD(int single_to_double;)                                                                            \
  int pageable_access, concurrent_managed, preemption, host_pointer_for_registered, cooperative;        \
  OLD(int cooperative_multi_device;)                                                                    \
  size_t shared_per_block_optin;                                                                        \
  int host_page_tables, direct_managed_from_host, ctas_per_sm, access_window;                           \
  size_t reserved_shared;                                                                               \
  int host_register, sparse_arrays, host_register_read_only, timeline_semaphores, memory_pools, rdma;   \
  unsigned rdma_flush;                                                                                  \
  int rdma_order;                                                                                       \
  unsigned pool_handle_types;                                                                           \
  int deferred_arrays, ipc_event, cluster_launch, unified_functions, more[63];

#define ROOFGEN_DROP(member)
#define ROOFGEN_KEEP(member) member
struct Properties {
  ROOFGEN_DEVICE_PROPERTIES(ROOFGEN_DROP)
};
struct Properties12 {
  ROOFGEN_DEVICE_PROPERTIES(ROOFGEN_KEEP)
};
#undef ROOFGEN_DROP
#undef ROOFGEN_KEEP
#undef ROOFGEN_DEVICE_PROPERTIES

}  // namespace roofgen::shim::cudart

// The structures of cuda.h in calls of the simulated driver; tests/shim/signatures.h compares them with the header.
#pragma once

#include <cstddef>

#include "runtime/cuda/driver.h"

namespace roofgen::shim {

using cuda::Address;
using cuda::Handle;

inline constexpr unsigned kHostMemory = 1, kDeviceMemory = 2, kArrayMemory = 3, kUnifiedMemory = 4;  // CUmemorytype

/// One side of a CUDA_MEMCPY2D.
struct Side2d {
  size_t x = 0, y = 0;
  unsigned type = 0;
  void* host = nullptr;
  Address device = 0;
  Handle array = nullptr;
  size_t pitch = 0;
};
struct Copy2d {
  Side2d from, to;
  size_t width = 0, height = 0;
};

/// One side of a CUDA_MEMCPY3D.
struct Side3d {
  size_t x = 0, y = 0, z = 0, level = 0;
  unsigned type = 0;
  void* host = nullptr;
  Address device = 0;
  Handle array = nullptr;
  void* reserved = nullptr;
  size_t pitch = 0, height = 0;
};
struct Copy3d {
  Side3d from, to;
  size_t width = 0, height = 0, depth = 0;
};

inline constexpr unsigned kLayered = 1, kGather = 8;  ///< CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_TEXTURE_GATHER
struct ArrayDescriptor {                              ///< CUDA_ARRAY_DESCRIPTOR
  size_t width = 0, height = 0;
  int format = 0;
  unsigned channels = 0;
};
struct Array3dDescriptor {  ///< CUDA_ARRAY3D_DESCRIPTOR
  size_t width = 0, height = 0, depth = 0;
  int format = 0;
  unsigned channels = 0, flags = 0;
};
enum class ResourceType : int { kArray = 0, kMipmappedArray = 1, kLinear = 2, kPitch2d = 3 };  ///< CUresourcetype
struct Resource {                                                                              ///< CUDA_RESOURCE_DESC
  ResourceType type = ResourceType::kArray;
  union {
    Handle array;
    struct {
      Address at;
      int format;
      unsigned channels;
      size_t size;  ///< linear memory: bytes; in two dimensions: elements of a row
      size_t height, pitch;
    } memory;
    int reserved[32] = {};
  } of;
  unsigned flags = 0;
};
struct TextureDescription {  ///< CUDA_TEXTURE_DESC
  unsigned mode[3] = {}, filter = 0, flags = 0, anisotropy = 0, level_filter = 0;
  float level_bias = 0, least_level = 0, most_level = 0, border[4] = {};
  int reserved[12] = {};
};

struct ContextParams {  ///< CUctxCreateParams
  const void* affinity = nullptr;
  int affinity_count = 0;
  const void* graphics = nullptr;
};

struct Location {  ///< CUmemLocation
  int type = 0, id = 0;
};
inline constexpr int kOnDevice = 1;  ///< CU_MEM_LOCATION_TYPE_DEVICE
struct AccessDesc {                  ///< CUmemAccessDesc
  Location location;
  int flags = 0;
};
struct PoolProps {  ///< CUmemPoolProps
  int allocation_type = 0, handle_types = 0;
  Location location;
  void* security = nullptr;
  size_t most_bytes = 0;
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

struct KernelNodeParams {  ///< CUDA_KERNEL_NODE_PARAMS_v2
  Handle function = nullptr;
  unsigned grid_x = 0, grid_y = 0, grid_z = 0, block_x = 0, block_y = 0, block_z = 0, smem_bytes = 0;
  void** args = nullptr;
  void** extra = nullptr;
  Handle kernel = nullptr, context = nullptr;
};
struct MemsetNodeParams {  ///< CUDA_MEMSET_NODE_PARAMS
  Address at = 0;
  size_t pitch = 0;
  unsigned value = 0, element_bytes = 0;
  size_t width = 0, height = 0;
};
using HostFunction = void (*)(void*);
struct HostNodeParams {  ///< CUDA_HOST_NODE_PARAMS
  HostFunction function = nullptr;
  void* data = nullptr;
};
struct InstantiateParams {  ///< CUDA_GRAPH_INSTANTIATE_PARAMS
  unsigned long long flags = 0;
  Handle upload_stream = nullptr, error_node = nullptr;
  int result = 0;
};

}  // namespace roofgen::shim

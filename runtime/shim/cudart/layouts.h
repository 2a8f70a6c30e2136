// Structs of the runtime API. tests/shim/cudart_layouts.cpp compares them with driver_types.h.
#pragma once

#include "runtime/cuda/driver.h"

namespace roofgen::shim::cudart {

struct Extent {  // dim3 and uint3
  unsigned x, y, z;
};
struct Pitched {  // cudaPitchedPtr
  void* at;
  size_t pitch, width, height;
};
struct Volume {  // cudaExtent
  size_t width, height, depth;
};
struct Copy {  // cudaMemcpy3DParms
  cuda::Handle from_array;
  size_t from_at[3];
  Pitched from;
  cuda::Handle to_array;
  size_t to_at[3];
  Pitched to;
  Volume extent;
  int kind;
};
struct PointerAttributes {  // cudaPointerAttributes without the reserved words of CUDA 13
  int type, device;
  void *on_device, *on_host;
};
struct ChannelFormat {  // cudaChannelFormatDesc
  int x, y, z, w, kind;
};
struct RuntimeResource {  // cudaResourceDesc
  int type;
  union {
    cuda::Handle array;
    struct {
      void* at;
      ChannelFormat channels;
      size_t size, height, pitch;
    } memory;
    int reserved[32];
  } of;
  unsigned flags;
};
struct RuntimeTexture {  // cudaTextureDesc
  unsigned mode[3], filter, read_mode;
  int srgb;
  float border[4];
  int normalised_coordinates;
  unsigned anisotropy, level_filter;
  float level_bias, least_level, most_level;
  int no_trilinear, seamless;
};
struct FunctionAttributes {  // cudaFuncAttributes; from `registers` on in the order of CUfunction_attribute
  size_t shared, constant, local;
  int threads, registers, ptx, binary, cache_ca, dynamic_shared, carveout, cluster_must_be_set, cluster[3], policy,
      big_clusters, reserved[16];
};
struct RuntimeLaunch {  // cudaLaunchConfig_t
  Extent grid, block;
  size_t smem;
  cuda::Handle stream;
  cuda::LaunchAttribute* attributes;
  unsigned attribute_count;
};
struct RuntimeKernelNode {  // cudaKernelNodeParams
  const void* kernel;
  Extent grid, block;
  unsigned smem;
  void **args, **extra;
};

}  // namespace roofgen::shim::cudart

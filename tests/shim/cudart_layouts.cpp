// Compares the driver's entry points as the runtime declares them with cuda.h, and the runtime's structs with
// driver_types.h, at compile time.
#define __CUDA_API_VERSION_INTERNAL  // cuda.h then also declares older forms, and renames nothing
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "tests/support/same.h"

#define ROOFGEN_DRIVER(name, ...)                                                         \
  static_assert(Same<::roofgen::shim::Status (*)(__VA_ARGS__), decltype(&::name)>::value, \
                #name " is not as cuda.h has it");
#include "runtime/shim/cudart/driver.h"
#include "runtime/shim/cudart/layouts.h"
#include "runtime/shim/cudart/properties.h"

using namespace roofgen::shim::cudart;

#define LAYOUT(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define MEMBER(ours, member, theirs, its) \
  static_assert(offsetof(ours, member) == offsetof(theirs, its), #theirs "." #its)
LAYOUT(Extent, dim3);
LAYOUT(Pitched, cudaPitchedPtr);
MEMBER(Pitched, height, cudaPitchedPtr, ysize);
LAYOUT(Volume, cudaExtent);
LAYOUT(Copy, cudaMemcpy3DParms);
MEMBER(Copy, from, cudaMemcpy3DParms, srcPtr);
MEMBER(Copy, to_array, cudaMemcpy3DParms, dstArray);
MEMBER(Copy, extent, cudaMemcpy3DParms, extent);
MEMBER(Copy, kind, cudaMemcpy3DParms, kind);
LAYOUT(RuntimeResource, cudaResourceDesc);
MEMBER(RuntimeResource, of.memory.channels, cudaResourceDesc, res.linear.desc);
MEMBER(RuntimeResource, of.memory.size, cudaResourceDesc, res.pitch2D.width);
MEMBER(RuntimeResource, of.memory.pitch, cudaResourceDesc, res.pitch2D.pitchInBytes);
LAYOUT(RuntimeTexture, cudaTextureDesc);
MEMBER(RuntimeTexture, read_mode, cudaTextureDesc, readMode);
MEMBER(RuntimeTexture, border, cudaTextureDesc, borderColor);
MEMBER(RuntimeTexture, normalised_coordinates, cudaTextureDesc, normalizedCoords);
MEMBER(RuntimeTexture, seamless, cudaTextureDesc, seamlessCubemap);
static_assert(sizeof(PointerAttributes) == offsetof(cudaPointerAttributes, reserved));
MEMBER(PointerAttributes, on_host, cudaPointerAttributes, hostPointer);
LAYOUT(FunctionAttributes, cudaFuncAttributes);
MEMBER(FunctionAttributes, threads, cudaFuncAttributes, maxThreadsPerBlock);
MEMBER(FunctionAttributes, registers, cudaFuncAttributes, numRegs);
MEMBER(FunctionAttributes, ptx, cudaFuncAttributes, ptxVersion);
MEMBER(FunctionAttributes, dynamic_shared, cudaFuncAttributes, maxDynamicSharedSizeBytes);
MEMBER(FunctionAttributes, cluster, cudaFuncAttributes, requiredClusterWidth);
MEMBER(FunctionAttributes, big_clusters, cudaFuncAttributes, nonPortableClusterSizeAllowed);
LAYOUT(RuntimeLaunch, cudaLaunchConfig_t);
MEMBER(RuntimeLaunch, smem, cudaLaunchConfig_t, dynamicSmemBytes);
MEMBER(RuntimeLaunch, attribute_count, cudaLaunchConfig_t, numAttrs);
LAYOUT(roofgen::cuda::LaunchAttribute, cudaLaunchAttribute);
LAYOUT(RuntimeKernelNode, cudaKernelNodeParams);
MEMBER(RuntimeKernelNode, smem, cudaKernelNodeParams, sharedMemBytes);
MEMBER(RuntimeKernelNode, extra, cudaKernelNodeParams, extra);
LAYOUT(roofgen::shim::MemsetNodeParams, cudaMemsetParams);
MEMBER(roofgen::shim::MemsetNodeParams, width, cudaMemsetParams, width);
LAYOUT(roofgen::shim::PoolProps, cudaMemPoolProps);
LAYOUT(roofgen::shim::AccessDesc, cudaMemAccessDesc);
LAYOUT(roofgen::shim::Location, cudaMemLocation);
LAYOUT(ChannelFormat, cudaChannelFormatDesc);

LAYOUT(Properties, cudaDeviceProp);
MEMBER(Properties, luid_mask, cudaDeviceProp, luidDeviceNodeMask);
MEMBER(Properties, pitch, cudaDeviceProp, memPitch);
MEMBER(Properties, constant_bytes, cudaDeviceProp, totalConstMem);
MEMBER(Properties, sms, cudaDeviceProp, multiProcessorCount);
MEMBER(Properties, textures, cudaDeviceProp, maxTexture2D);
MEMBER(Properties, surfaces, cudaDeviceProp, maxSurface1D);
MEMBER(Properties, surface_alignment, cudaDeviceProp, surfaceAlignment);
MEMBER(Properties, unified_addressing, cudaDeviceProp, unifiedAddressing);
MEMBER(Properties, local_l1, cudaDeviceProp, localL1CacheSupported);
MEMBER(Properties, shared_per_sm, cudaDeviceProp, sharedMemPerMultiprocessor);
MEMBER(Properties, cooperative, cudaDeviceProp, cooperativeLaunch);
MEMBER(Properties, shared_per_block_optin, cudaDeviceProp, sharedMemPerBlockOptin);
MEMBER(Properties, reserved_shared, cudaDeviceProp, reservedSharedMemPerBlock);
MEMBER(Properties, memory_pools, cudaDeviceProp, memoryPoolsSupported);
MEMBER(Properties, unified_functions, cudaDeviceProp, unifiedFunctionPointers);
// CUDA 12.9 has no header here: eight numbers of CUDA 12 were dropped, and 13 named some of the reserved ones.
static_assert(sizeof(Properties12) == 1032);

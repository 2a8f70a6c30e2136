// Compares the entry points' types with cuda.h at compile time. If cuda.h of CUDA 13.0 is found, CMake includes each
// api_*.cpp of the simulated driver after this file, with ROOFGEN_CU defined as a comparison.
#pragma once

#define __CUDA_API_VERSION_INTERNAL  // cuda.h then also declares older forms, and renames nothing
#include <cuda.h>
#include <cudaProfiler.h>

#include <cstddef>

#include "runtime/shim/layouts.h"
#include "tests/support/same.h"

// The structs: their sizes and the offsets of their members.
#define LAYOUT(ours, theirs) static_assert(sizeof(roofgen::shim::ours) == sizeof(theirs), #theirs)
#define MEMBER(ours, member, theirs, its) \
  static_assert(offsetof(roofgen::shim::ours, member) == offsetof(theirs, its), #theirs "." #its)
LAYOUT(Copy2d, CUDA_MEMCPY2D);
MEMBER(Copy2d, from.host, CUDA_MEMCPY2D, srcHost);
MEMBER(Copy2d, from.pitch, CUDA_MEMCPY2D, srcPitch);
MEMBER(Copy2d, to, CUDA_MEMCPY2D, dstXInBytes);
MEMBER(Copy2d, to.type, CUDA_MEMCPY2D, dstMemoryType);
MEMBER(Copy2d, to.device, CUDA_MEMCPY2D, dstDevice);
MEMBER(Copy2d, width, CUDA_MEMCPY2D, WidthInBytes);
LAYOUT(Copy3d, CUDA_MEMCPY3D);
MEMBER(Copy3d, from.type, CUDA_MEMCPY3D, srcMemoryType);
MEMBER(Copy3d, from.pitch, CUDA_MEMCPY3D, srcPitch);
MEMBER(Copy3d, to, CUDA_MEMCPY3D, dstXInBytes);
MEMBER(Copy3d, to.device, CUDA_MEMCPY3D, dstDevice);
MEMBER(Copy3d, to.height, CUDA_MEMCPY3D, dstHeight);
MEMBER(Copy3d, width, CUDA_MEMCPY3D, WidthInBytes);
LAYOUT(ArrayDescriptor, CUDA_ARRAY_DESCRIPTOR);
MEMBER(ArrayDescriptor, channels, CUDA_ARRAY_DESCRIPTOR, NumChannels);
LAYOUT(Array3dDescriptor, CUDA_ARRAY3D_DESCRIPTOR);
MEMBER(Array3dDescriptor, format, CUDA_ARRAY3D_DESCRIPTOR, Format);
MEMBER(Array3dDescriptor, flags, CUDA_ARRAY3D_DESCRIPTOR, Flags);
LAYOUT(Resource, CUDA_RESOURCE_DESC);
MEMBER(Resource, of.memory.at, CUDA_RESOURCE_DESC, res.linear.devPtr);
MEMBER(Resource, of.memory.size, CUDA_RESOURCE_DESC, res.linear.sizeInBytes);
MEMBER(Resource, of.memory.channels, CUDA_RESOURCE_DESC, res.pitch2D.numChannels);
MEMBER(Resource, of.memory.size, CUDA_RESOURCE_DESC, res.pitch2D.width);
MEMBER(Resource, of.memory.pitch, CUDA_RESOURCE_DESC, res.pitch2D.pitchInBytes);
MEMBER(Resource, flags, CUDA_RESOURCE_DESC, flags);
LAYOUT(TextureDescription, CUDA_TEXTURE_DESC);
MEMBER(TextureDescription, filter, CUDA_TEXTURE_DESC, filterMode);
MEMBER(TextureDescription, most_level, CUDA_TEXTURE_DESC, maxMipmapLevelClamp);
MEMBER(TextureDescription, border, CUDA_TEXTURE_DESC, borderColor);
LAYOUT(ContextParams, CUctxCreateParams);
MEMBER(ContextParams, graphics, CUctxCreateParams, cigParams);
LAYOUT(AccessDesc, CUmemAccessDesc);
MEMBER(AccessDesc, flags, CUmemAccessDesc, flags);
LAYOUT(PoolProps, CUmemPoolProps);
MEMBER(PoolProps, location, CUmemPoolProps, location);
MEMBER(PoolProps, most_bytes, CUmemPoolProps, maxSize);
LAYOUT(KernelNodeParams, CUDA_KERNEL_NODE_PARAMS);
MEMBER(KernelNodeParams, block_x, CUDA_KERNEL_NODE_PARAMS, blockDimX);
MEMBER(KernelNodeParams, smem_bytes, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
MEMBER(KernelNodeParams, args, CUDA_KERNEL_NODE_PARAMS, kernelParams);
static_assert(offsetof(roofgen::shim::KernelNodeParams, kernel) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1),
              "the older form");
MEMBER(KernelNodeParams, kernel, CUDA_KERNEL_NODE_PARAMS, kern);
LAYOUT(MemsetNodeParams, CUDA_MEMSET_NODE_PARAMS);
MEMBER(MemsetNodeParams, value, CUDA_MEMSET_NODE_PARAMS, value);
MEMBER(MemsetNodeParams, width, CUDA_MEMSET_NODE_PARAMS, width);
LAYOUT(HostNodeParams, CUDA_HOST_NODE_PARAMS);
LAYOUT(InstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS);
MEMBER(InstantiateParams, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);
#undef LAYOUT
#undef MEMBER

#define ROOFGEN_CU(name, needs, params, ...) \
  static_assert(Same<::roofgen::shim::Status(*) params, decltype(&::name)>::value, #name " is not as cuda.h has it");
// The other variants have the same type.
#define ROOFGEN_CU_PTSZ ROOFGEN_CU
#define ROOFGEN_CU_PTDS ROOFGEN_CU

// Only the functions' bodies use these.
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"

// Compares the runtime's calls with cuda_runtime_api.h at compile time, like signatures.h those of the driver.
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "tests/support/same.h"

// Calls that the header does not declare.
extern "C" {
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaThreadSynchronize();
cudaError_t cudaGetDeviceProperties_v2(void*, int);
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                                        const cudaGraphNode_t**, size_t*);
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                                        const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*);
}

#define ROOFGEN_CUDART(name, params, ...) \
  static_assert(Same<int(*) params, decltype(&::name)>::value, #name " is not as cuda_runtime_api.h has it");
#define ROOFGEN_CUDART_PTSZ ROOFGEN_CUDART
#define ROOFGEN_CUDART_PTDS ROOFGEN_CUDART
#define PASS ROOFGEN_CUDART
#define PASS_PTSZ ROOFGEN_CUDART

// Only the functions' bodies use these.
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

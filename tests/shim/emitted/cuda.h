/* The few driver API declarations used by the programs here, so that no toolkit is needed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st* CUcontext;
typedef unsigned long long CUdeviceptr;
enum { CUDA_SUCCESS = 0 };

#define cuCtxCreate cuCtxCreate_v2
#define cuMemAlloc cuMemAlloc_v2
#define cuMemsetD8 cuMemsetD8_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2

CUresult cuInit(unsigned);
CUresult cuDeviceGet(CUdevice*, int);
CUresult cuCtxCreate(CUcontext*, unsigned, CUdevice);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc(CUdeviceptr*, size_t);
CUresult cuMemsetD8(CUdeviceptr, unsigned char, size_t);
CUresult cuMemcpyHtoD(CUdeviceptr, const void*, size_t);
CUresult cuMemcpyDtoH(void*, CUdeviceptr, size_t);

// grid: 1  block: 32
// args: [{"name": "x", "type": "f32", "size": 32, "fill": "random", "seed": 6, "range": [1, 2]}, {"name": "y", "type": "f32", "size": 224}]
// Each part of y is 1.1 x or its rounding to bf16, after some way through registers and memory.
#include <cuda_bf16.h>
__global__ void moves(const float* x, float* y) {
  __shared__ __align__(16) float source[32];
  __shared__ __align__(16) float copied[32];
  __shared__ unsigned bits;
  const int i = threadIdx.x;
  const float v = x[i] * 1.1f;
  const unsigned short b = __bfloat16_as_ushort(__float2bfloat16(v));
  y[i] = __uint_as_float((unsigned)b << 16);
  y[32 + i] = __uint_as_float(__byte_perm(b, b, 0x1044) & 0xffff0000u);
  const unsigned long long wide = (unsigned long long)__float_as_uint(v) << 32 | b;
  y[64 + i] = __uint_as_float((unsigned)(wide >> 32));
  y[96 + i] = -__uint_as_float(__float_as_uint(v) | 0x80000000u);
  source[i] = v;
  __syncwarp();
  y[128 + i] = __shfl_xor_sync(~0u, __shfl_xor_sync(~0u, source[i], 5), 5);
  if (i == 0) bits = 0;
  __syncwarp();
  atomicMax(&bits, __float_as_uint(v));  // of the largest
  __syncwarp();
  y[160 + i] = __uint_as_float(bits);
  y[192 + i] = v;
  __syncwarp();
  const unsigned from = (unsigned)((i + 1) % 32);
  copied[i] = 0;
  __syncwarp();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\ncp.async.wait_all;" ::"r"((unsigned)__cvta_generic_to_shared(copied + i)), "l"(y + 192 + i) : "memory");
  __syncwarp();
  y[192 + from] = copied[from];
}

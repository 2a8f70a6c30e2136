// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// finds: uninitialised at 9
#include <cuda_fp16.h>
__global__ void k(int* y) {
  __shared__ __half2 s[32];
  const int t = threadIdx.x;
  reinterpret_cast<__half*>(&s[t])[1] = __int2half_rn(t);
  const __half2 twice = __hadd2(s[t], s[t]);
  y[t] = __half2int_rn(__low2half(twice));
}

// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// with cta_bits_other_half_of_a_pair: uninitialised at 10
//   args: [{"name": "y", "type": "i32", "size": 32}]
#include <cuda_fp16.h>
__global__ void k(int* y) {
  __shared__ __half2 s[32];
  const int t = threadIdx.x;
  reinterpret_cast<__half*>(&s[t])[1] = __int2half_rn(t);
  const __half2 twice = __hadd2(s[t], s[t]);
  y[t] = __half2int_rn(__high2half(twice));
  // edit cta_bits_other_half_of_a_pair: y[t] = __half2int_rn(__low2half(twice));
  const __half2 turned = __lowhigh2highlow(s[t]);
  // edit cta_bits_other_half_of_a_pair:
  y[t + 32] = __half2int_rn(__low2half(turned));
  // edit cta_bits_other_half_of_a_pair:
}

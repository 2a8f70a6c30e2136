// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: uninitialised at 7
__device__ __noinline__ int f(int t, bool write) {
  volatile unsigned own[2];
  if (write) own[t & 1] = (own[t & 1] & ~0xf0u) | 0x50;
  return own[t & 1] >> 4 & 15;
}
__global__ void k(int* y) {
  const int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < 2; ++i) y[t + 32 * i] = f(t, i == 0);
}

// Shifts and exclusive ors: every instruction runs on the ALU.
// grid: 864  block: 256  device: a100-sxm-80
// args: [{"name": "y", "type": "u32", "size": 221184}]
// limiter: throughput of the ALU pipe
__global__ void hash(unsigned* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a = i + 1, b = i + 77;
#pragma unroll 16
  for (int k = 0; k < 256; ++k) a ^= a << 13, b ^= b << 13, a ^= a >> 17, b ^= b >> 17, a ^= a << 5, b ^= b << 5;  // <- here
  y[i] = a ^ b;
}

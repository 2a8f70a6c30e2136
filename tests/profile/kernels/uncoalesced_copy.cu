// Each lane reads a sector of its own and uses 4 of its 32 bytes: 9 times the bytes of a copy come from and go to DRAM.
// grid: 16384  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 33554432}, {"name": "y", "type": "f32", "size": 4194304}]
// limiter: DRAM bandwidth
__global__ void copy(const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[8 * i];  // <- here
}

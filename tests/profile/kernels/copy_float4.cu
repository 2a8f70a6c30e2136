// A streaming copy of 256 MB.
// grid: 65536  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 67108864}, {"name": "y", "type": "f32", "size": 67108864}]
// limiter: DRAM bandwidth
__global__ void copy(const float4* x, float4* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i];  // <- here
}

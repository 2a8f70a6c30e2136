// Every lane adds to the same word of L2, which takes one addition after the other.
// grid: 1728  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 442368}, {"name": "y", "type": "f32", "size": 1}]
// limiter: atomic
__global__ void sum(const float* x, float* y) {
  atomicAdd(y, x[blockIdx.x * blockDim.x + threadIdx.x]);  // <- here
}

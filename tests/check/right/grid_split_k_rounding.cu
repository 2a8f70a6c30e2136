// grid: 16  block: 32
// args: [{"name": "y", "type": "f32", "size": 32, "fill": 0, "expect": 27.04583, "relative_tolerance": 1e-4}]
// differs: rounding
__global__ void add(float* y) {
  atomicAdd(y + threadIdx.x, 8.0f / static_cast<float>(blockIdx.x + 1));
}

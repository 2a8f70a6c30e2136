// grid: 7  block: 32
// args: [{"name": "y", "type": "f32", "size": 32, "fill": 0, "expect": 28}]
// finds: nothing
__global__ void add(float* y) {
  atomicAdd(y + threadIdx.x, static_cast<float>(blockIdx.x + 1));
}

// grid: 7  block: 32
// args: [{"name": "y", "type": "f32", "size": 32, "fill": 0, "expect": 28}]
// with grid_split_k_without_atomics: race at 6
//   grid: 4
__global__ void add(float* y) {
  atomicAdd(y + threadIdx.x, static_cast<float>(blockIdx.x + 1));
  // edit grid_split_k_without_atomics: y[threadIdx.x] += blockIdx.x + 1;
}

// grid: 8  block: 32
// args: [{"name": "y", "type": "i32", "size": 1, "fill": -1, "expect": 255}]
__global__ void highest(int* y) {
  atomicMax(y, static_cast<int>(blockIdx.x * 32 + threadIdx.x));
}

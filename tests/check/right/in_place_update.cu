// grid: 4  block: 64
// args: [{"name": "x", "type": "f32", "size": 256, "fill": 3, "expect": 7}]
__global__ void twice_and_one(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 2 * x[i] + 1;
}

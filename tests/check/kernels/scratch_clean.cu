// grid: 2  block: 64
// args: [{"name": "scratch", "type": "f32", "size": 128}, {"name": "y", "type": "f32", "size": 128, "expect": "iota"}]
// finds: nothing
__global__ void reverse(float* scratch, float* y) {
  const int first = blockIdx.x * 64, i = threadIdx.x;
  scratch[first + i] = first + 63 - i;
  __syncthreads();
  y[first + i] = scratch[first + 63 - i];
}

// grid: 2  block: 64
// args: [{"name": "scratch", "type": "f32", "size": 128}, {"name": "y", "type": "f32", "size": 128, "expect": "iota"}]
// with scratch_no_barrier: race at 7, race at 10
//   args: [{"name": "scratch", "type": "f32", "size": 128, "fill": 0}, {"name": "y", "type": "f32", "size": 128}]
__global__ void reverse(float* scratch, float* y) {
  const int first = blockIdx.x * 64, i = threadIdx.x;
  scratch[first + i] = first + 63 - i;
  __syncthreads();
  // edit scratch_no_barrier:
  y[first + i] = scratch[first + 63 - i];
}

// grid: 2  block: 64
// args: [{"name": "scratch", "type": "f32", "size": 128, "fill": 0}, {"name": "y", "type": "f32", "size": 128}]
// finds: race at 6, race at 8
__global__ void reverse(float* scratch, float* y) {
  const int first = blockIdx.x * 64, i = threadIdx.x;
  scratch[first + i] = i;
  // no barrier
  y[first + i] = scratch[first + 63 - i];
}

// grid: 1  block: 16,16
// args: [{"name": "a", "type": "f32", "size": 256, "fill": "iota"}]
__global__ void transpose(float* a) {
  const int i = threadIdx.y * 16 + threadIdx.x, j = threadIdx.x * 16 + threadIdx.y;
  if (threadIdx.x < threadIdx.y) {
    const float v = a[i];
    a[i] = a[j];
    a[j] = v;
  }
}

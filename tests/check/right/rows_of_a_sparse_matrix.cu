// grid: 2  block: 64
// args: [{"name": "begin", "type": "i32", "size": 5, "values": [0, 40, 40, 41, 100]}, {"name": "value", "type": "f32", "size": 100, "fill": 1}, {"name": "y", "type": "f32", "size": 4, "expect": [40, 0, 1, 59]}]
__global__ void row_sums(const int* begin, const float* value, float* y) {
  __shared__ volatile float s[64];
  const int row = (blockIdx.x * 64 + threadIdx.x) / 32, lane = threadIdx.x & 31;
  float v = 0;
  for (int i = begin[row] + lane; i < begin[row + 1]; i += 32) v += value[i];
  s[threadIdx.x] = v;
  __syncwarp();
  for (int d = 16; d > 0; d /= 2) {
    if (lane < d) s[threadIdx.x] = v = v + s[threadIdx.x + d];
    __syncwarp();
  }
  if (lane == 0) y[row] = v;
}

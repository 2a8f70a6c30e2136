// grid: 4  block: 32
// args: [{"name": "x", "type": "f32", "size": 512, "fill": "iota"}, {"name": "y", "type": "f32", "size": 512}]
__device__ float sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  return v;
}
__global__ void layer_norm(const float* x, float* y) {
  const float* row = x + blockIdx.x * 128;
  float mean = 0, square = 0;
  for (int i = threadIdx.x; i < 128; i += 32) mean += row[i];
  mean = sum(mean) / 128;
  for (int i = threadIdx.x; i < 128; i += 32) square += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(sum(square) / 128 + 1e-5f);
  for (int i = threadIdx.x; i < 128; i += 32) y[blockIdx.x * 128 + i] = (row[i] - mean) * scale;
}

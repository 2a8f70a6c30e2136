// grid: 1  block: 32
// args: [{"name": "x", "type": "f32", "size": 1024, "fill": 1}, {"name": "y", "type": "f32", "size": 32}, {"type": "i32", "value": 17}]
// finds: out-of-array at 11
__global__ void columns(const float* x, float* y, int rows) {
  __shared__ float tile[16][33], scale[32][2];
  for (int r = 0; r < 16; ++r) tile[r][threadIdx.x] = x[r * 32 + threadIdx.x];
  scale[threadIdx.x][0] = scale[threadIdx.x][1] = 2;
  __syncthreads();
  float sum = 0;
  for (int r = 0; r < rows; ++r)
    sum += tile[r][threadIdx.x];
  y[threadIdx.x] = sum * scale[threadIdx.x][1];
}

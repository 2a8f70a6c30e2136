// grid: 2,2  block: 16,16
// args: [{"name": "a", "type": "f32", "size": 1024, "fill": 1}, {"name": "b", "type": "f32", "size": 1024, "fill": 1}, {"name": "c", "type": "f32", "size": 1024, "expect": 32}]
__global__ void matmul(const float* a, const float* b, float* c) {
  __shared__ float sa[2][16][16], sb[2][16][16];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0, tile = 0; k < 32; k += 16, tile ^= 1) {
    sa[tile][y][x] = a[row * 32 + k + x];
    sb[tile][y][x] = b[(k + y) * 32 + col];
    __syncthreads();  // also orders the reads of two rounds ago before these writes
    for (int i = 0; i < 16; ++i) sum += sa[tile][y][i] * sb[tile][i][x];
  }
  c[row * 32 + col] = sum;
}

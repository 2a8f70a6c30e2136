// grid: 2,2  block: 16,16
// args: [{"type": "f32", "size": 1024, "fill": 1}, {"type": "f32", "size": 1024, "fill": 2}, {"type": "f32", "size": 1024, "expect": 64}, {"type": "i32", "value": 32}]
// with matmul_second_barrier_missing: race at 9, race at 10, race at 12
__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
    // edit matmul_second_barrier_missing:
  }
  c[row * n + col] = sum;
}

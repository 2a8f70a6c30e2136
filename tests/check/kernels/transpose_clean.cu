// grid: 2,2  block: 32,32
// args: [{"type": "f32", "size": 4096, "fill": "iota"}, {"type": "f32", "size": 4096}]
// with transpose_conflicts_clean: nothing
//   conflicts at: 10
__global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][33];
  // edit transpose_conflicts_clean: 33 => 32
  tile[threadIdx.y][threadIdx.x] = x[(blockIdx.y * 32 + threadIdx.y) * 64 + blockIdx.x * 32 + threadIdx.x];
  __syncthreads();
  y[(blockIdx.x * 32 + threadIdx.y) * 64 + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

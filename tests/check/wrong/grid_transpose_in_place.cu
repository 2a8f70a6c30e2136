// grid: 2,2  block: 16,16
// args: [{"type": "i32", "size": 1024, "fill": "iota"}]
// finds: race
__global__ void transpose(int* x) {
  __shared__ int tile[16][17];
  const int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  tile[threadIdx.y][threadIdx.x] = x[i * 32 + j];
  __syncthreads();
  x[(blockIdx.x * 16 + threadIdx.y) * 32 + blockIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// grid: 1  block: 128
// args: [{"type": "u8", "size": 128, "fill": 3}, {"type": "i32", "size": 256, "fill": 0}]
// finds: race at 8
__global__ void histogram(const unsigned char* x, int* bins) {
  __shared__ int own[256];
  for (int i = threadIdx.x; i < 256; i += 128) own[i] = 0;
  __syncthreads();
  own[x[threadIdx.x]] += 1;
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 128) bins[i] += own[i];
}

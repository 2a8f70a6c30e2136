// grid: 4  block: 128
// args: [{"type": "u8", "size": 512, "fill": "iota"}, {"type": "i32", "size": 256, "fill": 0, "expect": 2}]
// finds: nothing
__global__ void histogram(const unsigned char* x, int* bins) {
  __shared__ int own[256];
  for (int i = threadIdx.x; i < 256; i += 128) own[i] = 0;
  __syncthreads();
  atomicAdd(&own[x[blockIdx.x * 128 + threadIdx.x]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 128) atomicAdd(&bins[i], own[i]);
}

// grid: 4  block: 128
// args: [{"type": "u8", "size": 512, "fill": "iota"}, {"type": "i32", "size": 256, "fill": 0, "expect": 2}]
// with histogram_without_atomics: race at 10
//   grid: 1
//   args: [{"type": "u8", "size": 128, "fill": 3}, {"type": "i32", "size": 256, "fill": 0}]
__global__ void histogram(const unsigned char* x, int* bins) {
  __shared__ int own[256];
  for (int i = threadIdx.x; i < 256; i += 128) own[i] = 0;
  __syncthreads();
  atomicAdd(&own[x[blockIdx.x * 128 + threadIdx.x]], 1);
  // edit histogram_without_atomics: own[x[threadIdx.x]] += 1;
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 128) atomicAdd(&bins[i], own[i]);
  // edit histogram_without_atomics: for (int i = threadIdx.x; i < 256; i += 128) bins[i] += own[i];
}

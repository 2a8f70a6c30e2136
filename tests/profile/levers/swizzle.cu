// ldmatrix on rows of 128 bytes: all rows begin in one bank, or the chunks of a row are permuted by its number.
// grid: 216  block: 128  device: a100-sxm-80
// args: [{"name": "y", "type": "u32", "size": 27648}]
// slow: -DSWIZZLE=0  fast: -DSWIZZLE=1  gain: 3
__global__ void load(unsigned* y) {
  __shared__ __align__(128) unsigned tile[64 * 32];
  for (unsigned k = threadIdx.x; k < 64 * 32; k += 128) tile[k] = k;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32, row = lane % 16 + 16 * (threadIdx.x / 32), base = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned k = 0; k < 256; ++k) {
#pragma unroll
    for (unsigned step = 0; step < 4; ++step) {
      const unsigned chunk = 2 * step + lane / 16, to = base + 128 * row + 16 * (SWIZZLE ? chunk ^ (row & 7) : chunk);
      unsigned a = 0, b = 0, c = 0, d = 0;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(to));
      sum += a ^ b ^ c ^ d;
    }
  }
  y[blockIdx.x * 128 + threadIdx.x] = sum;
}

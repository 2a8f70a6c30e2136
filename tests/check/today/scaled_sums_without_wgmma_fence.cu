// Multiplies ones of bf16 twice on the same sums, halved in between as the online softmax of attention scales them.
// A wgmma.fence orders the change of the registers before the next product.
// grid: 1  block: 128  arch: sm_90a
// args: [{"type": "i32", "size": 640, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 1024, "expect": 24}]
// finds: nothing
// with scaled_sums_without_wgmma_fence: race at 23
//   The registers are changed by ordinary instructions, and no wgmma.fence lies between that and the next product: it
//   may add to the sums of before. PTX ISA, wgmma.fence; NVIDIA/Fuser pull request 3680 quotes the two cases.
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Blocks of 8 rows of 16 bytes: those of the second half of k lie `leading` bytes further, the next 8 rows 128.
__device__ unsigned long long matrix(const void* p, unsigned leading) {
  const unsigned long long low = (at(p) & 0x3ffff) >> 4 | leading >> 4 << 16;
  return low | 128ull >> 4 << 32;
}

__device__ void multiply(float (&d)[8], const void* a, const void* b, int keep) {
  asm volatile(
      "{ .reg .pred sum;\nsetp.ne.b32 sum, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, sum, 1, 1, 0, 0; "
      "}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "l"(matrix(a, 1024)), "l"(matrix(b, 256)), "r"(keep));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__global__ void products(const int* x, float* y) {
  __shared__ __align__(128) int a[512], b[128];
  for (int i = threadIdx.x; i < 512; i += 128) a[i] = x[i];
  b[threadIdx.x] = x[512 + threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[8] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  multiply(d, a, b, 0);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
    d[i] *= 0.5f;
  }
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  // edit scaled_sums_without_wgmma_fence:
  multiply(d, a, b, 1);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
    y[i * 128 + threadIdx.x] = d[i];
  }
}

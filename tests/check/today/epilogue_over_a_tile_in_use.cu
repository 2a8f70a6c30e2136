// Two warpgroups multiply their own 64 x 16 tiles of A by one tile of B, then stage their sums over the tiles of A.
// A barrier of both warpgroups lies between their products and the epilogue.
// grid: 1  block: 256  arch: sm_90a
// args: [{"type": "i32", "size": 1152, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 2048, "expect": 16}]
// with epilogue_over_a_tile_in_use: async-pending at 29, race at hopper.cuh:67
//   Each warpgroup has waited for its own product only: the first one to finish overwrites the tile that the other
//   one's product still reads. NVIDIA/Fuser pull request 4151 has the case of a loop. PTX ISA, wgmma.mma_async (shared
//   memory must not be changed before wgmma.wait_group) and wgmma.wait_group.
#include "hopper.cuh"

// Blocks of 8 rows of 16 bytes: those of the second half of k lie `leading` bytes further, the next 8 rows 128.
__global__ void products(const int* x, float* y) {
  __shared__ __align__(128) int pool[2048];  // A of both groups, later the sums of both
  __shared__ __align__(128) int b[128];
  const int group = threadIdx.x / 128, t = threadIdx.x % 128;
  for (int i = threadIdx.x; i < 1024; i += 256) pool[i] = x[i];
  if (group == 0) b[t] = x[1024 + t];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[8] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  multiply(d, pool + 512 * group, b, 0);
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  __syncthreads();
  // edit epilogue_over_a_tile_in_use:
  float* staged = reinterpret_cast<float*>(pool) + 1024 * group;
  for (int i = 0; i < 8; ++i) {
    asm volatile("" : "+f"(d[i])::"memory");
    staged[i * 128 + t] = d[i];
  }
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
  for (int i = 0; i < 8; ++i) y[1024 * group + i * 128 + t] = staged[i * 128 + 127 - t];
}

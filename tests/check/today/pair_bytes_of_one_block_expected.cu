// Two blocks of a pair multiply 256 x 16 by 16 x 32 ones of bf16. Each loads its rows and half of the columns; the copies
// of both complete the mbarrier of the first block, as CUTLASS names it: by an address with bit 24 cleared.
// grid: 2  block: 128  arch: sm_100a
// args: [{"name": "a", "type": "bf16", "size": 4096, "fill": 1, "map": {"dims": [16, 256], "box": [16, 128], "swizzle": 32}}, {"name": "b", "type": "bf16", "size": 512, "fill": 1, "map": {"dims": [16, 32], "box": [16, 16], "swizzle": 32}}, {"name": "y", "type": "f32", "size": 4096, "expect": 16}]
// with pair_bytes_of_one_block_expected: deadlock
//   The barrier expects the bytes of one block, and those of both arrive. PTX ISA, cp.async.bulk.tensor
//   (".cta_group::2").
#include "blackwell.cuh"

#include <cuda.h>

__device__ void load(void* to, const CUtensorMap* map, int row, void* bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(at(to)),
      "l"(map), "r"(0), "r"(row), "r"(at(bar) & 0xfeffffff)
      : "memory");
}

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128)
    sums(const __grid_constant__ CUtensorMap of_a, const __grid_constant__ CUtensorMap of_b, float* y) {
  __shared__ __align__(1024) short a[2048], b[256];
  __shared__ unsigned long long full, done;
  __shared__ unsigned address;
  const unsigned rank = blockIdx.x % 2;
  if (threadIdx.x == 0) {
    init(&full, 1), init(&done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (threadIdx.x < 32) alloc<2>(&address, 32);
  before_sync();
  __syncthreads();
  cluster_sync();
  after_sync();
  const unsigned d = address;
  if (threadIdx.x == 0) {
    load(a, &of_a, 128 * rank, &full);
    load(b, &of_b, 16 * rank, &full);
  }
  if (threadIdx.x == 0 && rank == 0) {
    const int bytes = 2 * (sizeof a + sizeof b);
    // edit pair_bytes_of_one_block_expected: 2 * => 1 *
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&full)), "r"(bytes) : "memory");
    wait_for_cluster(&full, 0);
    after_sync();
    // Rows of 32 bytes, swizzled; 8 rows are 256 bytes.
    const auto swizzled = [](const void* p) {
      return (at(p) & 0x3ffff) >> 4 | 1ull << 16 | 256ull >> 4 << 32 | 1ull << 46 | 6ull << 61;
    };
    product<2>(d, swizzled(a), swizzled(b), bf16_product(256, 32), 0);
    commit_to_both(&done, 3);
  }
  __syncwarp();
  wait_for_cluster(&done, 0);
  after_sync();
  float z[16];
  load(z, d + lanes_of_warp());
  loaded();
  for (int i = 0; i < 16; ++i) y[2048 * rank + i * 128 + threadIdx.x] = z[i];
  before_sync();
  __syncthreads();
  cluster_sync();
  if (threadIdx.x < 32) dealloc<2>(d, 32);
}

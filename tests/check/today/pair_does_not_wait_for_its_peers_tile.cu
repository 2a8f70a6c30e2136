// Two blocks of a pair multiply 256 x 16 by 16 x 32 ones of bf16; each stores 16 columns of its 128 rows.
// The block that multiplies waits for the tiles of both.
// grid: 2  block: 128  arch: sm_100a
// args: [{"type": "i32", "size": 1152, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 4096, "expect": 16}]
// with pair_does_not_wait_for_its_peers_tile: race at blackwell.cuh:39
//   The product reads the shared memory of both blocks, and the other one may not have stored its tile. Seen where a
//   barrier counts the arrival of one block.
#include "blackwell.cuh"

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128) sums(const int* x, float* y) {
  __shared__ __align__(128) int ab[1152];
  __shared__ unsigned long long full, done;
  __shared__ unsigned address;
  const unsigned rank = blockIdx.x % 2;
  if (threadIdx.x == 0) {
    init(&full, 2), init(&done, 1);
    // edit pair_does_not_wait_for_its_peers_tile: &full, 2 => &full, 1
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (threadIdx.x < 32) alloc<2>(&address, 32);
  before_sync();
  __syncthreads();
  cluster_sync();
  after_sync();
  const unsigned d = address;
  // Each block stores 128 rows of A and half of the 32 columns of B.
  for (int i = threadIdx.x; i < 1152; i += 128) ab[i] = x[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0)
  // edit pair_does_not_wait_for_its_peers_tile: if (threadIdx.x == 0 && rank == 0)
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(of_rank(&full, 0)) : "memory");
  if (threadIdx.x == 0 && rank == 0) {
    wait_for_cluster(&full, 0);
    product<2>(d, tile(ab, 2048), tile(ab + 1024, 256), bf16_product(256, 32), 0);
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

// Block 0 of a cluster sends 32 numbers four times into one slot of block 1, which adds them up.
// Block 0 waits for the acknowledgement of block 1 before it sends again.
// grid: 2  block: 32  arch: sm_90a
// args: [{"type": "i32", "size": 128, "fill": 1}, {"name": "y", "type": "i32", "size": 32, "expect": 4}]
// with st_async_slot_reused: async-pending at 27, deadlock at hopper.cuh:47
//   Block 0 does not wait until block 1 has read the slot, so a number may be replaced before it is read, and the bytes
//   of one round may complete the phase of another. PTX ISA, st.async (weak, asynchronous) and mbarrier; the missing
//   back channel is that of facebookexperimental/triton pull request 2292 and NVIDIA/cccl issue 9994.
#include "hopper.cuh"

__global__ void __cluster_dims__(2, 1, 1) send(const int* x, int* y) {
  __shared__ int slot[32];
  __shared__ unsigned long long full, taken;
  const int t = threadIdx.x;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at(&taken)) : "memory");
  }
  cluster_sync();
  int sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (blockIdx.x == 0) {
      wait_for_cluster(&taken, i & 1 ^ 1);
      // edit st_async_slot_reused:
      asm volatile(
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(of_rank(&slot[t], 1)),
          "r"(x[32 * i + t]), "r"(of_rank(&full, 1))
          : "memory");
    } else {
      if (t == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at(&full)) : "memory");
      wait_for_cluster(&full, i & 1);
      sum += slot[31 - t];
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(of_rank(&taken, 0)) : "memory");
    }
  }
  if (blockIdx.x == 1) y[t] = sum;
  cluster_sync();
}

// A producer warp loads eight rows into a ring of two slots by bulk copies; three warps add them up.
// The producer waits until the readers of the slot have arrived at its empty barrier.
// grid: 1  block: 128
// args: [{"type": "i32", "size": 768, "fill": 1}, {"name": "y", "type": "i32", "size": 96, "expect": 8}]
// with ring_slot_never_emptied: bad-barrier at hopper.cuh:32
//   The producer does not wait for a slot's readers: from the third row on it overwrites slots that are still read. The
//   same as a forgotten consumer_release/producer_acquire pair; NVlabs/cuda-oxide pull request 1066 ("mailbox without
//   an ack barrier"). PTX ISA, mbarrier and cp.async.bulk.
#include "hopper.cuh"

using word = unsigned long long;
__global__ void sum_rows(const int* x, int* y) {
  __shared__ __align__(128) int slots[2][96];
  __shared__ word full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 96;" ::"r"(at(&empty[s])) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 8; ++i) {
      wait(&empty[i % 2], (i / 2 & 1) ^ 1);
      // edit ring_slot_never_emptied:
      load(slots[i % 2], x + 96 * i, sizeof slots[0], &full[i % 2]);
    }
  } else if (threadIdx.x >= 32) {
    int sum = 0;
    for (int i = 0; i < 8; ++i) {
      wait(&full[i % 2], i / 2 & 1);
      sum += slots[i % 2][127 - threadIdx.x];
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&empty[i % 2])) : "memory");
    }
    y[127 - threadIdx.x] = sum;
  }
}

// grid: 1  block: 32  arch: sm_90a
// args: [{"type": "i32", "size": 32}]
// finds: race at 13
// Plain stores to shared memory, then a bulk copy out of it. The proxy fence is of global memory only
// (fence.proxy.async.global): it does not order accesses to shared memory (PTX ISA, membar/fence, ".proxykind").
__global__ void k(int* y) {
  __shared__ __align__(128) int data[32];
  data[threadIdx.x] = threadIdx.x;
  asm volatile("fence.proxy.async.global;" ::: "memory");
  __syncwarp();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;" ::"l"(__cvta_generic_to_global(y)),
                 "r"((unsigned)__cvta_generic_to_shared(data)) : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}

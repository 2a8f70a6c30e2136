// Block 0 writes a row with a bulk copy and raises a flag; block 1 waits for the flag and copies the row.
// wait_group without .read waits until the row is written and visible to the thread that raises the flag.
// grid: 2  block: 128
// args: [{"name": "row", "type": "i32", "size": 128}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 128, "expect": "iota"}]
// leaves open: orders
// with bulk_store_published_before_written: race at 33
//   wait_group.read waits only until the copy has read shared memory: block 1 may read the row before it is written.
//   Asked of HazyResearch/ThunderKittens in issue 194. PTX ISA, cp.async.bulk.wait_group (".read").
#include "hopper.cuh"

__global__ void pass_on(int* row, unsigned* flag, int* y) {
  __shared__ __align__(128) int staged[128];
  if (blockIdx.x == 0) {
    staged[threadIdx.x] = threadIdx.x;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
      store(row, staged, sizeof staged);
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
      // edit bulk_store_published_before_written: wait_group => wait_group.read
      asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(__cvta_generic_to_global(flag)) : "memory");
    }
  } else {
    if (threadIdx.x == 0) {
      unsigned raised = 0;
      while (!raised)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(raised)
                     : "l"(__cvta_generic_to_global(flag))
                     : "memory");
    }
    __syncthreads();
    y[threadIdx.x] = row[threadIdx.x];
  }
}

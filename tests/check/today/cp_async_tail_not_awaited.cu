// Adds up eight rows of 256 floats for each block, loaded by cp.async two rows ahead into three slots.
// An empty group is committed for each row that is no longer loaded.
// grid: 2  block: 64
// args: [{"type": "f32", "size": 4096, "fill": 1}, {"name": "y", "type": "f32", "size": 512, "expect": 8}]
// with cp_async_tail_not_awaited: async-pending at 35
//   No group is committed once there is nothing left to load, so "all but the last group" no longer covers the last
//   row: it is read before it has landed. The kind of csarofeen/pytorch pull request 2457; triton-lang/triton pull
//   request 1783 keeps the empty groups. PTX ISA, cp.async.wait_group.
constexpr int kRows = 8, kSlots = 3;

__device__ void copy(float* to, const float* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(__cvta_generic_to_global(from))
               : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

__global__ void sum_rows(const float* x, float* y) {
  __shared__ __align__(16) float slots[kSlots][256];
  const int t = threadIdx.x;
  x += blockIdx.x * kRows * 256;
  float sum[4] = {};
  for (int i = 0; i < kSlots - 1; ++i) {
    copy(&slots[i][4 * t], x + 256 * i + 4 * t);
    commit();
  }
  for (int i = 0; i < kRows; ++i) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kSlots - 2) : "memory");
    __syncthreads();
    const int next = i + kSlots - 1;
    if (next < kRows) copy(&slots[next % kSlots][4 * t], x + 256 * next + 4 * t);
    // edit cp_async_tail_not_awaited: copy => { copy
    commit();
    // edit cp_async_tail_not_awaited: commit(); }
    for (int k = 0; k < 4; ++k) sum[k] += slots[i % kSlots][255 - (64 * k + t)];
  }
  for (int k = 0; k < 4; ++k) y[blockIdx.x * 256 + 64 * k + t] = sum[k];
}

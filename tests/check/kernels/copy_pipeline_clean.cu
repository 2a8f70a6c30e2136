// grid: 2  block: 64
// args: [{"type": "f32", "size": 4096, "fill": 1}, {"name": "y", "type": "f32", "size": 512, "expect": 8}]
// with copy_pipeline_no_barrier: race at 10, race at 30
// with copy_pipeline_too_few_slots: async-pending at 30, race at 10
//   two slots for three tiles
// with copy_pipeline_waits_for_too_few: async-pending at 30, race at 30
constexpr int kStages = 3, kTile = 256;
// edit copy_pipeline_too_few_slots: constexpr int kStages = 3, kSlots = 2, kTile = 256;
__device__ void copy(float* to, const float* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from));
}
__global__ void stream(const float* x, float* y) {
  __shared__ __align__(16) float box[kStages][kTile];
  const int t = threadIdx.x;
  x += blockIdx.x * 8 * kTile;
  float sum[4] = {};
  for (int i = 0; i < kStages - 1; ++i) {
    copy(&box[i][4 * t], x + i * kTile + 4 * t);
    asm volatile("cp.async.commit_group;");
  }
  for (int i = 0; i < 8; ++i) {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    // edit copy_pipeline_waits_for_too_few: 2 => 1
    __syncthreads();
    // edit copy_pipeline_no_barrier:
    const int next = i + kStages - 1;
    if (next < 8) copy(&box[next % kStages][4 * t], x + next * kTile + 4 * t);
    // edit copy_pipeline_too_few_slots: kStages => kSlots
    asm volatile("cp.async.commit_group;");
    for (int k = 0; k < 4; ++k) sum[k] += box[i % kStages][(64 * k + t + 64) % kTile];
    // edit copy_pipeline_too_few_slots: kStages => kSlots
  }
  for (int k = 0; k < 4; ++k) y[blockIdx.x * kTile + 64 * k + t] = sum[k];
}

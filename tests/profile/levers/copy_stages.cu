// Tiles by cp.async: one at a time, or three ahead of their use.
// grid: 132  block: 128  device: a100-sxm-80|h100-sxm
// args: [{"name": "x", "type": "f32", "size": 4325376}, {"name": "y", "type": "f32", "size": 16896}]
// slow: -DSTAGES=1  fast: -DSTAGES=3  gain: 1.5
__global__ void sum(const float* x, float* y) {
  __shared__ __align__(16) float tile[STAGES][512];
  const unsigned t = threadIdx.x, tiles = 64;
  float s = 0;
  const auto copy = [&](unsigned k) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile[k % STAGES] + 4 * t));
    if (k < tiles)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + (blockIdx.x * tiles + k) * 512 + 4 * t));
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (unsigned k = 0; k < STAGES; ++k) copy(k);
#pragma unroll 1
  for (unsigned k = 0; k < tiles; ++k) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    __syncthreads();
    s += tile[k % STAGES][t] + tile[k % STAGES][(t + 128) % 512];
    __syncthreads();
    copy(k + STAGES);
  }
  y[blockIdx.x * 128 + t] = s;
}

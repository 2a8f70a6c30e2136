// cp.async with one stage: each tile is waited for right after its copies.
// grid: 108  block: 128  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 3538944}, {"name": "y", "type": "f32", "size": 13824}]
// limiter: asynchronous copies
__global__ void sum(const float* x, float* y) {
  __shared__ __align__(16) float tile[512];
  const unsigned t = threadIdx.x, to = static_cast<unsigned>(__cvta_generic_to_shared(tile + 4 * t));
  float s = 0;
#pragma unroll 1
  for (unsigned k = 0; k < 64; ++k) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + (blockIdx.x * 64 + k) * 512 + 4 * t));  // <- here
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    s += tile[t] + tile[(t + 128) % 512];
    __syncthreads();
  }
  y[blockIdx.x * 128 + t] = s;
}

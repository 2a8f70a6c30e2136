// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// with cta_lanes_bytes: race at 19
// with cta_lanes_exchange: race at 19
// with cta_lanes_shuffle_is_no_fence: race at 19
// with cta_lanes_sync_of_half: race at 19
// with cta_lanes_vote_is_no_fence: race at 19
__global__ void k(int* y) {
  __shared__ int s[32];
  // edit cta_lanes_bytes: int => unsigned char
  const int t = threadIdx.x;
  s[t] = t;
  __syncwarp();
  // edit cta_lanes_bytes:
  // edit cta_lanes_exchange:
  // edit cta_lanes_shuffle_is_no_fence: const int next = __shfl_sync(~0u, t + 1, t ^ 1);
  // edit cta_lanes_sync_of_half: __syncwarp(t < 16 ? 0xffffu : 0xffff0000u);
  // edit cta_lanes_vote_is_no_fence: if (__any_sync(~0u, t > 3))
  y[t] = s[31 - t];
  // edit cta_lanes_shuffle_is_no_fence: y[t] = s[31 - t] + next;
}

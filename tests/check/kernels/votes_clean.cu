// grid: 1  block: 40
// args: [{"name": "y", "type": "i32", "size": 40, "expect": 63}]
__global__ void ask(int* y) {
  const unsigned here = __activemask();
  const int t = threadIdx.x;
  int good = __all_sync(here, t >= 0);
  good |= 2 * __any_sync(here, t % 32 == 5);
  good |= 4 * !__any_sync(here, t > 40);
  good |= 8 * (__ballot_sync(here, t % 2) == (0xaaaaaaaau & here));
  good |= 16 * (__syncthreads_count(t < 20) == 20);
  good |= 32 * (__syncthreads_or(t == 39) && !__syncthreads_and(t < 39));
  y[t] = good;
}

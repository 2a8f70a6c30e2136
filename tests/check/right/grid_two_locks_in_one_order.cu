// grid: 4  block: 32
// args: [{"type": "i32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 2, "fill": 0, "expect": [4, 8]}]
__device__ void lock(int* l) {
  while (atomicCAS(l, 0, 1)) __nanosleep(20);
  __threadfence();
}
__device__ void unlock(int* l) {
  __threadfence();
  atomicExch(l, 0);
}
__global__ void count(int* locks, int* y) {
  if (threadIdx.x) return;
  lock(locks), lock(locks + 1);
  y[0] += 1, y[1] += 2;
  unlock(locks + 1), unlock(locks);
}

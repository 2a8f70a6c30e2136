// grid: 2  block: 64
// args: [{"type": "i32", "size": 32}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 32, "expect": "iota"}]
// One warp acquires, a flag in shared memory passes that on to the other.
__global__ void pass(int* box, volatile int* ready, int* y) {
  __shared__ int here;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  if (blockIdx.x == 0) {
    if (threadIdx.x >= 32) box[lane] = lane;
    __syncthreads();
    __threadfence();
    if (threadIdx.x == 0) *ready = 1;
  } else if (threadIdx.x < 32) {
    while (*ready == 0) __nanosleep(20);
    __threadfence();
    if (lane == 0) atomicExch(&here, 1);
  } else {
    while (atomicAdd(&here, 0) == 0) {
    }
    __threadfence();
    y[lane] = box[lane];
  }
}

// grid: 1  block: 64
// args: [{"name": "box", "type": "i32", "size": 32}, {"name": "ready", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 32}]
// finds: race at 11
__global__ void hand_over(int* box, int* ready, int* y) {
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) *ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (atomicAdd(ready, 0) == 0) {
    }
    y[lane] = box[lane];
  } else {
    __threadfence();
    box[lane] = lane;
    __syncwarp();
    if (lane == 0) atomicAdd(ready, 1);
  }
}

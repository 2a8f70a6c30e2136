// grid: 1  block: 64
// args: [{"name": "box", "type": "i32", "size": 64}, {"name": "ready", "type": "i32", "size": 2}, {"name": "y", "type": "i32", "size": 64}]
// finds: race at 16
// The fence before the first flag does not order the accesses after it.
__global__ void hand_over(int* box, int* ready, int* y) {
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 2) ready[threadIdx.x] = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (atomicAdd(ready, 0) == 0) {
    }
    __threadfence();
    y[lane] = box[lane];
    while (atomicAdd(ready + 1, 0) == 0) {
    }
    y[lane + 32] = box[lane + 32];
  } else {
    box[lane] = lane;
    __threadfence();
    __syncwarp();
    if (lane == 0) atomicAdd(ready, 1);
    box[lane + 32] = lane;
    __syncwarp();
    if (lane == 0) atomicAdd(ready + 1, 1);
  }
}

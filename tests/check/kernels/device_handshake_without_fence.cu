// grid: 1  block: 96
// args: [{"name": "box", "type": "i32", "size": 64}, {"name": "ready", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 64}]
// finds: race at 11, race at 12
__global__ void hand_over(int* box, int* ready, int* y) {
  if (threadIdx.x == 0) *ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (atomicAdd(ready, 0) < 2) {
    }
    __threadfence();
    y[threadIdx.x] = box[threadIdx.x];
    y[threadIdx.x + 32] = box[threadIdx.x + 32];
  } else {
    box[threadIdx.x - 32] = threadIdx.x - 32;
    // no fence
    __syncwarp();
    if (threadIdx.x % 32 == 0) atomicAdd(ready, 1);
  }
}

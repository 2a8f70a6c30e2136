// grid: 1  block: 96
// args: [{"name": "box", "type": "i32", "size": 64}, {"name": "ready", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 64, "expect": "iota"}]
// leaves open: orders
// with device_handshake_without_fence: race at 13, race at 14
//   no fence
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
    __threadfence();
    // edit device_handshake_without_fence:
    __syncwarp();
    if (threadIdx.x % 32 == 0) atomicAdd(ready, 1);
  }
}

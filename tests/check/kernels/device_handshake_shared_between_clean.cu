// grid: 1  block: 64
// args: [{"name": "box", "type": "i32", "size": 32}, {"name": "ready", "type": "i32", "size": 1}, {"name": "y", "type": "i32", "size": 32, "expect": "iota"}]
// leaves open: orders
// with device_handshake_fenced_too_early: race at 16
// Shared memory writes between the fence and the flag do not weaken the order of the accesses before the fence.
__global__ void hand_over(int* box, int* ready, int* y) {
  __shared__ int own[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) *ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (atomicAdd(ready, 0) == 0) {
    }
    __threadfence();
    // edit device_handshake_fenced_too_early:
    y[lane] = box[lane];
  } else {
    box[lane] = lane;
    // edit device_handshake_fenced_too_early: __threadfence();
    __threadfence();
    // edit device_handshake_fenced_too_early: box[lane] = lane;
    own[lane] = lane * 3;
    __syncwarp();
    if (lane == 0) atomicAdd(ready, own[31]);
  }
}

// grid: 1  block: 96
// args: [{"name": "y", "type": "i32", "size": 64, "expect": "iota"}]
// leaves open: orders
// with warp_handshake_without_fence: race at 15, race at 16
//   no fence
__global__ void hand_over(int* y) {
  __shared__ int box[64];
  __shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (ready < 2) {
    }
    __threadfence_block();
    y[threadIdx.x] = box[threadIdx.x];
    y[threadIdx.x + 32] = box[threadIdx.x + 32];
  } else {
    box[threadIdx.x - 32] = threadIdx.x - 32;
    __threadfence_block();
    // edit warp_handshake_without_fence:
    __syncwarp();
    if (threadIdx.x % 32 == 0) atomicAdd(const_cast<int*>(&ready), 1);
  }
}

// grid: 2  block: 64
// args: [{"name": "box", "type": "i32", "size": 32}, {"name": "ready", "type": "i32", "size": 2, "fill": 0}, {"name": "y", "type": "i32", "size": 32, "expect": "iota"}]
// leaves open: orders
__global__ void by_way_of_the_other(int* box, int* ready, int* y) {
  const int lane = threadIdx.x % 32;
  if (blockIdx.x == 1) {
    if (threadIdx.x == 0) {
      while (atomicAdd(ready, 0) == 0) {
      }
      __threadfence();
      atomicAdd(ready + 1, 1);
    }
  } else if (threadIdx.x < 32) {
    box[lane] = lane;
    __threadfence();
    __syncwarp();
    if (lane == 0) atomicAdd(ready, 1);
  } else {
    while (atomicAdd(ready + 1, 0) == 0) {
    }
    __threadfence();
    y[lane] = box[lane];
  }
}

// Persistent blocks take tiles of 64 numbers from a counter in device memory and double them.
// A second barrier lets thread 0 write the next number only when all have read this one.
// grid: 2  block: 64
// args: [{"type": "i32", "size": 512, "fill": 4}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 512, "expect": 8}]
// finds: nothing
constexpr int kTiles = 8;

__global__ void twice(const int* x, int* counter, int* y) {
  __shared__ int next;
  for (;;) {
    if (threadIdx.x == 0) next = atomicAdd(counter, 1);
    __syncthreads();
    const int tile = next;
    __syncthreads();
    if (tile >= kTiles) break;
    const int i = tile * 64 + threadIdx.x;
    const int value = x[i];
    y[i] = 2 * value;
  }
}

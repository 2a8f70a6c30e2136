// Persistent blocks take tiles of 64 numbers from a counter in device memory and double them.
// A second barrier lets thread 0 write the next number only when all have read this one.
// grid: 2  block: 64
// args: [{"type": "i32", "size": 512, "fill": 4}, {"type": "i32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 512, "expect": 8}]
// with tile_number_overwritten: race at 14, race at 16
//   Thread 0 hands the tile's number to the block in shared memory and may replace it by the next one before a slower
//   warp has read it: tiles are skipped or done twice. NVlabs/cuda-oxide pull request 1066 (scheduler mailbox without
//   an acknowledgement). PTX ISA, "Data Race".
constexpr int kTiles = 8;

__global__ void twice(const int* x, int* counter, int* y) {
  __shared__ int next;
  for (;;) {
    if (threadIdx.x == 0) next = atomicAdd(counter, 1);
    __syncthreads();
    const int tile = next;
    __syncthreads();
    // edit tile_number_overwritten:
    if (tile >= kTiles) break;
    const int i = tile * 64 + threadIdx.x;
    const int value = x[i];
    y[i] = 2 * value;
  }
}

// grid: 4  block: 32
// args: [{"type": "u32", "size": 2, "fill": 0}, {"type": "i32", "size": 4}, {"name": "y", "type": "i32", "size": 4, "expect": 4}]
// The last to arrive resets the count and turns the sense.
__global__ void rounds(unsigned* count, int* box, int* y) {
  if (threadIdx.x) return;
  volatile unsigned* sense = count + 1;
  int v = 0;
  for (unsigned round = 0; round < 4; ++round) {
    if (round % 2 == 0) box[blockIdx.x] = 1;
    __threadfence();
    if (atomicAdd(count, 1) == gridDim.x - 1) {
      atomicExch(count, 0);
      __threadfence();
      *sense = round + 1;
    } else {
      while (*sense <= round) __nanosleep(20);
    }
    __threadfence();
    if (round % 2 == 0) v += box[(blockIdx.x + 1) % gridDim.x] + 1;
  }
  y[blockIdx.x] = v;
}

// grid: 3  block: 128
// args: [{"type": "i32", "size": 384, "fill": 2}, {"type": "i32", "size": 1, "fill": 0, "expect": 768}]
__global__ void sum(const int* x, int* total) {
  int v = x[blockIdx.x * 128 + threadIdx.x];
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_down_sync(0xffffffffu, v, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(total, v);
}

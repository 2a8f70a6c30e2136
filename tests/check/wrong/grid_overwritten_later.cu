// grid: 4  block: 32
// args: [{"type": "i32", "size": 32, "fill": "iota"}, {"type": "i32", "size": 128}]
// finds: race
// All blocks read what the last one overwrites.
__global__ void shift(int* table, int* y) {
  y[blockIdx.x * 32 + threadIdx.x] = table[threadIdx.x];
  if (blockIdx.x == gridDim.x - 1) table[threadIdx.x] = 100 + threadIdx.x;
}

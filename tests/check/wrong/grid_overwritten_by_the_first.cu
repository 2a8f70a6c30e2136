// grid: 4  block: 32
// args: [{"type": "u16", "size": 32, "fill": 1}, {"type": "i32", "size": 128}]
// finds: race
__global__ void shift(unsigned short* table, int* y) {
  y[blockIdx.x * 32 + threadIdx.x] = table[threadIdx.x];
  if (blockIdx.x == 0) table[threadIdx.x] = 100 + threadIdx.x;
}

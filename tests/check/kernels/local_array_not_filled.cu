// grid: 1  block: 32
// args: [{"type": "i32", "size": 32, "fill": "iota"}, {"type": "i32", "size": 32}]
// finds: uninitialised at 7
__global__ void pick(const int* x, int* y) {
  int own[8];
  for (int i = 0; i < 7; ++i) own[(x[i] + 1) % 7] = i;
  y[threadIdx.x] = own[x[threadIdx.x] % 8] + 1;
}

// grid: 1  block: 32
// args: [{"type": "i32", "size": 32, "fill": "iota"}, {"type": "i32", "size": 32}]
// finds: nothing
__global__ void pick(const int* x, int* y) {
  int own[8];
  for (int i = 0; i < 8; ++i) own[i] = x[(threadIdx.x + i) % 32];
  y[threadIdx.x] = own[x[threadIdx.x] % 8];
}

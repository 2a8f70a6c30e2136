// grid: 1  block: 32
// args: [{"type": "i32", "size": 32, "fill": 9}, {"type": "i32", "size": 32}]
// finds: out-of-bounds at 7
__global__ void pick(const int* x, int* y) {
  int own[8];
  for (int i = 0; i < 8; ++i) own[i] = i;
  y[threadIdx.x] = own[x[threadIdx.x]];
}

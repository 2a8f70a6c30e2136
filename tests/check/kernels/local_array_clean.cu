// grid: 1  block: 32
// args: [{"type": "i32", "size": 32, "fill": "iota"}, {"type": "i32", "size": 32}]
// with local_array_not_filled: uninitialised at 9
// with local_array_overrun: out-of-bounds at 9
__global__ void pick(const int* x, int* y) {
  int own[8];
  for (int i = 0; i < 8; ++i) own[i] = x[(threadIdx.x + i) % 32];
  // edit local_array_not_filled: i < 8 => i < 7
  y[threadIdx.x] = own[x[threadIdx.x] % 8] + 1;
  // edit local_array_overrun: % 8 => % 9
}

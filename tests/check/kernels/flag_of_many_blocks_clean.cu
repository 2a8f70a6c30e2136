// grid: 4  block: 64
// args: [{"type": "i32", "size": 256, "fill": "iota"}, {"name": "found", "type": "i32", "size": 1, "fill": 0, "expect": 1}]
__global__ void any_even(const int* x, int* found) {
  if (x[blockIdx.x * 64 + threadIdx.x] % 2 == 0) *found = 1;
}

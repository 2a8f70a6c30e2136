// grid: 4  block: 64
// args: [{"name": "x", "type": "i32", "size": 256, "fill": "iota"}, {"name": "changed", "type": "i32", "size": 1, "fill": 0, "expect": 1}]
__global__ void any_odd(const int* x, int* changed) {
  if (x[blockIdx.x * 64 + threadIdx.x] & 1) *changed = 1;
}

// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 63}, {"name": "flag", "type": "i32", "size": 1, "fill": 0}]
// finds: out-of-bounds at 5, deadlock at 6
__global__ void k(int* x, int* flag) {
  x[threadIdx.x] = 1;
  while (*(volatile int*)flag == 0) {}
}

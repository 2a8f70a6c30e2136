// grid: 1  block: 64
// args: [{"type": "i32", "size": 64}]
// finds: bad-barrier at 5
__global__ void half(int* y) {
  asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x - 16) : "memory");
  y[threadIdx.x] = 1;
}

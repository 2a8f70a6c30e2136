// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// finds: uninitialised at 6
__global__ void k(unsigned* y) {
  const int t = threadIdx.x;
  y[t] |= 1u << t;  // the other flags leave the kernel
}

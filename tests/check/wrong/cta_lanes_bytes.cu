// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: race at 7
__global__ void k(int* y) {
  __shared__ unsigned char s[32];
  s[threadIdx.x] = threadIdx.x;
  y[threadIdx.x] = s[threadIdx.x ^ 1];
}

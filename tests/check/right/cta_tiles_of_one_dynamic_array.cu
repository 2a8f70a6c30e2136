// grid: 1  block: 64  smem: 768
// args: [{"name": "y", "type": "i32", "size": 64, "expect": 3}]
__global__ void parts(int* y) {
  extern __shared__ int pool[];
  __shared__ int flag;
  int *a = pool, *b = a + 64, *c = b + 64;
  if (threadIdx.x == 0) flag = 0;
  a[threadIdx.x] = 1, b[threadIdx.x] = 2;
  __syncthreads();
  c[63 - threadIdx.x] = a[threadIdx.x] + b[threadIdx.x] + flag;
  __syncthreads();
  y[threadIdx.x] = c[threadIdx.x];
}

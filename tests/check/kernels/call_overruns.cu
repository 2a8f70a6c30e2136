// grid: 1  block: 32
// args: [{"type": "i32", "size": 32}]
// finds: out-of-bounds at 5
__device__ __noinline__ void put(int* y, int at) {
  y[at] = at;
}
__global__ void shifted(int* y) {
  put(y, threadIdx.x);
  put(y, threadIdx.x + 1);
}

// grid: 2  block: 32
// args: [{"type": "i32", "size": 2, "fill": 0}, {"type": "i32", "size": 64}, {"name": "y", "type": "i32", "size": 64, "expect": "iota"}]
// leaves open: orders
__global__ void exchange(volatile int* flags, int* box, int* y) {
  const int me = blockIdx.x, other = 1 - me, t = threadIdx.x;
  box[me * 32 + t] = me * 32 + t;
  __threadfence();
  __syncthreads();
  if (t == 0) {
    flags[me] = 1;
    while (flags[other] == 0) {
    }
    __threadfence();
  }
  __syncthreads();
  y[other * 32 + t] = box[other * 32 + t];
}

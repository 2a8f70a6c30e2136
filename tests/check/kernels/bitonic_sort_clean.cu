// grid: 1  block: 128
// args: [{"name": "y", "type": "i32", "size": 128, "expect": "iota"}]
__global__ void sort(int* y) {
  __shared__ int keys[128];
  const int t = threadIdx.x;
  keys[t] = t * 37 % 128;
  __syncthreads();
  for (int size = 2; size <= 128; size *= 2)
    for (int stride = size / 2; stride > 0; stride /= 2) {
      const int other = t ^ stride;
      if (other > t) {
        const int a = keys[t], b = keys[other];
        if ((a > b) == ((t & size) == 0)) keys[t] = b, keys[other] = a;
      }
      __syncthreads();
    }
  y[t] = keys[t];
}

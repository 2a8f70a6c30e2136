// grid: 2  block: 96
// args: [{"name": "y", "type": "i32", "size": 192, "expect": "iota"}]
__device__ __noinline__ void put(int* box, int at, int value) {
  box[at] = value;
  __syncthreads();
}
__device__ __noinline__ void divide(int a, int b, int* quotient, int* remainder) {
  *quotient = a / b;
  *remainder = a % b;
}
__global__ void turn(int* y) {
  __shared__ int box[96];
  const int t = threadIdx.x;
  put(box, 95 - t, t);
  int v = box[95 - t];
  __syncthreads();
  put(box, t, v);
  int q, r;
  divide(box[t], 7, &q, &r);
  y[blockIdx.x * 96 + t] = q * 7 + r + 96 * blockIdx.x;
}

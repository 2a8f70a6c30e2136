// grid: 1  block: 32
// args: [{"type": "i32", "size": 32}]
__constant__ int primes[4] = {2, 3, 5, 7};
__device__ int offset = 1;
__global__ void lookup(int* y) {
  y[threadIdx.x] = primes[threadIdx.x % 4] + offset;
}

// grid: 1  block: 4
// args: [{"name": "y", "type": "i32", "size": 4, "expect": [2, 3, 5, 7]}]
// prints: two\nthree\nfive\nseven\n
__device__ int primes[4] = {2, 3, 5, 7};
__device__ int* places[4] = {primes, primes + 1, primes + 2, primes + 3};
__constant__ const char* names[4] = {"two", "three", "five", "seven"};
__global__ void lookup(int* y) {
  y[threadIdx.x] = *places[threadIdx.x];
  printf("%s\n", names[threadIdx.x]);
}

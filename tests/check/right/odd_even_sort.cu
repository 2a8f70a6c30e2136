// grid: 1  block: 64
// args: [{"name": "x", "type": "i32", "size": 128, "values": [127, 126, 125, 124, 123, 122, 121, 120, 119, 118, 117, 116, 115, 114, 113, 112, 111, 110, 109, 108, 107, 106, 105, 104, 103, 102, 101, 100, 99, 98, 97, 96, 95, 94, 93, 92, 91, 90, 89, 88, 87, 86, 85, 84, 83, 82, 81, 80, 79, 78, 77, 76, 75, 74, 73, 72, 71, 70, 69, 68, 67, 66, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0], "expect": "iota"}]
__global__ void sort(int* x) {
  __shared__ int s[128];
  s[threadIdx.x] = x[threadIdx.x];
  s[threadIdx.x + 64] = x[threadIdx.x + 64];
  for (int round = 0; round < 128; ++round) {
    __syncthreads();
    const int i = 2 * threadIdx.x + (round & 1);
    if (i < 127 && s[i] > s[i + 1]) {
      const int v = s[i];
      s[i] = s[i + 1];
      s[i + 1] = v;
    }
  }
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x];
  x[threadIdx.x + 64] = s[threadIdx.x + 64];
}

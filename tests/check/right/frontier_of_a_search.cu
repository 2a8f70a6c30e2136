// grid: 2  block: 32  leaves open: orders
// args: [{"name": "edges", "type": "i32", "size": 64, "values": [1, 8, 15, 22, 29, 36, 43, 50, 57, 0, 7, 14, 21, 28, 35, 42, 49, 56, 63, 6, 13, 20, 27, 34, 41, 48, 55, 62, 5, 12, 19, 26, 33, 40, 47, 54, 61, 4, 11, 18, 25, 32, 39, 46, 53, 60, 3, 10, 17, 24, 31, 38, 45, 52, 59, 2, 9, 16, 23, 30, 37, 44, 51, 58]}, {"name": "seen", "type": "i32", "size": 64, "fill": 0}, {"name": "n", "type": "i32", "size": 1, "fill": 0}, {"name": "next", "type": "i32", "size": 64}]
__global__ void expand(const int* edges, int* seen, int* n, int* next) {
  const int to = edges[blockIdx.x * 32 + threadIdx.x];
  if (atomicExch(&seen[to], 1) == 0) next[atomicAdd(n, 1)] = to;
}

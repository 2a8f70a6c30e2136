// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[8][9];
  const int t = threadIdx.x;
  for (int i = t; i < 64; i += 32) s[i / 8][i % 8] = i;
  __syncwarp();
  for (int i = t; i < 64; i += 32) y[i] = s[i % 8][i / 8];
}

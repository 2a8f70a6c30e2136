// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ int s[32];
  const int t = threadIdx.x;
  if (t < 8) s[t] = t;
  if (t < 16) __syncwarp(0xffff);
  if (t >= 8 && t < 16) s[t] = s[t - 8];
  if (t >= 8) __syncwarp(0xffffff00);
  if (t >= 16 && t < 24) s[t] = s[t - 16] + s[t - 8];  // by way of lanes 8 to 15
  __syncwarp();
  y[t] = t < 24 ? s[t] : 0;
}

// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  const int t = threadIdx.x;
  reinterpret_cast<int2*>(y)[t] = make_int2(t, -t);
  __syncwarp();
  y[t] += 1;
  y[t + 32] += 1;
}

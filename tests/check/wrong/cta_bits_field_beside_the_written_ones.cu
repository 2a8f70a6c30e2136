// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
// finds: uninitialised at 14
struct Fields {
  unsigned low : 5, middle : 10, high : 7;
};
__global__ void k(int* y) {
  __shared__ volatile Fields s[32];
  const int t = threadIdx.x;
  s[t].low = t;
  s[t].high = t + 1;
  __syncwarp();
  y[t] = s[31 - t].low;
  y[t + 32] = s[31 - t].middle;
}

// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 96}]
struct Fields {
  unsigned low : 5, middle : 11, high : 16;
};
__global__ void k(int* y) {
  const int t = threadIdx.x;
  Fields f;
  f.low = t;
  f.middle = 3 * t;
  f.high = 1000 + t;
  __shared__ Fields s[32];
  s[31 - t] = f;
  __syncwarp();
  y[t] = s[t].low;
  y[t + 32] = s[t].middle;
  y[t + 64] = s[t].high;
}

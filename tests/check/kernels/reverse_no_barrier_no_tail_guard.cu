// grid: 4  block: 256
// args: [{"name": "x", "type": "f32", "size": 1000, "fill": "iota"}, {"type": "i32", "value": 1000}]
// finds: race at 8, race at 9, out-of-bounds at 10
__global__ void reverse(float* x, int n) {
  __shared__ float s[256];
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  // no barrier between the next two lines, and <= for <
  s[t] = i < n ? x[i] : 0;
  float v = s[255 - t];
  if (i <= n) x[i] = v;
}

// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 128}]
// finds: race at 8
__global__ void k(int4* y) {
  __shared__ int4 s[32];
  const int t = threadIdx.x;
  s[t] = make_int4(t, t, t, t);
  y[t] = s[t ^ 1];
}

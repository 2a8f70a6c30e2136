// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ union {
    int words[32];
    unsigned char bytes[128];
  } s;
  const int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) s.bytes[4 * t + i] = i;
  y[t] = s.words[t];
}

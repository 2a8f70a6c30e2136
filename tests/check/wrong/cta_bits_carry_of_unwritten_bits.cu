// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// finds: uninitialised at 11
__global__ void k(int* y) {
  __shared__ union {
    unsigned word[32];
    unsigned char byte[128];
  } s;
  const int t = threadIdx.x;
  s.byte[4 * t + 1] = t;
  const unsigned w = s.word[t];
  y[t] = (w + 0x80 & 0xff00) >> 8;
}

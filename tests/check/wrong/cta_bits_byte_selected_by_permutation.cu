// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// finds: uninitialised at 11
__global__ void k(unsigned* y) {
  __shared__ union {
    unsigned word[32];
    unsigned char byte[128];
  } s;
  const int t = threadIdx.x;
  s.byte[4 * t + 2] = t;
  const unsigned w = s.word[t];
  y[t] = __byte_perm(w, 0, 0x4423);
}

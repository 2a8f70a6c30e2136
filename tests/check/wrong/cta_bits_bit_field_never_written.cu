// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// finds: uninitialised at 7
__global__ void k(int* y) {
  __shared__ unsigned s[32];
  const int t = threadIdx.x;
  unsigned word = s[t];
  word = (word & ~0x1f0u) | static_cast<unsigned>(t) << 4;  // the field in bits 4 to 8 alone
  y[t] = word >> 5 & 0x1f;
}

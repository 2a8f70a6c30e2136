// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 64}]
__global__ void k(int* y) {
  __shared__ volatile unsigned s[32];
  const int t = threadIdx.x;
  s[t] = (s[t] & ~0x1f0u) | static_cast<unsigned>(t) << 4;  // the field in bits 4 to 8 alone
  __syncwarp();
  y[t] = s[31 - t] >> 4 & 0x1f;
  volatile unsigned own[4];
  own[t & 3] = (own[t & 3] & ~0xf0000000u) | static_cast<unsigned>(t) << 28;
  y[t + 32] = own[t & 3] >> 28;
}

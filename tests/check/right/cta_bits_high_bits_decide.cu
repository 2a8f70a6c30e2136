// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 96}]
// with cta_bits_low_bits_decide: uninitialised at 13
//   args: [{"name": "y", "type": "i32", "size": 32}]
//   for the thread with byte 16
__global__ void k(int* y) {
  __shared__ union {
    unsigned word[32];
    unsigned char byte[128];
  } s;
  const int t = threadIdx.x;
  s.byte[4 * t + 3] = t;
  const unsigned key = s.word[t];
  y[t] = key < 16u << 24 ? 1 : 2;
  // edit cta_bits_low_bits_decide: y[t] = key < (16u << 24) + 1 ? 1 : 2;
  y[t + 32] = key == 40u << 24 ? 1 : 2;
  // edit cta_bits_low_bits_decide:
  if (static_cast<int>(key) >= 0) y[t + 64] = 3;
  // edit cta_bits_low_bits_decide:
}

// grid: 1  block: 32
// args: [{"name": "x", "type": "i32", "size": 256, "fill": "iota"}, {"name": "y", "type": "i32", "size": 32}]
// with cta_bits_carry_of_unwritten_bits: uninitialised at 13
//   args: [{"name": "y", "type": "i32", "size": 32}]
__global__ void k(const int* x, int* y) {
// edit cta_bits_carry_of_unwritten_bits: __global__ void k(int* y) {
  __shared__ union {
    unsigned word[32];
    unsigned char byte[128];
  } s;
  const int t = threadIdx.x;
  s.byte[4 * t + 1] = t;
  const unsigned w = s.word[t];
  y[t] = x[((w & 0xff00) * 4 + 0x800 & 0x1fc00) >> 10];
  // edit cta_bits_carry_of_unwritten_bits: y[t] = (w + 0x80 & 0xff00) >> 8;
}

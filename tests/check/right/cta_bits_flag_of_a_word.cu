// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32}]
// with cta_bits_flag_that_is_not_set: uninitialised at 12
struct State {
  unsigned char flags;
  unsigned char more[3];
};
__global__ void k(int* y) {
  __shared__ State s[32];
  const int t = threadIdx.x;
  s[t].flags = t & 1 ? 0x10 : 0x20;
  const unsigned word = *reinterpret_cast<const unsigned*>(&s[t]);
  if (word & 0x10)
  // edit cta_bits_flag_that_is_not_set: if (word & 0x100)
    y[t] = 1;
  else
    y[t] = 2;
}

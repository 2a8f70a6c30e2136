// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 192}]
// with cta_bits_byte_beside_the_written_one: uninitialised at 12
// with cta_bits_byte_selected_by_permutation: uninitialised at 12
__global__ void k(unsigned* y) {
  __shared__ union {
    unsigned word[32];
    unsigned char byte[128];
  } s;
  const int t = threadIdx.x;
  s.byte[4 * t + 2] = t;
  const unsigned w = s.word[t];
  y[t] = w >> 16 & 0xff;
  // edit cta_bits_byte_beside_the_written_one: 16 => 15
  y[t + 32] = w << 8 >> 24;
  y[t + 64] = __byte_perm(w, 0, 0x4442);
  // edit cta_bits_byte_selected_by_permutation: 0x4442 => 0x4423
  unsigned field;
  asm("bfe.u32 %0, %1, 16, 8;" : "=r"(field) : "r"(w));
  y[t + 96] = field;
  asm("bfi.b32 %0, 0, %1, 24, 8;" : "=r"(field) : "r"(w >> 16 << 16));
  y[t + 128] = field;
  y[t + 160] = __funnelshift_r(w, 0, 16) & 255;
}

// grid: 1  block: 64
// args: [{"name": "y", "type": "u64", "size": 64, "expect": "iota"}]
__global__ void back_again(unsigned long long* y) {
  const unsigned long long t = threadIdx.x, big = 0x123456789abcdefull * (t + 1);
  unsigned lo = static_cast<unsigned>(big), hi = static_cast<unsigned>(big >> 32), x = 0, z = 0;
  asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %4, 0;" : "=r"(x), "=r"(z) : "r"(lo), "r"(0xffffffffu), "r"(hi));
  asm("sub.cc.u32 %0, %0, %2;\n\tsubc.u32 %1, %1, 0;" : "+r"(x), "+r"(z) : "r"(0xffffffffu));
  const unsigned long long same = static_cast<unsigned long long>(z) << 32 | x;
  const unsigned long long high = __umul64hi(big << 8, 1ull << 56);
  y[threadIdx.x] = same / (big / (t + 1)) - 1 + (high - (big << 8 >> 8)) + (__popcll(big) - __popcll(__brevll(big)));
}

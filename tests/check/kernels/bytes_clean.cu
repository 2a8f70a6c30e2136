// grid: 1  block: 64
// args: [{"type": "u32", "size": 64, "fill": 16909060}, {"name": "y", "type": "i32", "size": 64, "expect": 63}]
__global__ void pieces(const unsigned* x, int* y) {
  const unsigned v = x[threadIdx.x];  // 0x01020304
  int good = __byte_perm(v, 0, 0x0123) == 0x04030201;
  good |= 2 * (__dp4a(static_cast<int>(v), 0x01010101, 5) == 15);
  good |= 4 * (__funnelshift_l(v, v, 8) == 0x02030401);
  good |= 8 * (__vadd4(v, 0x01010101) == 0x02030405);
  good |= 16 * (__ffs(v) == 3 && __clz(v) == 7 && __popc(v) == 5);
  good |= 32 * (__sad(3, -4, 1u) == 8 && __mul24(3, -4) == -12 && __hadd(4, 7) == 5);
  y[threadIdx.x] = good;
}

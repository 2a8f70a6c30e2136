// grid: 1  block: 32
// args: [{"name": "y", "type": "i32", "size": 32, "expect": 255}]
__global__ void all(int* y) {
  const int t = threadIdx.x;
  const unsigned u = 1u << t;
  int good = __reduce_add_sync(0xffffffffu, t) == 496;
  good |= 2 * (__reduce_min_sync(0xffffffffu, t - 16) == -16);
  good |= 4 * (__reduce_max_sync(0xffffffffu, t - 40) == -9);
  good |= 8 * (__reduce_or_sync(0xffffffffu, u) == 0xffffffffu);
  good |= 16 * (__reduce_and_sync(0xffffffffu, u) == 0);
  good |= 32 * (__reduce_xor_sync(0xffffffffu, u) == 0xffffffffu);
  int same;
  good |= 64 * (__match_all_sync(0xffffffffu, t / 32, &same) == 0xffffffffu && same);
  good |= 128 * (__match_any_sync(0xffffffffu, t % 8) == 0x01010101u << t % 8);
  y[t] = good;
}

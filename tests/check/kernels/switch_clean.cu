// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64, "expect": "iota"}]
__global__ void cases(int* y) {
  const int t = threadIdx.x;
  int v = t;
  switch (t % 8) {
    case 0: v = v * 2 - t; break;
    case 1: v = (v ^ 5) ^ 5; break;
    case 2: for (int i = 0; i < t; ++i) v += i % 2 ? 1 : -1; v += t % 4 == 3; break;
    case 3: v = __brev(__brev(v)); break;
    case 4: v = v << 3 >> 3; break;
    case 5: v = -(-v); break;
    case 6: v = max(v, 0); break;
    default: v = v / 7 * 7 + v % 7;
  }
  y[t] = v;
}

// grid: 4  block: 32
// args: [{"type": "i32", "size": 1, "fill": 0, "expect": 128}]
// leaves open: orders
__global__ void count(int* total) {
  int seen = *reinterpret_cast<volatile int*>(total), before;
  do {
    before = seen;
    seen = atomicCAS(total, before, before + 1);
  } while (seen != before);
}

// grid: 4  block: 32
// args: [{"name": "y", "type": "f32", "size": 1, "fill": 0, "expect": 127}]
__global__ void highest(float* y) {
  int* word = reinterpret_cast<int*>(y);
  int old = *static_cast<volatile int*>(word);
  const float mine = blockIdx.x * 32 + threadIdx.x;
  while (__int_as_float(old) < mine) {
    const int seen = atomicCAS(word, old, __float_as_int(mine));
    if (seen == old) break;
    old = seen;
  }
}

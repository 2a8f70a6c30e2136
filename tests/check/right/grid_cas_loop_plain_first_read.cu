// grid: 4  block: 64
// args: [{"name": "sum", "type": "f64", "size": 1, "fill": 0, "expect": 256}]
__global__ void add(double* sum) {
  auto* bits = reinterpret_cast<unsigned long long*>(sum);
  unsigned long long old = *bits, assumed;  // as in the CUDA C++ Programming Guide
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) + 1));
  } while (assumed != old);
}

// grid: 4  block: 32  leaves open: orders
// args: [{"name": "sum", "type": "f64", "size": 1, "fill": 0, "expect": 128}]
__global__ void add(double* sum) {
  auto* bits = reinterpret_cast<unsigned long long*>(sum);
  unsigned long long seen = *reinterpret_cast<volatile unsigned long long*>(bits), before;
  do {
    before = seen;
    seen = atomicCAS(bits, before, __double_as_longlong(__longlong_as_double(before) + 1));
  } while (seen != before);
}

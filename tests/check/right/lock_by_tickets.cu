// grid: 8  block: 32  leaves open: orders
// args: [{"name": "lock", "type": "u32", "size": 2, "fill": 0}, {"name": "sum", "type": "i32", "size": 1, "fill": 0, "expect": 8}]
__global__ void add(unsigned* lock, int* sum) {
  if (threadIdx.x != 0) return;
  const unsigned mine = atomicAdd(&lock[0], 1);
  while (atomicAdd(&lock[1], 0) != mine) {
  }
  __threadfence();
  *reinterpret_cast<volatile int*>(sum) += 1;
  __threadfence();
  atomicAdd(&lock[1], 1);
}

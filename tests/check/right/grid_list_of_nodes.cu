// grid: 6  block: 32
// args: [{"type": "i32", "size": 12}, {"type": "i32", "size": 1, "fill": -1}, {"type": "u32", "size": 1, "fill": 0}, {"name": "y", "type": "i32", "size": 1, "expect": 21}]
// Nodes are pushed by compare-and-swap; the last block walks the list.
__global__ void push(int* nodes, int* head, unsigned* done, int* y) {
  if (threadIdx.x) return;
  const int me = blockIdx.x;
  nodes[2 * me] = me + 1;
  int old = *static_cast<volatile int*>(head);
  for (int seen;; old = seen) {
    nodes[2 * me + 1] = old;
    __threadfence();
    if ((seen = atomicCAS(head, old, me)) == old) break;
  }
  __threadfence();
  if (atomicAdd(done, 1) != gridDim.x - 1) return;
  __threadfence();
  int sum = 0;
  for (int i = *static_cast<volatile int*>(head); i >= 0; i = nodes[2 * i + 1]) sum += nodes[2 * i];
  *y = sum;
}

// grid: 8  block: 64
// args: [{"type": "i32", "size": 16}, {"type": "i32", "size": 8, "fill": 0}, {"name": "y", "type": "i32", "size": 8, "expect": [0, 0, 1, 3, 6, 10, 15, 21]}]
// Aggregates and inclusive prefixes, as decoupled look-back has them: state 1 and 2.
#include <cuda/atomic>
__global__ void scan(int* values, int* states, int* y) {
  if (threadIdx.x) return;
  using State = cuda::atomic_ref<int, cuda::thread_scope_device>;
  const int b = blockIdx.x;
  values[2 * b] = b;
  State(states[b]).store(1, cuda::memory_order_release);
  int before = 0;
  for (int i = b - 1; i >= 0; --i) {
    int state;
    while ((state = State(states[i]).load(cuda::memory_order_acquire)) == 0) {
    }
    before += values[2 * i + state - 1];
    if (state == 2) break;
  }
  values[2 * b + 1] = before + b;
  State(states[b]).store(2, cuda::memory_order_release);
  y[b] = before;
}

// grid: 2  block: 64
// args: [{"type": "i32", "size": 64, "fill": "iota"}]
// finds: assert at 6
#include <cassert>
__global__ void verify(const int* x) {
  assert(x[threadIdx.x] < 50);
}

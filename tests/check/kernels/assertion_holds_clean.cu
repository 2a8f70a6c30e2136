// grid: 1  block: 64
// args: [{"type": "i32", "size": 64, "fill": "iota"}]
// with assertion_fails: assert at 6
#include <assert.h>
__global__ void verify(const int* x) {
  assert(x[threadIdx.x] < 64 && "all are there");
  // edit assertion_fails: < 64 => < 50
}

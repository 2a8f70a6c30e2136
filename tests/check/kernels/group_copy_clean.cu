// grid: 1  block: 64
// args: [{"type": "i32", "size": 256, "fill": "iota"}, {"name": "y", "type": "i32", "size": 256, "expect": "iota"}]
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void stage(const int* x, int* y) {
  const cg::thread_block block = cg::this_thread_block();
  __shared__ int box[256];
  cg::memcpy_async(block, box, x, sizeof box);
  cg::wait(block);
  for (int i = block.thread_rank(); i < 256; i += block.size()) y[255 - i] = box[255 - i];
}

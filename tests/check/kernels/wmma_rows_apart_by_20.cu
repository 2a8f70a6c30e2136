// The rows of the tile are 20 halves apart; wmma wants a multiple of 8. It is found in the toolkit's header, and told where that is called.
// grid: 1  block: 32  finds: misaligned at 11
// args: [{"type": "f16", "size": 512, "fill": 1}, {"type": "f16", "size": 256}]
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void copy(const half* a, half* out) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> tile;
  const int apart = 20;
  // Hardware may read anything here.
  wmma::load_matrix_sync(tile, a, apart, wmma::mem_row_major);
  wmma::store_matrix_sync(out, tile, 16, wmma::mem_row_major);
}

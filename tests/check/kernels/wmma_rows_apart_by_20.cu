// The rows of the tile are 20 halves apart; wmma requires a multiple of 8. The fault is in a toolkit header and is reported at the calling line.
// grid: 1  block: 32  finds: misaligned at 11
// args: [{"type": "f16", "size": 512, "fill": 1}, {"type": "f16", "size": 256}]
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;
__global__ void copy(const half* a, half* out) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> tile;
  const int apart = 20;
  // Undefined on hardware.
  wmma::load_matrix_sync(tile, a, apart, wmma::mem_row_major);
  wmma::store_matrix_sync(out, tile, 16, wmma::mem_row_major);
}

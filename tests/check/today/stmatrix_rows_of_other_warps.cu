// Four warps put 16 x 16 tiles of 16-bit sums into shared memory by stmatrix; the block writes the rows in another
// order.
// A barrier of the block lies between.
// grid: 1  block: 128
// args: [{"type": "i32", "size": 512, "fill": 5}, {"name": "y", "type": "i32", "size": 512, "expect": 5}]
// with stmatrix_rows_of_other_warps: race at 17, race at 22
//   A barrier of the warp lies between, but a thread reads rows that other warps store. The kind of MoonshotAI/FlashKDA
//   issue 24 (STSM and its readers). PTX ISA, stmatrix (an ordinary weak store).
__global__ void store_rows(const int* sums, int4* y) {
  __shared__ int4 rows[128];  // 64 rows of 16 elements: two pieces of 16 bytes each
  const int t = threadIdx.x;
  const int warp = t / 32, lane = t % 32;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&rows[warp * 32 + lane % 16 * 2 + lane / 16]));
  int r[4];
  for (int k = 0; k < 4; ++k) r[k] = sums[128 * k + t];
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
  __syncthreads();
  // edit stmatrix_rows_of_other_warps: __syncwarp();
  const int4 row = rows[127 - t];
  y[t] = row;
}

// grid: 1  block: 128
// args: [{"name": "y", "type": "u8", "size": 53, "expect": "iota"}, {"name": "z", "type": "u8", "size": 52, "expect": "iota"}]
// uncoalesced at: 10,8
// Rows of 13 bytes, one per warp, from an odd address. Warps share words and lines, but no byte.
__global__ void rows(unsigned char* y, unsigned char* z) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) y[0] = 0;
  if (lane < 13) y[1 + warp * 13 + lane] = 1 + warp * 13 + lane;
  __syncthreads();
  if (threadIdx.x < 52) z[51 - threadIdx.x] = y[52 - threadIdx.x] - 1;
}

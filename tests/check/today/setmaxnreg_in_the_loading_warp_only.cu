// A warp loads numbers for a warpgroup that computes; the other three warps of its warpgroup have nothing to do.
// All four warps of the first warpgroup execute the instruction before three of them leave.
// grid: 1  block: 256  arch: sm_90a
// args: [{"type": "i32", "size": 128, "fill": 4}, {"name": "y", "type": "i32", "size": 128, "expect": 8}]
// with setmaxnreg_in_the_loading_warp_only: partial-warp at 13
//   Only the loading warp gives registers back. All warps of a warpgroup must execute the same setmaxnreg; what happens
//   otherwise is undefined, in practice a hang. PTX ISA, setmaxnreg.
__global__ void __launch_bounds__(256, 2) twice(const int* x, int* y) {
  __shared__ int box[128];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp < 4) {
  // edit setmaxnreg_in_the_loading_warp_only: if (warp < 4) { if (warp == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (warp == 0) {
    // edit setmaxnreg_in_the_loading_warp_only:
      for (int k = lane; k < 128; k += 32) box[k] = x[k];
      asm volatile("bar.arrive 1, 160;" ::: "memory");
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    asm volatile("bar.sync 1, 160;" ::: "memory");
    y[threadIdx.x - 128] = 2 * box[255 - threadIdx.x];
  }
}

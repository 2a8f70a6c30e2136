// One warpgroup loads numbers for two others; it gives registers back and the others take more, as GEMM kernels do.
// The loading warpgroup gives back as many as the other two take (24 + 2 x 240 = 3 x 168).
// grid: 1  block: 384  arch: sm_90a
// args: [{"type": "i32", "size": 256, "fill": 4}, {"name": "y", "type": "i32", "size": 256, "expect": 8}]
// with setmaxnreg_of_more_than_there_are: deadlock at 20
//   The block begins with 384 x 168 registers (__launch_bounds__(384, 1)): 40 + 2 x 240 do not fit into 3 x 168, so the
//   second warpgroup waits for registers forever. NVIDIA/cutlass issue 2007, tile-ai/tilelang pull request 2406. PTX
//   ISA, setmaxnreg.
__global__ void __launch_bounds__(384, 1) twice(const int* x, int* y) {
  __shared__ int box[256];
  const int group = threadIdx.x / 128, t = threadIdx.x % 128;
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    // edit setmaxnreg_of_more_than_there_are: asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    for (int half = 0; half < 2; ++half) {
      box[128 * half + t] = x[128 * half + t];
      asm volatile("bar.arrive %0, 256;" ::"r"(half + 1) : "memory");
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    const int half = group - 1;
    asm volatile("bar.sync %0, 256;" ::"r"(half + 1) : "memory");
    y[128 * half + t] = 2 * box[128 * half + 127 - t];
  }
}

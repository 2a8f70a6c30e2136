// grid: 2  block: 64
// args: [{"type": "f32", "size": 64}, {"type": "i32", "size": 1, "fill": 0}, {"type": "f32", "size": 64}]
// finds: race at 12
__global__ void fix_up(float* workspace, int* flag, float* y) {
  if (blockIdx.x == 1) {
    workspace[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(flag, 1);
  } else {
    if (threadIdx.x == 0) while (atomicAdd(flag, 0) == 0) __nanosleep(20);
    __syncthreads();
    y[threadIdx.x] = 1 + workspace[threadIdx.x];
  }
}

// grid: 64  block: 256  max-memory: 1
// args: [{"type": "u32", "size": 1048576}]
// finds: out-of-memory at 5
__global__ void scatter(unsigned* y) {
  y[(blockIdx.x * blockDim.x + threadIdx.x) * 32] = 1;
}

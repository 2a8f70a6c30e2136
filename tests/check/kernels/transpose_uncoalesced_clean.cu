// grid: 2,2  block: 32,32
// args: [{"type": "f32", "size": 4096, "fill": "iota"}, {"type": "f32", "size": 4096}]
// uncoalesced at: 6
__global__ void transpose(const float* x, float* y) {
  const int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
  y[col * 64 + row] = x[row * 64 + col];
}

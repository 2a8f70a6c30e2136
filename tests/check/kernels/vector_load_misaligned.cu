// grid: 1  block: 32
// args: [{"type": "f32", "size": 200, "fill": "iota"}, {"type": "f32", "size": 200}]
// finds: misaligned at 6
__global__ void copy4(const float* x, float* y) {
  const int i = threadIdx.x;
  const float4 v = *reinterpret_cast<const float4*>(x + 4 * i + 1);
  y[4 * i] = v.x + v.w;
}

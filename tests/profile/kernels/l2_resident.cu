// All CTAs read the same 8 MB, which L2 holds and L1 does not.
// grid: 864  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 2097152}, {"name": "y", "type": "f32", "size": 221184}]
// limiter: L2 bandwidth
__global__ void sum(const float4* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float s = 0;
#pragma unroll 4
  for (unsigned k = 0; k < 128; ++k) {
    const float4 v = x[(blockIdx.x * 37 + k) * 256 % 524288 + threadIdx.x];  // <- here
    s += v.x + v.y + v.z + v.w;
  }
  y[i] = s;
}

// One SM's worth of a copy, 4 or 16 bytes a lane at a time.
// grid: 108  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 1769472}, {"name": "y", "type": "f32", "size": 1769472}]
// slow: -DTYPE=float  fast: -DTYPE=float4  gain: 1.5
__global__ void copy(const TYPE* x, TYPE* y) {
  constexpr unsigned kEach = 65536 / sizeof(TYPE);
#pragma unroll 1
  for (unsigned i = threadIdx.x; i < kEach; i += blockDim.x) y[blockIdx.x * kEach + i] = x[blockIdx.x * kEach + i];
}

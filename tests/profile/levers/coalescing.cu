// Neighbouring lanes read neighbouring words, or words of different sectors.
// grid: 4096  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "f32", "size": 8388608}, {"name": "y", "type": "f32", "size": 1048576}]
// slow: -DSTRIDE=8  fast: -DSTRIDE=1  gain: 2.5
__global__ void copy(const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[STRIDE * i];
}

// grid: 1  block: 32
// args: [{"name": "x", "type": "f32", "size": 32, "fill": "random", "seed": 2}, {"name": "y", "type": "f32", "size": 160}]
// Doubles go with bits that move: halves of a register, shuffles, local arrays, signs, atomics, structs.
#include <cuda_fp16.h>
struct Pair {
  float a;
  __half2 b;
};
__global__ void tricks(const float* x, float* y) {
  __shared__ Pair shared[32];
  __shared__ float sum;
  const int i = threadIdx.x;
  if (i == 0) sum = 0;
  const float v = x[i] / 3.0f;
  Pair p;
  p.a = v * 1.7f;
  p.b = __floats2half2_rn(v, v * v);
  shared[31 - i] = p;
  __syncwarp();
  const Pair q = shared[i];
  float local[8];
  for (int k = 0; k < 8; ++k) local[k] = q.a * k;
  y[i] = local[(i * 5) & 7];
  y[32 + i] = __shfl_down_sync(~0u, v, 1) + fabsf(v);
  y[64 + i] = __high2float(q.b);
  y[96 + i] = __uint_as_float(__float_as_uint(v) ^ 0x80000000u);
  atomicAdd(&sum, v);
  __syncwarp();
  y[128 + i] = sum;
}

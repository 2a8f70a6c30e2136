// The inner loop of a GEMM whose fragments stay in registers: 16 independent products of 16 x 8 x 16 a warp.
// grid: 216  block: 256  device: a100-sxm-80
// args: [{"name": "x", "type": "u32", "size": 55296, "fill": 1}, {"name": "y", "type": "f32", "size": 55296}]
// limiter: throughput of the tensor pipe
__global__ void __launch_bounds__(256) products(const unsigned* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a[4], b[2];
  for (int k = 0; k < 4; ++k) a[k] = x[i] + k;
  for (int k = 0; k < 2; ++k) b[k] = x[i] + k;
  float c[16][4] = {};
#pragma unroll 1
  for (int step = 0; step < 64; ++step) {
#pragma unroll
    for (int t = 0; t < 16; ++t)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                   : "+f"(c[t][0]), "+f"(c[t][1]), "+f"(c[t][2]), "+f"(c[t][3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));  // <- here
  }
  float sum = 0;
  for (int t = 0; t < 16; ++t) sum += c[t][0] + c[t][1] + c[t][2] + c[t][3];
  y[i] = sum;
}

// grid: 1  block: 32
// args: [{"name": "x", "type": "f32", "size": 512, "fill": "random", "seed": 3}, {"name": "y", "type": "f32", "size": 128}]
// A tile times itself, rounded to bf16 and brought to the tensor cores through shared memory.
#include <cuda_bf16.h>
__global__ void products(const float* x, float* y) {
  __shared__ __align__(16) __nv_bfloat16 a[16 * 16];
  const int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) a[i] = __float2bfloat16(x[i] * 1.1f);
  __syncwarp();
  unsigned r[4], b[2];
  const unsigned at = (unsigned)__cvta_generic_to_shared(a + lane % 16 * 16 + lane / 16 * 8);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(at));
  float d[4] = {};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(b[0]), "r"(b[1]));
  const int row = lane / 4, column = lane % 4 * 2;
  y[row * 8 + column] = d[0], y[row * 8 + column + 1] = d[1];
  y[(row + 8) * 8 + column] = d[2], y[(row + 8) * 8 + column + 1] = d[3];
}

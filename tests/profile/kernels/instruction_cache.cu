// A loop of 12000 instructions, 188 KiB of code.
// grid: 108  block: 128  device: a100-sxm-80
// args: [{"name": "y", "type": "f32", "size": 13824}]
// limiter: instruction cache
#define ONE(k) a = a * b + k##.5f, b = b * c + k##.25f, c = c * d + k##.125f, d = d * a + k##.75f;
#define TEN(k) ONE(k##0) ONE(k##1) ONE(k##2) ONE(k##3) ONE(k##4) ONE(k##5) ONE(k##6) ONE(k##7) ONE(k##8) ONE(k##9)
#define HUNDRED(k) TEN(k##0) TEN(k##1) TEN(k##2) TEN(k##3) TEN(k##4) TEN(k##5) TEN(k##6) TEN(k##7) TEN(k##8) TEN(k##9)
#define THOUSAND(k) HUNDRED(k##0) HUNDRED(k##1) HUNDRED(k##2) HUNDRED(k##3) HUNDRED(k##4) HUNDRED(k##5) HUNDRED(k##6) \
                    HUNDRED(k##7) HUNDRED(k##8) HUNDRED(k##9)
__global__ void poly(float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i, b = i + 1, c = i + 2, d = i + 3;
#pragma unroll 1
  for (int k = 0; k < 4; ++k) {
    THOUSAND(1) THOUSAND(2) THOUSAND(3)  // <- here
  }
  y[i] = a + b + c + d;
}

// Turns tiles of 32 x 32 floats over, loaded by copies of 16 bytes into rows that are padded against bank conflicts.
// Rows of 36 floats begin at multiples of 16 bytes.
// grid: 2  block: 64
// args: [{"type": "f32", "size": 2048, "fill": 1}, {"name": "y", "type": "f32", "size": 2048, "expect": 1}]
// with cp_async_of_a_padded_row: misaligned at 18, uninitialised at 23
//   Rows of 33 floats begin at multiples of 132 bytes, and cp.async of 16 bytes needs multiples of 16: a misaligned
//   address fault. PTX ISA, cp.async (alignment to cp-size).
#include "hopper.cuh"

constexpr int kPitch = 36;
// edit cp_async_of_a_padded_row: constexpr int kPitch = 33;

__global__ void transpose(const float* x, float* y) {
  __shared__ __align__(16) float tile[32][kPitch];
  const int t = threadIdx.x, first = blockIdx.x * 1024;
  for (int k = t; k < 256; k += 64) {
    const unsigned to = at(&tile[k / 8][k % 8 * 4]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(x + first + 4 * k))
                 : "memory");
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  for (int k = t; k < 1024; k += 64) y[first + k] = tile[k % 32][k / 32];
}

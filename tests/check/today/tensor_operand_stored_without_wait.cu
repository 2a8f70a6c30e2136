// Multiplies 128 x 16 ones of bf16 in tensor memory, where each warp has stored its 32 rows (the probabilities of
// attention), by 16 x 16 in shared memory.
// Each warp waits for its stores, then arrives.
// grid: 1  block: 160  arch: sm_100a
// args: [{"type": "i32", "size": 128, "fill": 1065369472}, {"name": "y", "type": "f32", "size": 2048, "expect": 16}]
// with tensor_operand_stored_without_wait: async-pending at 32, async-pending at blackwell.cuh:16
//   The stores may be under way when the product begins: a barrier does not wait for them. PTX ISA, tcgen05.wait::st.
#include "blackwell.cuh"

__global__ void __launch_bounds__(160) sums(const int* x, float* y) {
  __shared__ __align__(128) int b[128];
  __shared__ unsigned long long ready, done;
  __shared__ unsigned address;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < 128) b[threadIdx.x] = x[threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (threadIdx.x == 0) {
    init(&ready, 128), init(&done, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (warp == 4) alloc(&address, 64);
  before_sync();
  __syncthreads();
  after_sync();
  const unsigned d = address, a = d + 32;
  if (threadIdx.x == 128) {
    wait(&ready, 0);
    after_sync();
    asm volatile(
        "{ .reg .pred keep;\nsetp.ne.b32 keep, 0, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, keep; }" ::"r"(d),
        "r"(a), "l"(tile(b, 256)), "r"(bf16_product(128, 16))
        : "memory");
    commit(&done);
  } else if (warp < 4) {
    const unsigned ones[8] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80,
                              0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
    store8(a + lanes_of_warp(), ones);
    stored();
    // edit tensor_operand_stored_without_wait:
    before_sync();
    arrive(&ready);
    wait(&done, 0);
    after_sync();
    float z[16];
    load(z, d + lanes_of_warp());
    loaded();
    for (int i = 0; i < 16; ++i) y[i * 128 + threadIdx.x] = z[i];
    before_sync();
  }
  __syncwarp();
  __syncthreads();
  if (warp == 4) dealloc(d, 64);
}

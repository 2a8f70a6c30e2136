// Adds up four rows of 128 floats, which a bulk copy loads one after another into one buffer behind one mbarrier.
// The parity follows the phase.
// grid: 2  block: 128
// args: [{"type": "f32", "size": 1024, "fill": 1}, {"name": "y", "type": "f32", "size": 256, "expect": 4}]
// finds: nothing
// with parity_never_flips: barrier-order at 16, deadlock at 16, race at 23
//   Each wait asks for parity 0. From the second row on that phase has already ended, so the wait returns at once and
//   the threads read a row that has not landed. Seen in tile-ai/tilelang pull request 3087. PTX ISA, mbarrier.try_wait
//   (".parity" of the current or the immediately preceding phase).
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void wait(const void* bar, int parity) {
  asm volatile(
      "{ .reg .pred done;\nAGAIN_%=:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN_%=; "
      "}" ::"r"(at(bar)),
      "r"(parity)
      : "memory");
}

__device__ void load(void* to, const void* from, int bytes, void* bar) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(bar)), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at(bar))
               : "memory");
}

__global__ void sum_rows(const float* x, float* y) {
  __shared__ __align__(128) float row[128];
  __shared__ unsigned long long full;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&full)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) load(row, x + blockIdx.x * 512 + i * 128, sizeof row, &full);
    wait(&full, i & 1);
    // edit parity_never_flips: wait(&full, 0);
    sum += row[127 - threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
  }
  y[blockIdx.x * 128 + threadIdx.x] = sum;
}

// grid: 2  block: 64
// args: [{"name": "y", "type": "i32", "size": 2, "expect": 4}]
// Each phase of both mbarriers has an arrival of each CTA. No thread waits for a phase but the last: the barrier of the
// cluster orders them.
using word = unsigned long long;
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ void arrive_at(word* b, int rank) {
  asm volatile("{.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];}" ::"r"(at(b)), "r"(rank) : "memory");
}
__device__ void wait(word* b, int parity) {
  asm volatile("{.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra AGAIN;}" ::"r"(at(b)), "r"(parity) : "memory");
}
__global__ void __cluster_dims__(2) rounds(int* y) {
  __shared__ word met;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 2;" ::"r"(at(&met)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();
  int phases = 0;
  for (int i = 0; i < 4; ++i, ++phases) {
    if (threadIdx.x == 32) arrive_at(&met, 0), arrive_at(&met, 1);
    __syncwarp();
    if (i == 3) wait(&met, 1);
    cluster_sync();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = phases;
}

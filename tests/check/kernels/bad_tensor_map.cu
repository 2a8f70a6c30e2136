// grid: 1  block: 32
// args: [{"type": "u64", "align": 64, "value": [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0]}]
// finds: bad-tensor-map at 12
struct alignas(64) Map { unsigned long long words[16]; };
__global__ void load(const __grid_constant__ Map map) {
  __shared__ alignas(128) float tile[32];
  __shared__ unsigned long long barrier;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile)), at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at) : "memory");
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to), "l"(&map), "r"(0), "r"(at) : "memory");
  }
}

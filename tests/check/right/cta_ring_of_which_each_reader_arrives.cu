// grid: 1  block: 128
// args: [{"type": "i32", "size": 512, "fill": 1}, {"name": "y", "type": "i32", "size": 96, "expect": 16}]
// with cta_ring_of_which_one_reader_arrives: barrier-order at 11
//   One warp arrives for three readers: the others may not have waited yet when the slot is filled again. the others
//   only count
using word = unsigned long long;
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void init(word* b, int count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(b)), "r"(count)); }
__device__ void arrive(word* b) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(at(b)) : "memory"); }
__device__ void wait(word* b, int parity) {
  asm volatile("{.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra AGAIN;}" ::"r"(at(b)), "r"(parity) : "memory");
}
// Each reader arrives; the readers meet at a barrier of their own now and then.
__global__ void ring(const int* x, int* y) {
  __shared__ int box[32];
  __shared__ word full, empty;
  if (threadIdx.x == 0) init(&full, 32), init(&empty, 3);
  // edit cta_ring_of_which_one_reader_arrives: 3) => 32)
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int sum = 0;
  for (int i = 0; i < 16; ++i) {
    if (warp == 0) {
      wait(&empty, (i & 1) ^ 1);
      box[lane] = x[32 * i + lane];
      arrive(&full);
    } else {
      wait(&full, i & 1);
      sum += box[31 - lane];
      // edit cta_ring_of_which_one_reader_arrives: sum += warp == 1 ? box[31 - lane] : 1;
      __syncwarp();
      // edit cta_ring_of_which_one_reader_arrives: if (warp == 1) arrive(&empty);
      if (lane == 0) arrive(&empty);
      // edit cta_ring_of_which_one_reader_arrives:
      if (i % 4 == 3) asm volatile("bar.sync 1, 96;" ::: "memory");
      // edit cta_ring_of_which_one_reader_arrives:
    }
  }
  if (warp > 0) y[threadIdx.x - 32] = sum;
}

// grid: 2  block: 128
// args: [{"type": "i32", "size": 768, "fill": 1}, {"name": "y", "type": "i32", "size": 192, "expect": 4}]
// with mbarrier_count_too_high: deadlock at 17
// with mbarrier_count_too_low: deadlock at 17
// with mbarrier_not_initialised: uninitialised at 14, bad-barrier at 14
//   other warps may arrive before the barriers are initialised
// with mbarrier_slot_not_empty: deadlock at 17
//   does not wait until the slot is empty
// with mbarrier_too_many_arrivals: bad-barrier at 14
// with mbarrier_wrong_parity: race at 35, barrier-order at 17, deadlock at 17
using word = unsigned long long;
__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
__device__ void init(word* b, int count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at(b)), "r"(count)); }
__device__ void arrive(word* b) { asm volatile("{.reg .b64 t;\nmbarrier.arrive.shared.b64 t, [%0];}" ::"r"(at(b)) : "memory"); }
// edit mbarrier_too_many_arrivals: arrive.shared.b64 t, [%0] => arrive.noComplete.release.cta.shared.b64 t, [%0], 3
__device__ void wait(word* b, int parity) {
  asm volatile("{.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@!p bra AGAIN;}" ::"r"(at(b)), "r"(parity) : "memory");
}
// Warp 0 loads tiles of 96 into two slots; warps 1 to 3 sum them.
__global__ void pipeline(const int* x, int* y) {
  __shared__ int box[2][96];
  __shared__ word full[2], empty[2];
  if (threadIdx.x == 0)
  // edit mbarrier_not_initialised: if (threadIdx.x == 127)
    for (int i = 0; i < 2; ++i) init(&full[i], 32), init(&empty[i], 96);
    // edit mbarrier_count_too_high: 32 => 33
    // edit mbarrier_count_too_low: 32 => 16
    // edit mbarrier_too_many_arrivals: 32 => 5
  __syncthreads();
  // edit mbarrier_not_initialised:
  if (threadIdx.x < 32) {
    for (int i = 0; i < 4; ++i) {
      if (i >= 2) wait(&empty[i % 2], (i / 2 - 1) % 2);
      // edit mbarrier_slot_not_empty:
      for (int k = threadIdx.x; k < 96; k += 32) box[i % 2][k] = x[blockIdx.x * 384 + i * 96 + k];
      arrive(&full[i % 2]);
    }
  } else {
    const int k = threadIdx.x - 32;
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
      wait(&full[i % 2], i / 2 % 2);
      // edit mbarrier_wrong_parity: wait(&full[i % 2], 1 - i / 2 % 2);
      sum += box[i % 2][95 - k];
      arrive(&empty[i % 2]);
    }
    y[blockIdx.x * 96 + k] = sum;
  }
}

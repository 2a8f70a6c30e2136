// Copies 16-byte words: eight of a thread in flight, one CTA's side by side.
extern "C" __global__ void __launch_bounds__(256)
    copy(const uint4* __restrict__ from, uint4* __restrict__ to, int words) {
  constexpr int kEach = 8;
  const int first = blockIdx.x * 256 * kEach + threadIdx.x;
  uint4 held[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (first + 256 * i < words) held[i] = from[first + 256 * i];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    if (first + 256 * i < words) to[first + 256 * i] = held[i];
}

// grid: 1  block: 64  kernel: sums::reduce<int, 64>
// args: [{"type": "i32", "size": 64, "fill": "iota"}, {"type": "i32", "size": 1, "expect": 2016}]
namespace sums {
template <class T, unsigned kThreads>
__global__ void __launch_bounds__(kThreads) reduce(const T* x, T* y) {
  __shared__ T part[kThreads];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  for (unsigned half = kThreads / 2; half; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) *y = part[0];
}
}  // namespace sums
void launch(const int* x, int* y) { sums::reduce<int, 128><<<1, 128>>>(x, y); }

// Device-wide algorithms of CUB: look-back scans, onesweep sorts and the rest.
#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <cuda/functional>
#include <numeric>
#include <vector>

template <class F>
void call(F f) {
  void* temp = nullptr;
  size_t bytes = 0;
  f(temp, bytes);
  cudaMalloc(&temp, bytes);
  f(temp, bytes);
  cudaFree(temp);
}

int main() {
  constexpr int N = 40000;
  std::vector<int> host(N), keys(N), sorted;
  for (int i = 0; i < N; ++i) host[i] = i * 7919 % 1009, keys[i] = i / 37;
  sorted = host;
  std::sort(sorted.begin(), sorted.end());
  int *in, *out, *key, *count, *out2, *offsets, bad = 0;
  for (int** at : {&in, &out, &key, &count, &out2, &offsets}) cudaMalloc(at, N * sizeof(int));
  cudaMemcpy(in, host.data(), N * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(key, keys.data(), N * sizeof(int), cudaMemcpyHostToDevice);
  auto done = [&](const char* name, int* from, int at, int expected) {
    int result = -1;
    cudaMemcpy(&result, from + at, sizeof result, cudaMemcpyDeviceToHost);
    bool right = cudaGetLastError() == cudaSuccess && result == expected;
    printf("%s: %s %d %d\n", name, right ? "right" : "WRONG", result, expected);
    bad += !right;
  };
  int total = std::accumulate(host.begin(), host.end(), 0);
  call([&](void* t, size_t& b) { cub::DeviceReduce::Sum(t, b, in, out, N); });
  done("reduce", out, 0, total);
  call([&](void* t, size_t& b) { cub::DeviceScan::InclusiveSum(t, b, in, out, N); });
  done("scan", out, N - 1, total);
  call([&](void* t, size_t& b) { cub::DeviceScan::ExclusiveSumByKey(t, b, key, in, out, N); });
  done("scan by key", out, 38, host[37]);
  call([&](void* t, size_t& b) { cub::DeviceRadixSort::SortKeys(t, b, in, out, N); });
  done("radix sort", out, N / 2, sorted[N / 2]);
  call([&](void* t, size_t& b) { cub::DeviceRadixSort::SortPairsDescending(t, b, in, out, key, out2, 1000); });
  std::vector<int> some(host.begin(), host.begin() + 1000);
  done("small radix sort", out, 0, *std::max_element(some.begin(), some.end()));
  cudaMemcpy(out, in, N * sizeof(int), cudaMemcpyDeviceToDevice);
  call([&](void* t, size_t& b) {
    cub::DeviceMergeSort::SortKeys(t, b, out, N, [] __device__(int a, int c) { return a < c; });
  });
  done("merge sort", out, N / 3, sorted[N / 3]);
  call([&](void* t, size_t& b) { cub::DeviceHistogram::HistogramEven(t, b, in, out, 65, 0, 1024, N); });
  done("histogram", out, 0, std::count_if(host.begin(), host.end(), [](int a) { return a < 16; }));
  auto even = [] __host__ __device__(int a) { return a % 2 == 0; };
  call([&](void* t, size_t& b) { cub::DeviceSelect::If(t, b, in, out, count, N, even); });
  done("select", count, 0, std::count_if(host.begin(), host.end(), even));
  call([&](void* t, size_t& b) { cub::DevicePartition::If(t, b, in, out, count, N, even); });
  done("partition", count, 0, std::count_if(host.begin(), host.end(), even));
  call([&](void* t, size_t& b) { cub::DeviceSelect::Unique(t, b, key, out, count, N); });
  done("unique", count, 0, keys.back() + 1);
  call([&](void* t, size_t& b) { cub::DeviceRunLengthEncode::Encode(t, b, key, out, out2, count, N); });
  done("run lengths", out2, 1, 37);
  call([&](void* t, size_t& b) {
    cub::DeviceReduce::ReduceByKey(t, b, key, out, in, out2, count, cuda::std::plus<>{}, N);
  });
  done("reduce by key", out2, 0, std::accumulate(host.begin(), host.begin() + 37, 0));
  std::vector<int> starts(101);
  for (int i = 0; i <= 100; ++i) starts[i] = i * 397;
  cudaMemcpy(offsets, starts.data(), 101 * sizeof(int), cudaMemcpyHostToDevice);
  call([&](void* t, size_t& b) { cub::DeviceSegmentedReduce::Sum(t, b, in, out, 100, offsets, offsets + 1); });
  done("segmented reduce", out, 0, std::accumulate(host.begin(), host.begin() + 397, 0));
  call(
      [&](void* t, size_t& b) { cub::DeviceSegmentedSort::SortKeys(t, b, in, out, 39700, 100, offsets, offsets + 1); });
  done("segmented sort", out, 0, *std::min_element(host.begin(), host.begin() + 397));
  call([&](void* t, size_t& b) {
    cub::DeviceSegmentedRadixSort::SortKeys(t, b, in, out, 39700, 100, offsets, offsets + 1);
  });
  done("segmented radix sort", out, 0, *std::min_element(host.begin(), host.begin() + 397));
  cub::DeviceFor::ForEachN(in, N, [] __device__(int& a) { a += 1; });
  done("for", in, 5, host[5] + 1);
  return bad;
}

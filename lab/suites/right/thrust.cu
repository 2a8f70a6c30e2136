// Thrust on device vectors.
#include <thrust/adjacent_difference.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include <cstdio>

struct Even {
  __host__ __device__ bool operator()(int a) const { return a % 2 == 0; }
};

int main() {
  constexpr int N = 20000;
  thrust::host_vector<int> host(N);
  for (int i = 0; i < N; ++i) host[i] = i * 7919 % 1009;
  thrust::device_vector<int> a = host, b(N), c(2 * N);
  int sum = thrust::reduce(a.begin(), a.end()), dot = thrust::inner_product(a.begin(), a.end(), a.begin(), 0) & 1;
  int even = thrust::count_if(a.begin(), a.end(), Even()), most = *thrust::max_element(a.begin(), a.end());
  thrust::sequence(b.begin(), b.end());
  thrust::sort_by_key(a.begin(), a.end(), b.begin());
  thrust::stable_sort(b.begin(), b.end(), [] __host__ __device__(int x, int y) { return x > y; });
  bool right = thrust::is_sorted(a.begin(), a.end()) && b[0] == N - 1 && a[N - 1] == most;
  thrust::inclusive_scan(a.begin(), a.end(), c.begin());
  right = right && c[N - 1] == sum;
  thrust::device_vector<int> keys(N), sums(N);
  auto ends = thrust::reduce_by_key(a.begin(), a.end(), thrust::make_constant_iterator(1), keys.begin(), sums.begin());
  right = right && ends.first - keys.begin() == 1009;
  thrust::sort(b.begin(), b.end());
  thrust::merge(a.begin(), a.end(), b.begin(), b.end(), c.begin());
  right = right && thrust::is_sorted(c.begin(), c.end());
  auto both = thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), c.begin());
  right = right && both > c.begin();
  auto middle = thrust::partition(b.begin(), b.end(), Even());
  right = right && middle - b.begin() == N / 2;
  auto unique = thrust::unique(a.begin(), a.end());
  right = right && unique - a.begin() == 1009 && even > 0;
  thrust::adjacent_difference(a.begin(), unique, c.begin());
  right = right && c[5] == 1;
  printf("%s %d\n", right ? "right" : "WRONG", dot);
  return !right;
}

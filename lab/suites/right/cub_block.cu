// Block and warp collectives of CUB, each against a sum, a maximum or an order that the host knows.
#include <cstdio>
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>
#include <cuda/functional>

constexpr int THREADS = 128, ITEMS = 4, TILE = THREADS * ITEMS;
struct Add {
  __device__ int operator()(int a, int b) const { return a + b; }
};
struct Less {
  __device__ bool operator()(int a, int b) const { return a < b; }
};

template <cub::BlockReduceAlgorithm ALGORITHM>
__global__ void reduce(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, THREADS, ALGORITHM>;
  __shared__ typename Reduce::TempStorage temp;
  int items[ITEMS];
  for (int i = 0; i < ITEMS; ++i) items[i] = in[blockIdx.x * TILE + threadIdx.x * ITEMS + i];
  int sum = Reduce(temp).Sum(items);
  __syncthreads();
  int most = Reduce(temp).Reduce(items[0], cuda::maximum<>{});
  if (threadIdx.x == 0) out[blockIdx.x * TILE] = sum, out[blockIdx.x * TILE + 1] = most;
}

template <cub::BlockScanAlgorithm ALGORITHM, cub::BlockLoadAlgorithm LOAD, cub::BlockStoreAlgorithm STORE>
__global__ void scan(const int* in, int* out) {
  using Load = cub::BlockLoad<int, THREADS, ITEMS, LOAD>;
  using Store = cub::BlockStore<int, THREADS, ITEMS, STORE>;
  using Scan = cub::BlockScan<int, THREADS, ALGORITHM>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } temp;
  int items[ITEMS], total;
  Load(temp.load).Load(in + blockIdx.x * TILE, items);
  __syncthreads();
  Scan(temp.scan).InclusiveSum(items, items, total);
  __syncthreads();
  Store(temp.store).Store(out + blockIdx.x * TILE, items);
}

__global__ void radix_sort(const int* in, int* out) {
  using Sort = cub::BlockRadixSort<int, THREADS, ITEMS, int>;
  __shared__ typename Sort::TempStorage temp;
  int keys[ITEMS], values[ITEMS];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * TILE, keys);
  for (int i = 0; i < ITEMS; ++i) values[i] = keys[i] + 1;
  Sort(temp).Sort(keys, values);
  __syncthreads();
  Sort(temp).SortBlockedToStriped(keys, values);
  cub::StoreDirectStriped<THREADS>(threadIdx.x, out + blockIdx.x * TILE, keys);
}

__global__ void merge_sort(const int* in, int* out) {
  using Sort = cub::BlockMergeSort<int, THREADS, ITEMS>;
  __shared__ typename Sort::TempStorage temp;
  int keys[ITEMS];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * TILE, keys);
  Sort(temp).Sort(keys, Less{});
  cub::StoreDirectBlocked(threadIdx.x, out + blockIdx.x * TILE, keys);
}

template <cub::BlockHistogramAlgorithm ALGORITHM>
__global__ void histogram(const int* in, int* out) {
  using Histogram = cub::BlockHistogram<unsigned char, THREADS, ITEMS, 32, ALGORITHM>;
  __shared__ typename Histogram::TempStorage temp;
  __shared__ int bins[32];
  unsigned char items[ITEMS];
  for (int i = 0; i < ITEMS; ++i) items[i] = in[blockIdx.x * TILE + threadIdx.x * ITEMS + i] & 31;
  Histogram(temp).Histogram(items, bins);
  __syncthreads();
  if (threadIdx.x < 32) out[blockIdx.x * TILE + threadIdx.x] = bins[threadIdx.x];
}

__global__ void exchange(const int* in, int* out) {
  using Exchange = cub::BlockExchange<int, THREADS, ITEMS>;
  using WarpSpecial = cub::BlockExchange<int, THREADS, ITEMS, true>;
  __shared__ typename Exchange::TempStorage temp;
  __shared__ typename WarpSpecial::TempStorage slices;
  int items[ITEMS], ranks[ITEMS];
  cub::LoadDirectStriped<THREADS>(threadIdx.x, in + blockIdx.x * TILE, items);
  Exchange(temp).StripedToBlocked(items, items);
  __syncthreads();
  Exchange(temp).BlockedToWarpStriped(items, items);
  __syncthreads();
  Exchange(temp).WarpStripedToBlocked(items, items);
  __syncthreads();
  WarpSpecial(slices).BlockedToStriped(items, items);
  __syncthreads();
  for (int i = 0; i < ITEMS; ++i) ranks[i] = TILE - 1 - (threadIdx.x + i * THREADS);
  Exchange(temp).ScatterToStriped(items, ranks);
  cub::StoreDirectStriped<THREADS>(threadIdx.x, out + blockIdx.x * TILE, items);
}

__global__ void neighbours(const int* in, int* out) {
  using Flags = cub::BlockDiscontinuity<int, THREADS>;
  using Difference = cub::BlockAdjacentDifference<int, THREADS>;
  using Shuffle = cub::BlockShuffle<int, THREADS>;
  __shared__ typename Flags::TempStorage flags_temp;
  __shared__ typename Difference::TempStorage difference_temp;
  __shared__ typename Shuffle::TempStorage shuffle_temp;
  int items[ITEMS], heads[ITEMS], differences[ITEMS], shifted[ITEMS];
  cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * TILE, items);
  Flags(flags_temp).FlagHeads(heads, items, cuda::std::not_equal_to<>{});
  Difference(difference_temp).SubtractLeft(items, differences, [](int a, int b) { return a - b; });
  Shuffle(shuffle_temp).Up(items, shifted);
  for (int i = 0; i < ITEMS; ++i) {
    bool first = threadIdx.x == 0 && i == 0;
    out[blockIdx.x * TILE + threadIdx.x * ITEMS + i] = heads[i] + differences[i] + (first ? 0 : shifted[i]);
  }
}

__global__ void warps(const int* in, int* out) {
  using Reduce = cub::WarpReduce<int>;
  using Half = cub::WarpReduce<int, 16>;
  using Odd = cub::WarpReduce<int, 7>;
  using Scan = cub::WarpScan<int>;
  using Sort = cub::WarpMergeSort<int, ITEMS>;
  using Exchange = cub::WarpExchange<int, ITEMS>;
  using Load = cub::WarpLoad<int, ITEMS, cub::WARP_LOAD_TRANSPOSE>;
  using Store = cub::WarpStore<int, ITEMS, cub::WARP_STORE_TRANSPOSE>;
  constexpr int WARPS = THREADS / 32;
  __shared__ typename Reduce::TempStorage reduce[WARPS];
  __shared__ typename Half::TempStorage half[WARPS * 2];
  __shared__ typename Odd::TempStorage odd[WARPS];
  __shared__ typename Scan::TempStorage scans[WARPS];
  __shared__ typename Sort::TempStorage sorts[WARPS];
  __shared__ typename Exchange::TempStorage exchanges[WARPS];
  __shared__ typename Load::TempStorage loads[WARPS];
  __shared__ typename Store::TempStorage stores[WARPS];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, items[ITEMS];
  const int* from = in + blockIdx.x * TILE + warp * 32 * ITEMS;
  Load(loads[warp]).Load(from, items);
  int sum = Reduce(reduce[warp]).Sum(items[0]);
  int part = Half(half[threadIdx.x / 16]).Sum(items[1]);
  int few = lane < 7 ? Odd(odd[warp]).Sum(items[2]) : 0;
  int before;
  Scan(scans[warp]).ExclusiveSum(items[3], before);
  Sort(sorts[warp]).Sort(items, Less{});
  Exchange(exchanges[warp]).BlockedToStriped(items, items);
  __syncwarp();
  Exchange(exchanges[warp]).StripedToBlocked(items, items);
  Store(stores[warp]).Store(out + blockIdx.x * TILE + warp * 32 * ITEMS, items);
  if (lane == 0 && sum + part + few + before == -1) out[0] = 0;
}

int main() {
  constexpr int BLOCKS = 3, N = BLOCKS * TILE;
  int *in, *out, host[N], result[N], bad = 0;
  cudaMalloc(&in, sizeof host), cudaMalloc(&out, sizeof host);
  for (int i = 0; i < N; ++i) host[i] = i * 7919 % 1000;
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  auto done = [&](const char* name, int at, int expected) {
    cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost);
    bool right = cudaGetLastError() == cudaSuccess && result[at] == expected;
    printf("%s: %s\n", name, right ? "right" : "WRONG");
    bad += !right;
  };
  int total = 0, least = 1000, most = 0;
  for (int i = 0; i < TILE; ++i) {
    total += host[i];
    if (host[i] < least) least = host[i];
    if (host[i] > most) most = host[i];
  }
  reduce<cub::BLOCK_REDUCE_RAKING><<<BLOCKS, THREADS>>>(in, out), done("raking", 0, total);
  reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY><<<BLOCKS, THREADS>>>(in, out), done("commutative", 0, total);
  reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS><<<BLOCKS, THREADS>>>(in, out), done("warp reductions", 0, total);
  scan<cub::BLOCK_SCAN_RAKING, cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT><<<BLOCKS, THREADS>>>(in, out);
  done("scan raking", TILE - 1, total);
  scan<cub::BLOCK_SCAN_RAKING_MEMOIZE, cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>
      <<<BLOCKS, THREADS>>>(in, out);
  done("scan memoize", TILE - 1, total);
  scan<cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE><<<BLOCKS, THREADS>>>(in, out);
  done("scan warps", TILE - 1, total);
  scan<cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>
      <<<BLOCKS, THREADS>>>(in, out);
  done("scan warp transpose", TILE - 1, total);
  scan<cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED,
       cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED><<<BLOCKS, THREADS>>>(in, out);
  done("scan timesliced", TILE - 1, total);
  scan<cub::BLOCK_SCAN_WARP_SCANS, cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED><<<BLOCKS, THREADS>>>(in, out);
  done("scan striped", TILE - 1, total);
  radix_sort<<<BLOCKS, THREADS>>>(in, out), done("radix sort", TILE - 1, most);
  merge_sort<<<BLOCKS, THREADS>>>(in, out), done("merge sort", 0, least);
  int zeros = 0;
  for (int i = 0; i < TILE; ++i) zeros += host[i] % 32 == 0;
  histogram<cub::BLOCK_HISTO_ATOMIC><<<BLOCKS, THREADS>>>(in, out), done("histogram atomic", 0, zeros);
  histogram<cub::BLOCK_HISTO_SORT><<<BLOCKS, THREADS>>>(in, out), done("histogram sort", 0, zeros);
  exchange<<<BLOCKS, THREADS>>>(in, out), done("exchange", TILE - 1, host[0]);
  neighbours<<<BLOCKS, THREADS>>>(in, out), done("neighbours", 1, 1 + host[1] - host[0] + host[0]);
  warps<<<BLOCKS, THREADS>>>(in, out);
  int first = 1000;
  for (int i = 0; i < 128; ++i) first = host[i] < first ? host[i] : first;
  done("warps", 0, first);
  return bad;
}

// Cooperative groups: tiles, coalesced and labelled groups, reductions, scans, copies, clusters, the grid.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

namespace cg = cooperative_groups;

template <int SIZE>
__global__ void tiles(const int* in, int* out) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<SIZE>(block);
  int value = in[block.thread_rank()];
  int sum = cg::reduce(tile, value, cg::plus<int>());
  int most = cg::reduce(tile, value, cg::greater<int>());
  int before = cg::exclusive_scan(tile, value);
  int up = cg::inclusive_scan(tile, value, cg::plus<int>());
  if (tile.any(value == 5)) tile.sync();
  if (tile.thread_rank() == tile.size() - 1) out[tile.meta_group_rank()] = before + value == sum && up == sum && most;
}

template <int SIZE>
__global__ void large_tiles(const int* in, int* out) {
  __shared__ cg::block_tile_memory<256> memory;
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<SIZE>(block);
  int sum = cg::reduce(tile, in[block.thread_rank()], cg::plus<int>());
  tile.sync();
  int up = cg::inclusive_scan(tile, in[block.thread_rank()], cg::plus<int>());
  if (tile.thread_rank() == tile.size() - 1) out[tile.meta_group_rank()] = up == sum;
}

__global__ void parts(int* counter, int* out) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto labelled = cg::labeled_partition(warp, warp.thread_rank() % 3);
  int third = cg::reduce(labelled, 1, cg::plus<int>());
  auto binary = cg::binary_partition(warp, warp.thread_rank() < 10);
  if (block.thread_rank() % 4 == 0) {
    auto active = cg::coalesced_threads();
    int at = 0;
    if (active.thread_rank() == 0) at = atomicAdd(counter, int(active.size()));
    at = active.shfl(at, 0) + active.thread_rank();
    out[at] = third + int(binary.size());
  }
}

__global__ void copies(const int* in, int* out, int n) {
  __shared__ int buffer[2][256];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, buffer[0], in, sizeof(int) * 256);
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n) {
      cg::memcpy_async(block, buffer[(i + 1) % 2], in + (i + 1) * 256, sizeof(int) * 256);
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    out[i * 256 + threadIdx.x] = buffer[i % 2][255 - threadIdx.x];
    block.sync();
  }
}

__global__ void whole(int* data, int n) {
  auto grid = cg::this_grid();
  for (int half = n / 2; half; half /= 2) {
    for (int i = grid.thread_rank(); i < half; i += grid.size()) data[i] += data[i + half];
    grid.sync();
  }
}

__global__ void phases(int* data, int n) {
  auto grid = cg::this_grid();
  data[grid.thread_rank()] = int(grid.thread_rank());
  auto token = grid.barrier_arrive();
  grid.barrier_wait(std::move(token));
  data[n + grid.thread_rank()] = data[(grid.thread_rank() + 300) % n];
}

__global__ void __cluster_dims__(4) cluster(int* out) {
  __shared__ int value;
  auto group = cg::this_cluster();
  if (threadIdx.x == 0) value = group.block_rank() + 1;
  group.sync();
  int sum = 0;
  for (unsigned i = 0; i < group.num_blocks(); ++i) sum += *group.map_shared_rank(&value, i);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
  group.sync();
}

__global__ void once(int* out) {
  __shared__ int total;
  auto block = cg::this_thread_block();
  cg::invoke_one(block, [&] { total = 0; });
  block.sync();
  cg::reduce_update_async(cg::tiled_partition<32>(block),
                          *reinterpret_cast<cuda::atomic<int, cuda::thread_scope_block>*>(&total), 1, cg::plus<int>());
  block.sync();
  if (threadIdx.x == 0) *out = total;
}

int main() {
  constexpr int N = 4096;
  static int host[N], result[N];
  int *in, *out, bad = 0;
  cudaMalloc(&in, sizeof host), cudaMalloc(&out, 2 * sizeof host);
  for (int i = 0; i < N; ++i) host[i] = i % 100 + 1;
  auto begin = [&] {
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemset(out, 0, 2 * sizeof host);
  };
  auto done = [&](const char* name, int* from, int at, int expected) {
    cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpy(result, from, sizeof result, cudaMemcpyDeviceToHost);
    bool right = error == cudaSuccess && result[at] == expected;
    printf("%s: %s %d %d\n", name, right ? "right" : "WRONG", result[at], expected);
    bad += !right;
    begin();
  };
  begin();
  tiles<32><<<1, 256>>>(in, out), done("tiles of 32", out, 7, 1);
  tiles<8><<<1, 256>>>(in, out), done("tiles of 8", out, 31, 1);
  tiles<1><<<1, 256>>>(in, out), done("tiles of 1", out, 255, 1);
  large_tiles<64><<<1, 256>>>(in, out), done("tiles of 64", out, 3, 1);
  large_tiles<128><<<1, 256>>>(in, out), done("tiles of 128", out, 1, 1);
  cudaMemset(in, 0, 4);
  parts<<<4, 128>>>(in, out), done("parts", in, 0, 128);
  copies<<<1, 256>>>(in, out, 8), done("copies", out, 0, host[255]);
  int n = N, blocks = 8;
  void* arguments[] = {&in, &n};
  int total = 0;
  for (int at : host) total += at;
  cudaLaunchCooperativeKernel((void*)whole, dim3(blocks), dim3(128), arguments), done("grid", in, 0, total);
  n = 1024;
  void* more[] = {&out, &n};
  cudaLaunchCooperativeKernel((void*)phases, dim3(8), dim3(128), more), done("phases", out, 1024, 300);
  cluster<<<8, 64>>>(out), done("cluster", out, 5, 10);
  once<<<1, 128>>>(out), done("once", out, 0, 128);
  return bad;
}

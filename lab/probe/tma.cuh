// Section `tma`: latency, issue and rate of tensor copies.
#pragma once

#include "host.cuh"

constexpr int kStages = 6;
constexpr int kMaxTile = 32768;
constexpr int kColumns = 4096;

struct Tiles {  // a walk over tiles of 64 columns and boxY rows of a matrix of kColumns columns, row of tiles after row
  int boxY;
  int lastRow;  // rows of tiles, a power of two, less one
  __device__ int x(int i) const { return i % (kColumns / 64) * 64; }
  __device__ int y(int i) const { return (i / (kColumns / 64) & lastRow) * boxY; }
  __device__ uint32_t bytes() const { return 128 * boxY; }
};

struct SharedTiles {
  uint32_t tiles, barriers;
};

__device__ SharedTiles sharedTiles(unsigned char* raw, uint32_t count) {
  __shared__ __align__(8) uint64_t barriers[32];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 16; ++i) {
      initBarrier(sharedAddress(&barriers[i]), 1);
      initBarrier(sharedAddress(&barriers[16 + i]), count);
    }
    fenceBarrierInit();
  }
  __syncthreads();
  const uint32_t base = sharedAddress(raw);
  return {base + (1024 - base % 1024) % 1024, sharedAddress(barriers)};
}

// One load at a time: cycles from the issue to the return of the wait. Two walks, of which the second finds L2 warm.
__global__ void loadLatency(const __grid_constant__ CUtensorMap map, Tiles walk, int stride, int count,
                            long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, 1);
  if (threadIdx.x != 0) {
    return;
  }
  uint32_t phase = 0;
  for (int i = 0; i < 2 * count; ++i) {
    const int tile = i % count * stride;
    const int x = walk.x(tile), y = walk.y(tile);
    const long long start = cycles();
    expectBytes(shared.barriers, walk.bytes());
    loadTile(shared.tiles, &map, x, y, shared.barriers);
    wait(shared.barriers, phase);
    times[i] = cycles() - start;
    phase ^= 1;
  }
}

// Loads issued back to back, each to its own barrier: the cycle of each issue's end, then of each arrival.
__global__ void loadIssue(const __grid_constant__ CUtensorMap map, Tiles walk, int count, long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, 1);
  if (threadIdx.x != 0) {
    return;
  }
  for (int round = 0; round < 3; ++round) {  // the first one warms L2 and the instruction cache
    const long long start = cycles();
    for (int i = 0; i < count; ++i) {
      expectBytes(shared.barriers + 8 * i, walk.bytes());
      loadTile(shared.tiles + i * walk.bytes(), &map, 64 * i, 0, shared.barriers + 8 * i);
      times[i] = cycles() - start;
    }
    for (int i = 0; i < count; ++i) {
      wait(shared.barriers + 8 * i, round & 1);
      times[16 + i] = cycles() - start;
    }
  }
}

// A ring of kStages tiles, filled again as soon as each is full. Multicast: each of two CTAs loads half a tile for
// both.
template <bool Multicast>
__global__ void loadStream(const __grid_constant__ CUtensorMap map, Tiles walk, int firstStep, int count,
                           long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, Multicast ? 2 : 1);
  const uint32_t rank = Multicast ? clusterRank() : 0;
  if (Multicast) {
    clusterSync();
  }
  if (threadIdx.x == 0) {
    const uint32_t bytes = walk.bytes() * (Multicast ? 2 : 1);
    const int first = (Multicast ? blockIdx.x / 2 : blockIdx.x) * firstStep;
    const long long start = cycles();
    const long long startNs = nanoseconds();
    for (int i = 0; i < count + kStages; ++i) {
      const int stage = i % kStages;
      const uint32_t full = shared.barriers + 8 * stage;
      const uint32_t empty = shared.barriers + 128 + 8 * stage;
      const uint32_t parity = (i / kStages - 1) & 1;
      if (i >= kStages) {
        wait(full, parity);
        if (Multicast) {
          arriveAt(empty, 0);
          arriveAt(empty, 1);
        }
      }
      if (i < count) {
        if (Multicast && i >= kStages) {
          wait(empty, parity);
        }
        expectBytes(full, bytes);
        const uint32_t to = shared.tiles + stage * kMaxTile;
        const int tile = first + i;
        if (Multicast) {
          loadTileToAll(to + rank * walk.bytes(), &map, walk.x(2 * tile + rank), walk.y(2 * tile + rank), full, 3);
        } else {
          loadTile(to, &map, walk.x(tile), walk.y(tile), full);
        }
      }
    }
    times[2 * blockIdx.x] = cycles() - start;
    times[2 * blockIdx.x + 1] = nanoseconds() - startNs;
  }
  __syncthreads();
  if (Multicast) {
    clusterSync();
  }
}

// A store: cycles until the issue, until the source may be overwritten, until the write is visible.
__global__ void storeLatency(const __grid_constant__ CUtensorMap map, Tiles walk, int count, long long* times) {
  extern __shared__ __align__(1024) unsigned char raw[];
  const SharedTiles shared = sharedTiles(raw, 1);
  if (threadIdx.x != 0) {
    return;
  }
  for (int i = 0; i < count; ++i) {
    for (int word = 0; word < 4; ++word) {
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared.tiles + 4 * word), "r"(i) : "memory");
    }
    fenceProxy();
    const long long start = cycles();
    storeTile(&map, shared.tiles, walk.x(i), walk.y(i));
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    const long long issued = cycles();
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    const long long read = cycles();
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    const long long written = cycles();
    times[3 * i] = issued - start;
    times[3 * i + 1] = read - start;
    times[3 * i + 2] = written - start;
  }
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

CUtensorMap tensorMap(void* data, uint64_t columns, uint64_t rows, uint32_t boxColumns, uint32_t boxRows) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    fail("the driver has no cuTensorMapEncodeTiled");
  }
  CUtensorMap map;
  const cuuint64_t extents[] = {columns, rows};
  const cuuint64_t strides[] = {columns * 2};
  const cuuint32_t box[] = {boxColumns, boxRows};
  const cuuint32_t steps[] = {1, 1};
  const CUresult result = reinterpret_cast<Encode>(function)(
      &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, data, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    fail("cuTensorMapEncodeTiled: error %d", static_cast<int>(result));
  }
  return map;
}

constexpr size_t kRing = static_cast<size_t>(kStages) * kMaxTile + 1024;

// Cycles an SM needs for one of its `count` tiles, the median over SMs, and the rate of all of them by events.
void streamed(Section& section, const std::string& name, void* data, int rows, int boxRows, int sms, int firstStep,
              int count, bool multicast) {
  CUtensorMap map = tensorMap(data, kColumns, rows, 64, boxRows);
  Tiles walk = {boxRows, rows / boxRows - 1};
  Buffer<long long> times(static_cast<size_t>(sms) * 2);
  long long* timesPointer = times.get();
  void* arguments[] = {&map, &walk, &firstStep, &count, &timesPointer};
  double ms = 0;
  for (int run = 0; run < 3; ++run) {
    ms = eventMs([&] {
      if (multicast) {
        launch(loadStream<true>, sms, 32, kRing, 2, false, arguments);
      } else {
        launch(loadStream<false>, sms, 32, kRing, 1, false, arguments);
      }
    });
    sync("loadStream");
  }
  const std::vector<long long> values = times.read();
  std::vector<double> perTile;
  for (int i = 0; i < sms; ++i) {
    perTile.push_back(static_cast<double>(values[2 * i]) / count);
  }
  const double bytes = 128.0 * boxRows * (multicast ? 2 : 1);  // received by one SM
  section.put(name + "_cycles_a_tile", median(perTile));
  section.put(name + "_bytes_per_cycle_and_sm", bytes / median(perTile));
  section.put(name + "_gb_per_s_received", bytes * count * sms / ms / 1e6);
}

void tmaSection() {
  Section section("tma");
  constexpr int kRows = 262144;  // 2 GiB
  const int sms = multiprocessors();
  Buffer<uint16_t> matrix(static_cast<size_t>(kColumns) * kRows);
  for (int boxRows : {8, 64, 128, 256}) {
    const std::string name = "load_" + std::to_string(boxRows * 128) + "b_";
    CUtensorMap map = tensorMap(matrix.get(), kColumns, kRows, 64, boxRows);
    Tiles walk = {boxRows, kRows / boxRows - 1};
    int stride = 64 * 3 + 1, count = 128;
    Buffer<long long> times(2 * static_cast<size_t>(count));
    long long* timesPointer = times.get();
    void* arguments[] = {&map, &walk, &stride, &count, &timesPointer};
    launch(loadLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);  // instructions and the map into the caches
    sync("loadLatency");
    CHECK(cudaMemset(matrix.get() + size_t{kColumns} * kRows / 2, 0, 512 << 20));  // other data into L2
    launch(loadLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);
    sync("loadLatency");
    const std::vector<long long> values = times.read();
    section.put(name + "dram_latency", medianOf(values.begin() + 8, values.begin() + count));
    section.put(name + "l2_latency", medianOf(values.begin() + count + 8, values.end()));
    int issues = std::min(16, kStages * kMaxTile / (boxRows * 128));
    Buffer<long long> issued(32);
    long long* issuedPointer = issued.get();
    void* issueArguments[] = {&map, &walk, &issues, &issuedPointer};
    launch(loadIssue, 1, 32, kRing, 1, false, issueArguments);
    sync("loadIssue");
    const std::vector<long long> at = issued.read();
    section.put(name + "issue_interval", static_cast<double>(at[issues - 1] - at[0]) / (issues - 1));
    section.put(name + "first_arrival", static_cast<double>(at[16]));
    section.put(name + "arrival_interval", static_cast<double>(at[16 + issues - 1] - at[16]) / (issues - 1));
  }
  // 16 MiB stay in L2: all SMs walk through the same tiles, each from another one on. DRAM: 12 MiB an SM.
  for (int boxRows : {64, 128, 256}) {
    const std::string bytes = std::to_string(boxRows * 128) + "b";
    streamed(section, "stream_l2_one_sm_" + bytes, matrix.get(), 2048, boxRows, 1, 0, 512, false);
    streamed(section, "stream_l2_all_" + bytes, matrix.get(), 2048, boxRows, sms, 5, 1024, false);
    streamed(section, "stream_dram_all_" + bytes, matrix.get(), kRows, boxRows, sms, 12 * 1048576 / (boxRows * 128),
             12 * 1048576 / (boxRows * 128), false);
  }
  streamed(section, "stream_l2_multicast_pair_2x8192b", matrix.get(), 2048, 64, 2, 0, 512, true);
  streamed(section, "stream_l2_multicast_all_2x8192b", matrix.get(), 2048, 64, sms / 2 * 2, 5, 1024, true);
  {
    CUtensorMap map = tensorMap(matrix.get(), kColumns, kRows, 64, 64);
    Tiles walk = {64, kRows / 64 - 1};
    int count = 64;
    Buffer<long long> times(3 * static_cast<size_t>(count));
    long long* timesPointer = times.get();
    void* arguments[] = {&map, &walk, &count, &timesPointer};
    launch(storeLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);
    launch(storeLatency, 1, 32, kMaxTile + 1024, 1, false, arguments);
    sync("storeLatency");
    const std::vector<long long> values = times.read();
    const char* names[] = {"store_8192b_issue", "store_8192b_read", "store_8192b_written"};
    for (int what = 0; what < 3; ++what) {
      std::vector<double> one;
      for (int i = 4; i < count; ++i) {
        one.push_back(static_cast<double>(values[3 * i + what]));
      }
      section.put(names[what], median(one));
    }
  }
}

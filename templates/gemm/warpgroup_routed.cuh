// The producer of gemm/warpgroup.cu.jinja where A has a row for each token, and `row_tokens` the token of each sorted
// row. TMA on sm_90 gathers no rows (tile::gather4 of the PTX ISA needs sm_100). Needs lib/routed_tile.cuh and
// gemm/warpgroup_producer.cuh.

/// All warps of the first warpgroup copy rows of A by cp.async; one thread loads B by TMA.
struct RoutedProducer {
  const Launch& launch;
  const Barriers& at;
  const TensorMap& b_map;
  int thread;
  RoutedTile<BM, kStages> rows;
  RingPlace<kStages> place;

  __device__ __forceinline__ RoutedProducer(const Grid& grid, const Depth&, const Barriers& at,
                                            unsigned char* after_barriers, const char* a, const TensorMap& b_map,
                                            int thread)
      : launch(grid.launch),
        at(at),
        b_map(b_map),
        thread(thread),
        rows(after_barriers, a, launch.row_bytes, launch.K * kElementBytes, thread) {}
  static __device__ __forceinline__ bool takes(int) { return true; }
  __device__ __forceinline__ void load(const Grid& grid, const Walk& walk, const Tile& tile) {
    rows.take_rows([&](int row) { return launch.row_tokens[min(tile.m0 + row, tile.M - 1)]; });
#pragma unroll 1
    for (int step = walk.first; step < walk.first + walk.steps; ++step) {
      const unsigned landed = at.full + 8 * place.stage, stage = at.ring + place.stage * kStageBytes;
      barrier_wait(at.empty + 8 * place.stage, place.parity ^ 1);
      if (thread == 0) {
        barrier_arrive_expect(landed, kBBytes);
        tensor_load(stage + kABytes, b_map, landed, step * kTileK, tile.group * launch.N + tile.n0);
      }
      rows.copy(stage, step * 128, at.full);
      place.advance();
    }
  }
  __device__ __forceinline__ void finish() { rows.finish(at.full); }
};

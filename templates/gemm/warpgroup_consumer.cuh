// A warpgroup of gemm/warpgroup.cu.jinja that multiplies. Needs gemm/warpgroup_producer.cuh, lib/promote.cuh and
// lib/tile_parts.cuh.

/// kPingpong: the consumers take the tiles of a CTA in turn; else each has 64 MT rows of every tile.
struct Consumer {
  const Barriers& at;
  const Grid& grid;
  const Depth& depth;
  int index, warp, lane;  // among the consumers; among the warps of a tile; in the warp
  int warp_row;           // in the tile: 16 rows of each 64
  unsigned a_ring;        // this consumer's rows of A in the first stage
  RingPlace<kStages> place;
  int turn = 0;  // tiles of the CTA before this one
  static constexpr int kFirstTurn = 1 + kGroups;

  __device__ __forceinline__ Consumer(const Grid& grid, const Depth& depth, const Barriers& at, int index,
                                      int consumer_warp, int lane)
      : at(at), grid(grid), depth(depth), index(index), lane(lane) {
    warp = kPingpong ? consumer_warp % 4 : consumer_warp;
    warp_row = kPingpong ? warp * 16 : index * 64 * MT + warp % 4 * 16;
    a_ring = at.ring + (kPingpong ? 0 : index * MT * kATile);
  }
  /// A barrier of the warps of a tile.
  __device__ __forceinline__ void sync_tile() const {
    named_barrier(kPingpong ? 1 + index : 1, kPingpong ? 128 : 128 * kGroups);
  }
  __device__ __forceinline__ void wait_full() const { barrier_wait(at.full + 8 * place.stage, place.parity); }
  /// Gives a stage back, at all CTAs that load for this one.
  __device__ __forceinline__ void release(int stage) const {
    if constexpr (kCluster > 1) {
      const bool loads =
          kClusterM == 1 || kClusterN == 1 || lane % kClusterM == grid.rank.m || lane / kClusterM == grid.rank.n;
      if (lane < kCluster && loads) barrier_arrive_at(at.empty + 8 * stage, lane);
    } else {
      if (lane == 0) barrier_arrive(at.empty + 8 * stage);
    }
  }
  /// False: another consumer has this tile.
  __device__ __forceinline__ bool take_turn(const Walk& walk) {
    if constexpr (!kPingpong) return true;
    if (turn % kGroups != index) {
      place.advance(walk.steps);
      return false;
    }
    // A wait tells only neighbouring phases of a barrier apart: the stages of this tile are next only when the consumer
    // of the tile before has seen all of its own.
    if (turn > 0) named_barrier(kFirstTurn + index, 256);
    return true;
  }
  __device__ __forceinline__ void pass_turn(const Walk& walk) const {
    if (kPingpong && !walk.is_last()) named_barrier_arrive(kFirstTurn + (index + 1) % kGroups, 256);
  }

  /// The sums of a tile, over the steps of the walk. row0: the first row of this lane.
  template <class Sum>
  __device__ __forceinline__ void multiply_tile(const Walk& walk, const Tile& tile, int row0, Sum (&c)[MT][NT][4]) {
    if constexpr (kPromoted)
      multiply_promoted(walk, tile, row0, c);
    else
      multiply_in_flight(walk, c);
  }
  /// A batch of products stays in flight while the next one starts; the stage of the batch before is then free.
  template <class Sum>
  __device__ __forceinline__ void multiply_in_flight(const Walk& walk, Sum (&c)[MT][NT][4]) {
    int reading = 0;  // the stage of the batch before, which may be in flight
#pragma unroll 1
    for (int step = 0; step < walk.steps; ++step) {
      const auto a_tile = this->a_tile(), b_tile = this->b_tile();
      wait_full();
#pragma unroll
      for (int i = 0; i < MT; ++i) hold(c[i]);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int i = 0; i < MT; ++i)
          multiply(c[i], moved(a_tile, k * kAStep + i * kATile), moved(b_tile, k * kBStep), step > 0 || k > 0);
      wgmma_commit();
#pragma unroll
      for (int i = 0; i < MT; ++i) hold(c[i]);
      wgmma_wait<1>();
      if (step > 0) release(reading);
      reading = place.stage;
      place.advance();
    }
    pass_turn(walk);
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < MT; ++i) hold(c[i]);
    release(reading);
  }
  /// 8-bit floating-point operands: the sums of a stage are added to sums in fp32 (lib/promote.cuh), times their
  /// scales. While this warpgroup adds, the others multiply.
  template <class Sum>
  __device__ __forceinline__ void multiply_promoted(const Walk& walk, const Tile& tile, int row0, Sum (&c)[MT][NT][4]) {
    const Launch& launch = grid.launch;
    const int k_blocks = ceil_div(launch.K, kTileK), first = depth.k0 / kTileK + walk.first;
    BlockScales<MT, kTileRows, kScaleBlocks, BN / kScaleBlocks> scales, next_scales;
    const auto load_scales = [&](int step) {  // of the next step, while the products of this one run
      if constexpr (kScaled)
        next_scales.load(launch.a_scale, launch.b_scale, row0, tile.n0, tile.M, launch.N, k_blocks,
                         min(first + step, k_blocks - 1));
    };
    load_scales(0);
#pragma unroll
    for (int i = 0; i < MT; ++i)
#pragma unroll
      for (int j = 0; j < NT; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) c[i][j][e] = 0;
#pragma unroll 1
    for (int step = 0; step < walk.steps; ++step) {
      const auto a_tile = this->a_tile(), b_tile = this->b_tile();
      wait_full();
      scales = next_scales;
      load_scales(step + 1);
#pragma unroll
      for (int i = 0; i < MT; ++i) {
        float part[NT][4];
        hold(part);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
          multiply(part, moved(a_tile, k * kAStep + i * kATile), moved(b_tile, k * kBStep), k > 0);
        wgmma_commit();
        hold(part);
        wgmma_wait<0>();
        hold(part);
        if (i == MT - 1) release(place.stage);
        if constexpr (kScaled)
          promote(c[i], part, scales.of_rows[i], scales.of_cols);
        else
          promote(c[i], part);
      }
      place.advance();
    }
    pass_turn(walk);
  }
  /// Stream-K: two CTAs may share a tile, each some of its steps along k. The second to arrive adds both parts, and has
  /// the tile; this is false in the first.
  template <class Sum, class AnyWalk>
  __device__ __forceinline__ bool join(Sum (&c)[MT][NT][4], const AnyWalk& walk, unsigned* after_barriers) const {
    if constexpr (kStreams)
      if (walk.is_part())
        return join_parts<MT, NT>(c, walk, grid.launch.parts, grid.launch.arrivals, 32 * warp + lane, 32 * kWarps,
                                  after_barriers + (kPingpong ? index : 0), [&] { sync_tile(); });
    return true;
  }

 private:
  __device__ __forceinline__ unsigned long long a_tile() const {
    return descriptor_128(a_ring + place.stage * kStageBytes, kATurned ? kTileK * 128 : 16);
  }
  __device__ __forceinline__ unsigned long long b_tile() const {
    return descriptor_128(at.ring + kABytes + place.stage * kStageBytes, kBTurned ? kTileK * 128 : 16);
  }
};

/// The epilogue's operands in the ring that OperandLoader fills.
struct LoadedOperands {
  const Barriers& at;
  Operands slabs;
  int lane;
  RingPlace<kLoadSlots> slot;

  __device__ __forceinline__ LoadedOperands(const Barriers& at, const unsigned char* shared, int warp_row, int lane)
      : at(at), slabs(shared + kLoads, warp_row, lane), lane(lane) {}
  /// Before the first use of tile j of 8 columns.
  template <int j>
  __device__ __forceinline__ void wait() const {
    if constexpr (kLoadTensors > 0 && j % Operands::kTiles == 0) barrier_wait(at.loaded + 8 * slot.stage, slot.parity);
  }
  template <class Element, int j>
  __device__ __forceinline__ const Element* pair(int tensor, int row) const {
    return slabs.at<Element, j>(slot.stage, tensor, row);
  }
  /// After the last use of tile j.
  template <int j>
  __device__ __forceinline__ void release() {
    if constexpr (kLoadTensors > 0 && (j + 1) % Operands::kTiles == 0) {
      __syncwarp();
      if (lane == 0) barrier_arrive(at.taken + 8 * slot.stage);
      slot.advance();
    }
  }
};

// The barriers of gemm/warpgroup.cu.jinja, and the threads of its first warpgroup: one that loads A and B, and one that
// loads the epilogue's operands. Needs gemm/warpgroup_tile.cuh and lib/operand_slabs.cuh.

/// Addresses in shared memory: the ring of stages, and the barriers of each stage. `loaded` and `taken` are the same as
/// `full` and `empty`, of the ring of the epilogue's operands.
struct Barriers {
  unsigned ring, full, empty, loaded, taken;

  __device__ __forceinline__ explicit Barriers(unsigned shared)
      : ring(shared),
        full(ring + kBarriers),
        empty(full + 8 * kStages),
        loaded(empty + 8 * kStages),
        taken(loaded + 8 * kLoadSlots) {}
  __device__ __forceinline__ void init() const {
    for (int s = 0; s < kStages; ++s) {
      barrier_init(full + 8 * s, kRouted ? 1 + 4 : 1);  // the load of B, and a lane of each producer warp
      barrier_init(empty + 8 * s, kWarps * kReaders);   // a lane of each consumer warp of these CTAs
    }
    for (int s = 0; s < kLoadSlots; ++s) {
      barrier_init(loaded + 8 * s, 1);
      barrier_init(taken + 8 * s, kWarps);
    }
    barrier_init_fence();
  }
};

/// Loads kRows rows of an operand, kTileK elements of k from `k` on, for the CTAs of the cluster in `ctas`. kTurned:
/// the operand is contiguous along its rows, and a box has 64 of them.
template <bool kTurned, int kRows, bool kShared>
__device__ __forceinline__ void load_operand(unsigned to, const TensorMap& map, unsigned landed, int ctas, int row,
                                             int k) {
  constexpr int kBoxRows = kTurned ? 64 : kRows;
#pragma unroll
  for (int i = 0; i < kRows / kBoxRows; ++i) {
    const int x = kTurned ? row + 64 * i : k, y = kTurned ? k : row;
    if constexpr (kShared)
      tensor_load_multicast(to + i * kTileK * 128, map, landed, ctas, x, y);
    else
      tensor_load(to + i * kTileK * 128, map, landed, x, y);
  }
}

/// The thread that loads A and B by TMA. In a cluster, CTAs of the same columns each load a part of B for all of them,
/// and CTAs of the same rows a part of A. The thread runs ahead as far as the ring has room.
struct TensorProducer {
  const Depth& depth;
  const Barriers& at;
  const TensorMap &a_map, &b_map;
  int a_part = 0, b_part = 0;  // the rows of a tile that this CTA loads
  int a_for = 0, b_for = 0;    // the CTAs that get these rows: a bit for each rank
  unsigned a_to, b_to;         // in the first stage
  int lane;
  RingPlace<kStages> place;

  __device__ __forceinline__ TensorProducer(const Grid& grid, const Depth& depth, const Barriers& at, unsigned char*,
                                            const TensorMap& a_map, const TensorMap& b_map, int thread)
      : depth(depth), at(at), a_map(a_map), b_map(b_map), lane(thread) {
    const ClusterRank& rank = grid.rank;
    prefetch_map(a_map);
    prefetch_map(b_map);
    a_part = rank.n * (BM / kClusterN), b_part = rank.m * (BN / kClusterM);
#pragma unroll
    for (int n = 0; n < kClusterN; ++n) a_for |= 1 << (rank.m + kClusterM * n);
    b_for = ((1 << kClusterM) - 1) << (kClusterM * rank.n);
    a_to = rank.n * (kABytes / kClusterN), b_to = kABytes + rank.m * (kBBytes / kClusterM);
  }
  /// Where all lanes have to find a tile, one of them loads it.
  static __device__ __forceinline__ bool takes(int thread) { return kFoundByWarp ? thread < 32 : thread == 0; }
  __device__ __forceinline__ void load(const Grid& grid, const Walk& walk, const Tile& tile) {
#pragma unroll 1
    for (int step = walk.first; step < walk.first + walk.steps; ++step) {
      const unsigned landed = at.full + 8 * place.stage, stage = at.ring + place.stage * kStageBytes;
      const int k = depth.k0 + step * kTileK;
      barrier_wait(at.empty + 8 * place.stage, place.parity ^ 1);
      if (!kFoundByWarp || lane == 0) {
        barrier_arrive_expect(landed, kStageBytes);
        load_operand<kATurned, BM / kClusterN, (kClusterN > 1)>(stage + a_to, a_map, landed, a_for, tile.m0 + a_part,
                                                                k);
        // The B of all groups are one matrix.
        const int n0 = tile.group * grid.launch.N + tile.n0;
        load_operand<kBTurned, BN / kClusterM, (kClusterM > 1)>(stage + b_to, b_map, landed, b_for, n0 + b_part, k);
      }
      place.advance();
    }
  }
  __device__ __forceinline__ void finish() const {}
};

/// The warp that loads the tensors with a row and a column index that the epilogue reads: a slab of columns of each
/// tensor at a time, in a ring of its own.
struct OperandLoader {
  const Barriers& at;
  int lane;
  RingPlace<kLoadSlots> slot;

  static __device__ __forceinline__ bool takes(int thread) { return kFoundByWarp ? thread / 32 == 1 : thread == 32; }
  template <class... Maps>
  __device__ __forceinline__ void load(const Tile& tile, const Maps&... maps) {
#pragma unroll 1
    for (int j = 0; j < NT; j += Operands::kTiles) {
      const unsigned landed = at.loaded + 8 * slot.stage;
      barrier_wait(at.taken + 8 * slot.stage, slot.parity ^ 1);
      if (!kFoundByWarp || lane == 0) {
        int tensor = 0;
        barrier_arrive_expect(landed, Operands::kBytes);
        (tensor_load(at.ring + kLoads + Operands::offset(slot.stage, tensor++), maps, landed, tile.n0 + 8 * j, tile.m0),
         ...);
      }
      slot.advance();
    }
  }
};

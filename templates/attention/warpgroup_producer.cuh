// The warps of attention/warpgroup.cu.jinja that bring Q, K and V, and their barriers. Needs Tile, KeyTiles and Keys.

/// Addresses of the barriers: `full` and `empty` of each ring, one for each stage. Several tiles: Q has a ring, too.
struct Barriers {
  unsigned q_full, q_empty, k_full, k_empty, v_full, v_empty, raw_full, raw_empty;

  __device__ __forceinline__ explicit Barriers(unsigned smem)
      : q_full(smem + kSmemBarriers),
        q_empty(q_full + 8 * kQStages),
        k_full(q_full + (kSeveral ? 16 : 8) * kQStages),
        k_empty(k_full + 8 * kKStages),
        v_full(k_empty + 8 * kKStages),
        v_empty(v_full + 8 * kVStages),
        raw_full(v_empty + 8 * kVStages),
        raw_empty(raw_full + 8 * kRawStages) {}
  __device__ __forceinline__ void init() const {
    for (int s = 0; s < kQStages; ++s) {
      barrier_init(q_full + 8 * s, 1);
      if constexpr (kSeveral) barrier_init(q_empty + 8 * s, 4 * kGroups);
    }
    for (int s = 0; s < kKStages; ++s) {
      barrier_init(k_full + 8 * s, 1);
      barrier_init(k_empty + 8 * s, 4 * kGroups * kCluster);  // a lane of each warp
    }
    for (int s = 0; s < kVStages; ++s) {
      barrier_init(v_full + 8 * s, kFp8 ? kTurners : 1);
      barrier_init(v_empty + 8 * s, 4 * kGroups * (kFp8 ? 1 : kCluster));
    }
    if constexpr (kFp8)
      for (int s = 0; s < kRawStages; ++s) {
        barrier_init(raw_full + 8 * s, 1);
        barrier_init(raw_empty + 8 * s, kTurners * kCluster);
      }
    barrier_init_fence();
  }
};

/// The warp that loads. It runs ahead as far as the rings have room.
struct Producer {
  unsigned smem;
  const Barriers& at;
  const TensorMap &q_map, &k_map, &v_map;
  int lane;
  RingPlace<kQStages> q_place;
  RingPlace<kKStages> k_place;
  RingPlace<kFp8 ? kRawStages : kVStages> v_place;  // fp8: of V as it is in memory

  __device__ __forceinline__ Producer(unsigned smem, const Barriers& at, const TensorMap& q_map, const TensorMap& k_map,
                                      const TensorMap& v_map, int lane)
      : smem(smem), at(at), q_map(q_map), k_map(k_map), v_map(v_map), lane(lane) {}

  /// Tile j of K or V into the stage at `place`, when it is empty.
  template <int kStages>
  __device__ __forceinline__ void load_keys(unsigned stages, unsigned full, unsigned empty, RingPlace<kStages>& place,
                                            const TensorMap& map, const Keys& keys, int j) const {
    const unsigned to = stages + place.stage * kTileBytes, barrier = full + 8 * place.stage;
    const int page = keys.page_of(j);  // read before the wait
    if (lane == 0) {
      barrier_wait(empty + 8 * place.stage, place.parity ^ 1);
      barrier_arrive_expect(barrier, kTileBytes);
      if constexpr (!Keys::kByAllLanes) keys.load(to, map, barrier, j, page);
    }
    if constexpr (Keys::kByAllLanes) {
      __syncwarp();
      keys.load(to, map, barrier, j, page);
    }
    place.advance();
  }
  __device__ __forceinline__ void load_k(const Keys& keys, int j) {
    load_keys(smem + kSmemK, at.k_full, at.k_empty, k_place, k_map, keys, j);
  }
  __device__ __forceinline__ void load_v(const Keys& keys, int j) {
    if constexpr (kFp8)
      load_keys(smem + kSmemRaw, at.raw_full, at.raw_empty, v_place, v_map, keys, j);
    else
      load_keys(smem + kSmemV, at.v_full, at.v_empty, v_place, v_map, keys, j);
  }
  __device__ __forceinline__ void load_q(const Tile& tile, unsigned to, unsigned landed) const {
    barrier_arrive_expect(landed, kQCopiedBytes);
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      const int row = tile.first_token + tile.row0;
      tensor_load(to + slab * kQSlabBytes, q_map, landed, slab * kSlabColumns, kGroup > 1 ? tile.head : row,
                  kGroup > 1 ? row : tile.head, tile.slice);
    }
  }
  /// Everything that a tile needs.
  __device__ __forceinline__ void load(const Launch& launch, const Tile& tile) {
    const Keys keys(launch, tile, lane);
    KeyTiles tiles(tile, lane);
    const unsigned q_to = smem + q_place.stage * kQPlaceBytes, q_landed = at.q_full + 8 * q_place.stage;
    if constexpr (kSeveral) {
      // Ahead of Q, whose place the tile before may still need.
      if (tiles.more()) load_k(keys, tiles.next);
      if (lane == 0) barrier_wait(at.q_empty + 8 * q_place.stage, q_place.parity ^ 1);
      if (!tiles.more() && lane == 0) barrier_arrive(q_landed);
      q_place.advance();
    }
    if (!tiles.more()) return;
    if (lane == 0) {
      if constexpr (!kSeveral) {
        prefetch_map(k_map);
        prefetch_map(v_map);
      }
      load_q(tile, q_to, q_landed);
    }
    if constexpr (!kSeveral) load_k(keys, tiles.next);
    while (tiles.more()) {
      const int j = tiles.take();
      if (tiles.more()) load_k(keys, tiles.next);  // the consumers need it before V of tile j
      load_v(keys, j);
    }
  }
};

// Tiles of K and V in tensors. Needs lib/tensor_copy.cuh and lib/cluster.cuh.

/// One lane copies a tile. In a cluster each CTA loads a part of a tile for all.
struct TensorKeys {
  static constexpr bool kByAllLanes = false;
  int first_token, head, slice, rank;
  __device__ __forceinline__ TensorKeys(const Launch& launch, const Tile& tile, int)
      : first_token(tile.first_token),
        head(tile.kv_head(launch)),
        slice(tile.slice),
        rank(kCluster > 1 ? cluster_rank() : 0) {}
  __device__ __forceinline__ int page_of(int) const { return 0; }
  __device__ __forceinline__ void load(unsigned to, const TensorMap& map, unsigned barrier, int j, int) const {
    if constexpr (kCluster > 1) {
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab)
        tensor_load_multicast(to + slab * kTileSlabBytes + rank * (kTileSlabBytes / kCluster), map, barrier,
                              (1 << kCluster) - 1, slab * kSlabColumns, first_token + j * BN + rank * (BN / kCluster),
                              head, slice);
    } else {
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab)
        tensor_load(to + slab * kTileSlabBytes, map, barrier, slab * kSlabColumns, first_token + j * BN, head, slice);
    }
  }
};
using Keys = TensorKeys;

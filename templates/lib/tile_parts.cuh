// Sums of a tile that two CTAs share, each some of its steps along k. Each stores its sums, and the second to arrive
// adds those of the first to its own. No CTA waits for another. A sum of two numbers does not depend on their order, so
// equal inputs give equal bits. Needs lib/arrival.cuh and lib/tile_walk.cuh.

template <class Sum>
struct alignas(16) FourSums {
  Sum of[4];
};

/// Joins this CTA's sums c[MT][NT][4] with those of the other CTA of the walk's tile. True in the second CTA, whose c
/// then holds the tile. All `threads` of the tile call it with their number `thread`; sync() is a barrier of them.
/// `parts`: device memory; `arrivals`: a counter of each shared tile; `before`: shared memory of the tile's warps.
template <int MT, int NT, class Sum, class Sync>
__device__ __forceinline__ bool join_parts(Sum (&c)[MT][NT][4], const StreamWalk& walk, Sum* parts, unsigned* arrivals,
                                           int thread, int threads, unsigned* before, const Sync& sync) {
  // A CTA may have two parts at a time: the end of one tile, and the beginning of another.
  const int begins = walk.first == 0 ? 1 : 0;
  const auto at = [&](int cta, int begins_tile, int i, int j) {
    return reinterpret_cast<FourSums<Sum>*>(parts) +
           (((2ll * cta + begins_tile) * (MT * NT) + i * NT + j) * threads + thread);
  };
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int j = 0; j < NT; ++j) {
      FourSums<Sum> part;
#pragma unroll
      for (int e = 0; e < 4; ++e) part.of[e] = c[i][j][e];
      *at(blockIdx.x, begins, i, j) = part;
    }
  sync();
  if (thread == 0) *before = arrive(arrivals + (walk.tile - walk.whole), 1);
  sync();
  if (*before == 0) return false;
  const int other = static_cast<int>(blockIdx.x) + (begins ? 1 : -1);
#pragma unroll
  for (int i = 0; i < MT; ++i)
#pragma unroll
    for (int j = 0; j < NT; ++j) {
      const FourSums<Sum> part = *at(other, 1 - begins, i, j);
#pragma unroll
      for (int e = 0; e < 4; ++e) c[i][j][e] += part.of[e];
    }
  return true;
}

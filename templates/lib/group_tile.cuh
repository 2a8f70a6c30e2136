// Row tiles of a grouped product: rows are sorted by group, and no tile has rows of two groups. Needs lib/math.cuh.

struct GroupTile {
  int group, begin,
      end;  ///< rows from `begin` to the end of the group, which may be more than a tile; none: begin == end
};

/// The number of tiles of all groups. All lanes of the warp call it.
template <int kRows>
__device__ __forceinline__ int count_group_tiles(const int* __restrict__ offsets, int groups) {
  int tiles = 0;
  for (int group = threadIdx.x % 32; group < groups; group += 32)
    tiles += ceil_div(offsets[group + 1] - offsets[group], kRows);
  return __reduce_add_sync(kAllLanes, tiles);
}

/// The tile `index` of all groups. `offsets`: the first row of each group, and the number of all rows. A warp
/// looks at 32 groups at a time, each lane at one, so that it waits for memory once for all of them. All lanes of the
/// warp call it.
template <int kRows>
__device__ __forceinline__ GroupTile find_group_tile(const int* __restrict__ offsets, int groups, int index) {
  const int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int first = 0; first < groups; first += 32) {
    const int group = min(first + lane, groups - 1), begin = offsets[group], end = offsets[group + 1];
    const int tiles = first + lane < groups ? ceil_div(end - begin, kRows) : 0;
    int until = tiles;  // of the groups up to this lane's
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int before = __shfl_up_sync(kAllLanes, until, step);
      if (lane >= step) until += before;
    }
    const unsigned after = __ballot_sync(kAllLanes, index < until);
    if (after != 0) {
      const int owner = __ffs(static_cast<int>(after)) - 1;
      const int row = begin + (index - (until - tiles)) * kRows;
      return {first + owner, __shfl_sync(kAllLanes, row, owner), __shfl_sync(kAllLanes, end, owner)};
    }
    index -= __shfl_sync(kAllLanes, until, 31);
  }
  return {0, 0, 0};
}

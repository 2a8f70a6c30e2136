// The even split of keys. The tiles of keys of all (sequence, head) pairs, one pair after another, are cut into
// gridDim.x runs of as many tiles, or one more. CTA i takes run i, pair by pair; the CTAs of a pair write its parts in
// their order. A grid of kApart CTAs for each pair cuts the tiles of each pair by itself. Needs lib/math.cuh; the
// kernel defines BN, kApart, kRagged and kGroup.

struct EvenSplit {
  const int* lengths;  // keys of each sequence, if they differ
  int keys;            // or of every sequence
  int heads;
  int origin, tiles, runs;                    // run i begins at tile origin + i * tiles / runs
  int run, at, end;                           // of this CTA: its run, and the tiles of it that are left
  int behind;                                 // the first tile after `batch`
  int batch, head, first, last, part, parts;  // the current pair, its tiles in this run, their part, and all parts
  static constexpr int row = 0;
  using Ahead = NoTile;

  __device__ __forceinline__ EvenSplit(const Launch& launch, NoTile, [[maybe_unused]] int lane)
      : lengths(launch.kv_lengths), keys(launch.kv_len), heads(launch.heads / kGroup) {
    const int batches = launch.batches, cta = blockIdx.x;
    const auto tiles_before = [&](int end) {  // sequence `end`
      if constexpr (!kRagged) return heads * end * of(0);
      int sum = 0;
      for (int b = lane; b < end; b += 32) sum += of(b);
      return heads * static_cast<int>(__reduce_add_sync(kAllLanes, sum));
    };
    if (static_cast<int>(gridDim.x) == kApart * heads * batches) {
      batch = cta / kApart / heads;
      tiles = of(batch);
      origin = tiles_before(batch) + cta / kApart % heads * tiles;
      runs = min(tiles, kApart);
      run = cta % kApart;
      at = begin(run);
    } else {
      tiles = tiles_before(batches);
      origin = 0;
      runs = min(tiles, static_cast<int>(gridDim.x));
      run = cta;
      at = begin(run);
      if constexpr (kRagged) {
        // The last sequence that does not begin after `at`.
        batch = 0;
        for (int above = batches; above - batch > 1;) {
          const int middle = (batch + above) / 2;
          (tiles_before(middle) <= at ? batch : above) = middle;
        }
      } else {
        batch = at / tiles_before(1);
      }
    }
    end = run < runs ? begin(run + 1) : at;
    behind = run < runs ? tiles_before(batch + 1) : at;
  }
  /// Tiles of a head of sequence b. One without keys counts as one, so that a CTA writes its O and LSE.
  __device__ __forceinline__ int of(int b) const {
    if constexpr (kRagged) return max(1, ceil_div(lengths[b], BN));
    return ceil_div(keys, BN);
  }
  /// The first tile of a run, and the run of a tile. The products fit 31 bits.
  __device__ __forceinline__ int begin(int i) const { return origin + i * tiles / runs; }
  __device__ __forceinline__ int run_of(int tile) const { return ((tile - origin + 1) * runs - 1) / tiles; }
  __device__ __forceinline__ bool take() {
    if (at >= end) return false;
    if (at >= behind) behind += heads * of(++batch);
    const int steps = of(batch), heads_left = ceil_div(behind - at, steps);
    const int pair_end = behind - (heads_left - 1) * steps, pair_begin = pair_end - steps;
    head = heads - heads_left;
    first = at - pair_begin;
    at = min(end, pair_end);
    last = at - pair_begin - 1;
    if constexpr (kRagged)
      if (lengths[batch] == 0) last = -1;
    part = run - run_of(pair_begin);
    parts = run_of(pair_end - 1) - run_of(pair_begin) + 1;
    return true;
  }
  __device__ __forceinline__ Tile tile(const Launch& launch) const { return Tile(launch, *this); }
  __device__ __forceinline__ long long pair() const { return static_cast<long long>(batch) * heads + head; }
};

// How the results of gemm/epilogue.cuh.jinja reach the output. A lane has pairs of neighbouring columns. A pair
// gives 2 / kHalves results: one for each column, or with a gate one for both. The kernel picks a store; all have the
// same functions:
//
//   put<j>(i, h, at, y)  the results of tile j of 8 columns, m-tile i, half h of its rows
//   end<j>()             after the last results of tile j
//   finish()             after the last tile
//
// Needs lib/convert.cuh and lib/warp_stage.cuh. The kernel defines its constants.

/// The output, and the part that belongs to the warps of a tile.
template <class Out>
struct OutputTile {
  Out* to;   // the first element of the output
  int cols;  // of the output
  int m0, n0, M, N;
  int warp_row, warp_col;
};

/// A lane's pair of sums. Outside the matrix, m and n name the last row and the last columns.
struct PairPlace {
  int m_first, m, n_first, n;
  int second;  // from column n to the next one in the matrix
};

/// Each lane writes its results.
template <class Out, int kHalves>
struct DirectStore {
  const OutputTile<Out> tile;

  __device__ __forceinline__ DirectStore(const OutputTile<Out>& tile, unsigned char*, int, int) : tile(tile) {}
  template <int j>
  __device__ __forceinline__ void put(int, int, const PairPlace& at, const float (&y)[2 / kHalves]) const {
    if ((kEvenM || at.m_first < tile.M) && (kEvenN || at.n_first < tile.N)) {
      Out* const p = tile.to + static_cast<long long>(at.m) * tile.cols + at.n / kHalves;
      if constexpr (kHalves == 2) {
        store_as(p, y[0]);
      } else if constexpr (kPairs) {
        store_as<Out, 2>(p, y);
      } else {
        store_as(p, y[0]);
        if (at.second) store_as(p + 1, y[1]);
      }
    }
  }
  template <int j>
  __device__ __forceinline__ void end() const {}
  __device__ __forceinline__ void finish() const {}
};

/// A warp writes its results to shared memory, and copies them in pieces of 16 bytes: 16 rows at a time, or all rows of
/// the warp where these are neighbours. Pieces lie one after another.
template <class Out, int kHalves>
struct StagedStore {
  static constexpr int kPairBytes = 2 * sizeof(Out) / kHalves;
  static constexpr int kPieces = kTileRows == 16 ? 1 : MT, kPieceRows = kTileRows == 16 ? 16 : 16 * kWarps;
  using Stage = WarpStage<kTileRows == 16 ? WM : 16, 4 * NT * kPairBytes>;
  const OutputTile<Out> tile;
  unsigned char* staging;
  int warp, lane;
  typename Stage::template Lane<kPairBytes> pairs;

  __device__ __forceinline__ StagedStore(const OutputTile<Out>& tile, unsigned char* staging, int warp, int lane)
      : tile(tile),
        staging(staging),
        warp(warp),
        lane(lane),
        pairs(Stage(staging, warp, lane).template lane<kPairBytes>()) {}
  template <int j>
  __device__ __forceinline__ void put(int i, int h, const PairPlace&, const float (&y)[2 / kHalves]) const {
    store_as<Out, 2 / kHalves>(reinterpret_cast<Out*>(pairs.template at<j>(kPieceRows * i + 8 * h)), y);
  }
  template <int j>
  __device__ __forceinline__ void end() const {}
  __device__ __forceinline__ void finish() const {
    __syncwarp();
    const int col = (tile.n0 + tile.warp_col) / kHalves;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int row = tile.m0 + tile.warp_row + kTileRows * i;
      Stage(staging + i * kPieceRows * Stage::Layout::kPitch, warp, lane)
          .template leave<kEvenM && kEvenN>(
              reinterpret_cast<char*>(tile.to + static_cast<long long>(row) * tile.cols + col),
              tile.cols * static_cast<long long>(sizeof(Out)), tile.M - row,
              min(tile.cols - col, WN / kHalves) * static_cast<int>(sizeof(Out)));
    }
    __syncwarp();  // before the next output uses the staging area
  }
};

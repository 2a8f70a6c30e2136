// The store of gemm/stores.cuh by TMA: a warp writes slabs of 128 bytes of columns to shared memory, and one lane
// copies 16 rows of a slab at a time. Needs lib/tensor_stage.cuh.

template <class Out, int kHalves>
struct TensorStore {
  static constexpr int kPairBytes = 2 * sizeof(Out) / kHalves;
  static constexpr bool kMatrices = kHalves == 1 && sizeof(Out) == 2;  // pairs of 16 bits: by stmatrix
  using Stage = TensorStage<MT, kStoreSlots, kPairBytes, kMatrices>;
  const OutputTile<Out> tile;
  const TensorMap& map;
  Stage stage;
  unsigned words[MT][2][2];  // kMatrices: of two neighbouring column tiles

  __device__ __forceinline__ TensorStore(const OutputTile<Out>& tile, unsigned char* staging, int warp, int lane,
                                         const TensorMap& map)
      : tile(tile), map(map), stage(staging, warp, lane) {}
  template <int j>
  __device__ __forceinline__ void put(int i, int h, const PairPlace&, const float (&y)[2 / kHalves]) {
    if constexpr (kMatrices) {
      words[i][j % 2][h] = Word<Out>::pack(y);
    } else {
      if (j % Stage::kTiles == 0 && i == 0 && h == 0) stage.take();
      store_as<Out, 2 / kHalves>(reinterpret_cast<Out*>(stage.template at<j>(i, h)), y);
    }
  }
  template <int j>
  __device__ __forceinline__ void end() const {
    if constexpr (kMatrices && j % 2 == 1) {
      if constexpr (j % 8 == 1) stage.take();
#pragma unroll
      for (int i = 0; i < MT; ++i) stage.template put<j>(i, words[i]);
    }
    if constexpr ((j + 1) % Stage::kTiles == 0) {
      const int col = (tile.n0 + 8 * (j + 1 - Stage::kTiles)) / kHalves, row = tile.m0 + tile.warp_row;
      if constexpr (!kGrouped)
        stage.template leave<j, kTileRows>(map, col, row, tile.M);
      else if (col < tile.cols)
        stage.template leave_rows<j, kTileRows>(
            map, col, row, tile.M, reinterpret_cast<char*>(tile.to + static_cast<long long>(row) * tile.cols + col),
            tile.cols * static_cast<long long>(sizeof(Out)), (tile.cols - col) * static_cast<int>(sizeof(Out)));
    }
  }
  __device__ __forceinline__ void finish() const {}
};

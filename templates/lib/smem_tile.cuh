// Tiles of 16-bit elements in shared memory, moved in 16-byte chunks (8 elements) without bank
// conflicts for every width that is a multiple of 16.
//
// A bank conflict is two of eight consecutive accesses in the same 16-byte bank group (address / 16
// mod 8). ldmatrix reads one chunk of eight rows r..r+7. With C chunks per row, row r starts at
// group C r mod 8, which takes 8 / g values, g being the largest power of two that divides C (at
// most 8). XORing the low log2(g) bits of the chunk with r / (8 / g) mod g fills the gaps: the eight
// chunks land in eight different groups and no padding is needed. Without the swizzle the pitch is
// padded to an odd number of chunks, which spreads the rows as well.

template <int kCols, bool kSwizzle>
struct TileLayout {
  static constexpr int kChunks = kCols / 8;
  static constexpr int kDivisor = kChunks % 8 == 0 ? 8 : kChunks % 4 == 0 ? 4 : 2;
  /// Chunks permuted among themselves; an offset of a multiple of this many is a plain constant.
  static constexpr int kGroup = kSwizzle ? kDivisor : 1;
  static constexpr int kPitch = kSwizzle ? kCols * 2 : kCols * 2 + 16;  ///< bytes
  static_assert(kCols % 16 == 0, "an mma step is 16 elements wide");

  static __device__ __forceinline__ constexpr int key(int row) {
    return kSwizzle ? (row / (8 / kDivisor)) & (kDivisor - 1) : 0;
  }
  /// Byte offset of a chunk. Rows that differ by a multiple of 8 have the same key.
  static __device__ __forceinline__ constexpr int offset(int row, int chunk) {
    return row * kPitch + (chunk ^ key(row)) * 16;
  }
};

/// Lane addresses of ldmatrix.x4 on 16x16 blocks of a tile, block 0 starting at `first_chunk`. kAcross: the
/// second and third matrix are swapped, so that the four results are (rows 0-7, chunk 0) (rows 0-7, chunk 1)
/// (rows 8-15, chunk 0) (rows 8-15, chunk 1) instead of rows fastest.
template <class Layout, bool kAcross>
struct BlockLoader {
  /// One address per pair of chunks inside a swizzle group; all else is a constant offset.
  static constexpr int kBases = Layout::kGroup < 2 ? 1 : Layout::kGroup / 2;
  unsigned base[kBases];

  __device__ __forceinline__ BlockLoader(unsigned tile, int lane, int first_chunk = 0) {
    const int row = kAcross ? (lane & 7) + (lane >> 4) * 8 : lane & 15;
    const int chunk = kAcross ? (lane >> 3) & 1 : lane >> 4;
#pragma unroll
    for (int i = 0; i < kBases; ++i) base[i] = tile + Layout::offset(row, first_chunk + chunk + 2 * i);
  }
  /// The same blocks of another tile, `bytes` further on.
  __device__ __forceinline__ BlockLoader moved(unsigned bytes) const {
    BlockLoader out = *this;
#pragma unroll
    for (int i = 0; i < kBases; ++i) out.base[i] += bytes;
    return out;
  }
  /// The block kBlock * 16 columns on, whose first row is kRow (a multiple of 8); `stage` is a byte offset.
  template <int kRow, int kBlock>
  __device__ __forceinline__ void load(unsigned (&r)[4], unsigned stage) const {
    ldmatrix_x4<kRow * Layout::kPitch + (kBlock / kBases) * kBases * 32>(r, base[kBlock % kBases] + stage);
  }
  template <int kRow, int kBlock>
  __device__ __forceinline__ void load_transposed(unsigned (&r)[4], unsigned stage) const {
    ldmatrix_x4_trans<kRow * Layout::kPitch + (kBlock / kBases) * kBases * 32>(r, base[kBlock % kBases] + stage);
  }
};

/// One column group of a copy: kBlocks blocks of kWidth chunks from chunk kFirst, by kThreads threads,
/// each of which moves the same chunk of every (kThreads / kWidth)-th row.
template <class Layout, int kRows, int kThreads, int kWidth, int kFirst, int kBlocks>
struct ColumnGroup {
  static constexpr int kRowsPerPass = kThreads / kWidth;
  static constexpr int kPasses = ceil_div(kRows, kRowsPerPass);
  static_assert(kRowsPerPass % 8 == 0, "the swizzle key of a thread must be the same in every pass");
  // Eight consecutive threads write 8 / kWidth rows. Rows this far apart start in different bank groups.
  static constexpr int kRowsAtOnce = 8 / kWidth;
  static constexpr int kRowStep = Layout::kGroup == 1 ? kWidth : (kWidth == 4 && Layout::kGroup == 2) ? 2 : 1;

  int row, chunk;
  unsigned to;
  long long from;

  __device__ __forceinline__ ColumnGroup(int thread, long long row_bytes) {
    const int line = thread / kWidth;
    chunk = kFirst + thread % kWidth;
    constexpr int kSpan = kRowsAtOnce * kRowStep;
    row =
        kRowsAtOnce == 1 ? line : line / kSpan * kSpan + line % kRowsAtOnce * kRowStep + line / kRowsAtOnce % kRowStep;
    to = Layout::offset(row, chunk);
    from = row * row_bytes + chunk * 16;
  }

  template <bool kWhole, class Valid>
  __device__ __forceinline__ void copy(unsigned tile, const char* source, long long row_bytes,
                                       const Valid& valid) const {
    const char* p = source + from;
    static_for<kPasses>([&](auto pass) {
      constexpr int kFirstRow = decltype(pass)::value * kRowsPerPass;
      if (kFirstRow + kRowsPerPass <= kRows || row + kFirstRow < kRows) {
        static_for<kBlocks>([&](auto block) {
          constexpr int kChunk = decltype(block)::value * kWidth;
          const unsigned destination = tile + to + kFirstRow * Layout::kPitch;
          if constexpr (kWhole)
            cp_async_16<kChunk * 16>(destination, p);
          else
            cp_async_16_or_zero<kChunk * 16>(destination, p, valid(row + kFirstRow, chunk + kChunk) ? 16 : 0);
        });
      }
      p += kRowsPerPass * row_bytes;
    });
  }
};

/// Copies tiles of kRows rows from global to shared memory with all threads of the CTA.
template <class Layout, int kRows, int kThreads>
struct TileCopy {
  static constexpr int kChunks = Layout::kChunks;
  ColumnGroup<Layout, kRows, kThreads, 8, 0, kChunks / 8> eights;
  ColumnGroup<Layout, kRows, kThreads, 4, kChunks / 8 * 8, kChunks / 4 % 2> four;
  ColumnGroup<Layout, kRows, kThreads, 2, kChunks / 4 * 4, kChunks / 2 % 2> two;
  long long row_bytes;

  __device__ __forceinline__ TileCopy(int thread, long long row_bytes)
      : eights(thread, row_bytes), four(thread, row_bytes), two(thread, row_bytes), row_bytes(row_bytes) {}

  /// `source` is the first byte of row 0. Chunks for which valid(row, chunk) is false become zeros and
  /// are not read; kWhole says there are none.
  template <bool kWhole, class Valid>
  __device__ __forceinline__ void copy(unsigned tile, const char* source, const Valid& valid) const {
    if constexpr (kChunks >= 8) eights.template copy<kWhole>(tile, source, row_bytes, valid);
    if constexpr (kChunks & 4) four.template copy<kWhole>(tile, source, row_bytes, valid);
    if constexpr (kChunks & 2) two.template copy<kWhole>(tile, source, row_bytes, valid);
  }
};

/// The usual validity of a copy: the first `rows` rows.
struct FirstRows {
  int rows;
  __device__ __forceinline__ bool operator()(int row, int) const { return row < rows; }
};

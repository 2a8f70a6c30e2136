// Copies of a matrix operand's tiles from global to shared memory, one step along k at a time. A tile is kRows rows of
// elements; k runs along its rows, or (kRowsOfK) across them. `left` counts the rows (columns) of the matrix from the
// tile's corner to the end, `k_left` the same along k. Elements beyond the end are not read and become zero. kEven and
// kEvenK: the tile size divides the matrix in that direction, so that no tile is partial; whole tiles may still lie
// beyond the end of k.

/// By cp.async, in pieces of kPiece bytes. A thread copies the same column of several rows. kRouted: the rows lie
/// anywhere in memory.
template <class Layout, int kRows, int kThreads, int kPiece, int kElementBytes, bool kRowsOfK, bool kEven, bool kEvenK,
          bool kRouted = false>
struct OperandCopy {
  static constexpr int kAcross = Layout::kChunks * 16 / kPiece;  ///< pieces in a row
  static constexpr int kStep = kThreads / kAcross;               ///< rows of a pass
  static constexpr int kPasses = ceil_div(kRows, kStep);
  static_assert(kThreads % kAcross == 0, "a pass is whole rows");

  int row, col;  // in elements
  unsigned to;
  const char* from;
  long long pass_bytes;
  long long routed[kRouted ? kPasses : 1];  ///< from `from` to the thread's row of each pass, in bytes

  __device__ __forceinline__ OperandCopy(int thread, const char* source, long long row_bytes) {
    row = thread / kAcross;
    const int byte = thread % kAcross * kPiece;
    col = byte / kElementBytes;
    to = Layout::offset(row, byte / 16) + byte % 16;
    from = source + row * row_bytes + byte;
    pass_bytes = kStep * row_bytes;
  }
  /// Row r of the tile is row row_of(r) of the matrix at `source`.
  template <class RowOf>
  __device__ __forceinline__ OperandCopy(int thread, const char* source, long long row_bytes, const RowOf& row_of)
      : OperandCopy(thread, source, row_bytes) {
    static_assert(kRouted && !kRowsOfK, "rows along k that lie anywhere");
    from -= row * row_bytes;
    static_for<kPasses>([&](auto pass) {
      constexpr int kPass = decltype(pass)::value;
      routed[kPass] = row_of(row + kPass * kStep) * row_bytes;
    });
  }
  __device__ __forceinline__ void copy(unsigned tile, int left, int k_left) const {
    const int col_left = kRowsOfK ? left : k_left, row_left = kRowsOfK ? k_left : left;
    constexpr bool kEvenCols = kRowsOfK ? kEven : kEvenK, kEvenRows = kRowsOfK ? kEvenK : kEven;
    bool inside = k_left > 0;
    // If columns run along k, a valid column implies k_left > 0.
    if constexpr (!kEvenCols) inside = (!(kRowsOfK && kEvenK) || k_left > 0) && col < col_left;
    const char* p = from;
    static_for<kPasses>([&](auto pass) {
      constexpr int kFirst = decltype(pass)::value * kStep;
      if constexpr (kRouted) p = from + routed[decltype(pass)::value];
      const unsigned to_row =
          kStep % 8 == 0 ? to : Layout::offset(row + kFirst, col * kElementBytes / 16) + col * kElementBytes % 16;
      if (kFirst + kStep <= kRows || row + kFirst < kRows) {
        const bool valid = inside && (kEvenRows || row + kFirst < row_left);
        // The swizzle repeats every 8 rows: then all passes share an address.
        cp_async_piece<kPiece, kStep % 8 == 0 ? kFirst * Layout::kPitch : 0>(tile + to_row, p, valid ? kPiece : 0);
      }
      if constexpr (!kRouted) p += pass_bytes;
    });
  }
};

/// Element by element through registers: for unaligned rows, and for tiles whose rows are columns of the matrix
/// (kTransposed); ldmatrix transposes only 16-bit elements. Bits is an unsigned type of the element's size. Slower than
/// OperandCopy, and complete when it returns.
template <class Bits, class Layout, int kRows, int kThreads, bool kTransposed, bool kRowsOfK, bool kEven, bool kEvenK>
struct OperandGather {
  static constexpr int kPerWord = 4 / sizeof(Bits);
  static constexpr int kAcross = Layout::kChunks * 4;  ///< words in a row
  static constexpr int kPasses = kRows * kAcross / kThreads;
  static_assert(kRows * kAcross % kThreads == 0, "all threads work in every pass");

  int thread;
  const char* from;
  long long row_bytes, col_bytes;  ///< from one element to the next

  __device__ __forceinline__ OperandGather(int thread, const char* source, long long stride_bytes)
      : thread(thread),
        from(source),
        row_bytes(kTransposed ? sizeof(Bits) : stride_bytes),
        col_bytes(kTransposed ? stride_bytes : sizeof(Bits)) {}

  __device__ __forceinline__ void copy(unsigned tile, int left, int k_left) const {
    const int cols_left = kRowsOfK ? left : k_left, rows_left = kRowsOfK ? k_left : left;
    constexpr bool kEvenCols = kRowsOfK ? kEven : kEvenK, kEvenRows = kRowsOfK ? kEvenK : kEven;
#pragma unroll 4
    for (int pass = 0; pass < kPasses; ++pass) {
      const int index = pass * kThreads + thread;
      // Coalesced: neighbouring threads load neighbouring elements.
      const int row = kTransposed ? index % kRows : index / kAcross;
      const int word = kTransposed ? index / kRows : index % kAcross;
      const char* p = from + row * row_bytes + word * kPerWord * col_bytes;
      const bool row_inside = (kEvenRows ? 0 : row) < rows_left;
      unsigned packed = 0;
#pragma unroll
      for (int i = 0; i < kPerWord; ++i)
        if (row_inside && (kEvenCols ? 0 : word * kPerWord + i) < cols_left)
          packed |= static_cast<unsigned>(*reinterpret_cast<const Bits*>(p + i * col_bytes)) << (8 * sizeof(Bits) * i);
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(tile + Layout::offset(row, word / 4) + word % 4 * 4), "r"(packed)
                   : "memory");
    }
  }
};

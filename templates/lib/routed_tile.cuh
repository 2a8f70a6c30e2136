// The producer warpgroup's copies of tiles whose rows lie anywhere in memory, for wgmma: 128 bytes of each row, in
// shared memory with the 128-byte swizzle. Needs lib/barrier.cuh, lib/tensor_copy.cuh and lib/async_copy.cuh.
//
// cp.async writes shared memory as threads do, and wgmma reads it through the async proxy. So a thread waits for its
// own copies, makes them visible to that proxy, and then its warp arrives at the barrier of the stage. To keep copies
// in flight, that happens kLag stages after they were issued. A consumer releases a stage when it has begun the next
// one, so the copy of a stage kStages later may wait for the arrival of the next: kLag is at most kStages - 2.
template <int kRows, int kStages>
struct RoutedTile {
  static constexpr int kLag = kStages - 2;
  static constexpr int kPasses = kRows / 16;  ///< eight threads copy a row
  int* table;                                 ///< rows of the matrix, by row of the tile; in shared memory
  const int* rows;                            ///< of the table, from this thread's first on
  const char* from;
  long long row_bytes;
  int left;  ///< bytes of a row from the thread's piece on
  unsigned to;
  int thread, lane, pending = 0;
  RingPlace<kStages> issued;  ///< the oldest stage whose warp has not arrived

  /// `space`: 4 kRows bytes. `bytes` of a row are copied, and zeros after them. All 128 threads of the warpgroup call
  /// each function.
  __device__ __forceinline__ RoutedTile(unsigned char* space, const char* matrix, long long row_bytes, int bytes,
                                        int thread)
      : row_bytes(row_bytes), thread(thread), lane(thread % 32) {
    const int row = thread / 8, piece = thread % 8;
    table = reinterpret_cast<int*>(space);
    rows = table + row;
    from = matrix + piece * 16;
    left = bytes - piece * 16;
    to = row * 128 + (piece ^ row % 8) * 16;
  }
  /// Row r of the tile is row row_of(r) of the matrix, from now on.
  template <class RowOf>
  __device__ __forceinline__ void take_rows(const RowOf& row_of) {
    named_barrier(15, 128);  // all have read the rows before
    for (int row = thread; row < kRows; row += 128) table[row] = row_of(row);
    named_barrier(15, 128);
  }
  /// Copies bytes [first, first + 128) of each row to `tile`. `full`: the barriers of the stages.
  __device__ __forceinline__ void copy(unsigned tile, int first, unsigned full) {
    const int bytes = min(16, max(0, left - first));
    static_for<kPasses>([&](auto pass) {
      constexpr int kPass = decltype(pass)::value;
      cp_async_piece<16, kPass * 16 * 128>(tile + to, from + (rows[16 * kPass] * row_bytes + first), bytes);
    });
    cp_async_commit();
    if (pending < kLag) {
      ++pending;
    } else {
      cp_async_wait<kLag>();
      arrive(full);
    }
  }
  __device__ __forceinline__ void finish(unsigned full) {
    cp_async_wait<0>();
    for (; pending > 0; --pending) arrive(full);
  }

 private:
  __device__ __forceinline__ void arrive(unsigned full) {
    async_proxy_fence();
    __syncwarp();
    if (lane == 0) barrier_arrive(full + 8 * issued.stage);
    issued.advance();
  }
};

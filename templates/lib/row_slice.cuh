// A matrix row, or a segment of one, that threads read and write in groups of kVec neighbouring elements. Needs
// lib/pack.cuh.
//
// Groups begin at multiples of kVec elements of the matrix, not of the row: every full group is one aligned access,
// whatever the length of the rows. The first and the last group of a row may therefore contain elements of its
// neighbours; loads return zero for them, and stores leave them unchanged.

/// x. The compiler cannot compute it again near each use, as it does with 64-bit products to save registers.
__device__ __forceinline__ long long computed_once(long long x) {
  asm("" : "+l"(x));
  return x;
}

/// One thread's view of a slice. Its groups are named by their distance in elements from the first of them: `step`.
/// kAligned: every slice begins and ends at a multiple of kVec elements. kWhole: in addition, the thread names no group
/// beyond the end of the slice.
template <int kVec, bool kAligned, bool kWhole>
struct RowSlice {
  long long row;
  int first_col, count;  ///< columns first_col .. first_col + count - 1; a count of 0 stands for a row below the matrix
  long long start;       ///< index of the thread's first group in the matrix
  int first;             ///< the same, from first_col; negative where the group begins in the row before
  int full_end;          ///< groups that begin from first_col to before here are full

  RowSlice() = default;
  /// For the thread whose first group is number `lane`; `row_start` is the index of column first_col in the matrix.
  __device__ __forceinline__ RowSlice(long long row, int first_col, int count, long long row_start, int lane)
      : row(row), first_col(first_col), count(count), full_end(max(count - kVec + 1, 0)) {
    const int shift = kAligned ? 0 : static_cast<int>(row_start & (kVec - 1));
    first = lane * kVec - shift;
    start = computed_once(row_start + first);
  }

  __device__ __forceinline__ int m() const { return static_cast<int>(row); }
  /// The column of element i, counted like `step`.
  __device__ __forceinline__ int n(int i) const { return first_col + first + i; }
  /// True if the group has an element of the slice.
  __device__ __forceinline__ bool holds(int step) const { return kWhole ? count > 0 : first + step < count; }
  /// True if all elements of the group are in the slice.
  __device__ __forceinline__ bool full(int step) const {
    return kAligned ? holds(step) : static_cast<unsigned>(first + step) < static_cast<unsigned>(full_end);
  }
  /// True if element i, counted like `step`, is in the slice. Its group must have an element of the slice.
  __device__ __forceinline__ bool inside(int i) const {
    return kAligned || static_cast<unsigned>(first + i) < static_cast<unsigned>(count);
  }

  /// A group of a tensor of the matrix' shape.
  template <class T>
  __device__ __forceinline__ Pack<T, kVec> load(const T* from, int step) const {
    Pack<T, kVec> group;
    from += start;
    if (full(step))
      group.load(from + step);
    else if (kAligned)
      group.clear();
    else
      group.load_some(from + step, first + step, count);
    return group;
  }
  /// The same columns of a tensor with one value per column. Unless slices are aligned, its groups are not, and
  /// elements are loaded one by one.
  template <class T>
  __device__ __forceinline__ Pack<T, kVec> load_columns(const T* from, int step) const {
    Pack<T, kVec> group;
    from += first_col + first;
    if (!kAligned)
      group.load_some(from + step, first + step, count);
    else if (holds(step))
      group.load(from + step);
    else
      group.clear();
    return group;
  }
  /// Writes N results for a group to a tensor with N / kVec times as many columns.
  template <class T, int N>
  __device__ __forceinline__ void store(T* to, int step, const float (&y)[N]) const {
    constexpr int kSources = kVec / N;  // source elements per result
    Pack<T, N> group;
    group.from_floats(y);
    to += start / kSources;
    if (full(step))
      group.store(to + step / kSources);
    else if (!kAligned)
      group.store_some(to + step / kSources, (first + step) / kSources, count / kSources);
  }
};

// Reductions along rows that kRowThreads threads of a CTA share. Needs lib/math.cuh and lib/pointwise.cuh.

struct Sum {
  static __device__ __forceinline__ float neutral() { return 0.0f; }
  static __device__ __forceinline__ float combine(float a, float b) { return a + b; }
};
struct Max {
  static __device__ __forceinline__ float neutral() { return neg_inf(); }
  static __device__ __forceinline__ float combine(float a, float b) { return max_nan(a, b); }
};
struct Min {
  static __device__ __forceinline__ float neutral() { return -neg_inf(); }
  static __device__ __forceinline__ float combine(float a, float b) { return min_nan(a, b); }
};

/// One float per warp and row: lib functions with this parameter use it for one exchange between warps. The caller
/// gives every call its own, so that no barrier is needed before the first write.
template <int kRows, int kThreads>
using WarpSlots = float[kRows][kThreads / 32];

/// Replaces each thread's part of kRows totals by the total of the row, in every thread of the row. The order of
/// additions is fixed: equal parts give bitwise equal totals. All threads of the CTA must call it together.
template <class R, int kRowThreads, int kThreads, int kRows>
__device__ __forceinline__ void reduce_rows(float (&total)[kRows], WarpSlots<kRows, kThreads>& slots) {
  static_assert(kThreads % kRowThreads == 0 && (kRowThreads & (kRowThreads - 1)) == 0, "rows share warps evenly");
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int lane = (kRowThreads < 32 ? kRowThreads : 32) / 2; lane > 0; lane /= 2)
      total[r] = R::combine(total[r], __shfl_xor_sync(kAllLanes, total[r], lane));
  constexpr int kRowWarps = kRowThreads / 32;
  if constexpr (kRowWarps > 1) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (lane == 0) slots[r][warp] = total[r];
    __syncthreads();  // every warp of the row has written its part
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      total[r] = slots[r][warp / kRowWarps * kRowWarps + lane % kRowWarps];
#pragma unroll
      for (int step = kRowWarps / 2; step > 0; step /= 2)
        total[r] = R::combine(total[r], __shfl_xor_sync(kAllLanes, total[r], step));
    }
  }
}

/// A thread's parts of the totals of kRows rows.
template <class R, int kRows>
struct RowReduction {
  static __device__ __forceinline__ float neutral() { return R::neutral(); }
  float total[kRows];

  __device__ __forceinline__ RowReduction() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) total[r] = neutral();
  }
  /// Adds terms of row r in order; a term outside the row is neutral().
  template <int N>
  __device__ __forceinline__ void add(int r, const float (&term)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) total[r] = R::combine(total[r], term[j]);
  }
};

/// A maximum and a sum of e^(term - maximum) in one pass: a new maximum rescales the sum so far. `Exp::exp` is the
/// exponential function.
template <class Exp, int kRows>
struct OnlineExpSum {
  static __device__ __forceinline__ float neutral() { return neg_inf(); }
  float top[kRows], sum[kRows];

  __device__ __forceinline__ OnlineExpSum() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) top[r] = neutral(), sum[r] = 0.0f;
  }
  /// Terms are relative to the maximum; while that is -infinity, to 0.
  static __device__ __forceinline__ float base_of(float top) { return top == neg_inf() ? 0.0f : top; }

  /// Adds terms of row r in order; a term outside the row is neutral().
  template <int N>
  __device__ __forceinline__ void add(int r, const float (&term)[N]) {
    float next = top[r];
#pragma unroll
    for (int j = 0; j < N; ++j) next = max_nan(next, term[j]);
    const float base = base_of(next);
    sum[r] *= Exp::exp(top[r] - base);
    top[r] = next;
#pragma unroll
    for (int j = 0; j < N; ++j) sum[r] += Exp::exp(term[j] - base);
  }
  /// Both totals in every thread of the row: `reduce_tops` and `reduce_sums` replace parts of totals as reduce_rows
  /// does.
  template <class ReduceTops, class ReduceSums>
  __device__ __forceinline__ void reduce(const ReduceTops& reduce_tops, const ReduceSums& reduce_sums) {
    float own[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) own[r] = top[r];
    reduce_tops(top);
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum[r] *= Exp::exp(own[r] - base_of(top[r]));
    reduce_sums(sum);
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (top[r] == neg_inf()) sum[r] = top[r] - top[r];  // e^(-infinity + infinity)
  }
};

// Totals of rows that the CTAs of a cluster share. Needs lib/barrier.cuh and lib/cluster.cuh.

/// One exchange of kRows numbers between kCluster CTAs, in shared memory: every CTA sends its numbers to all, itself
/// included, and waits for the parts of all. An exchange happens once, so that no place is written twice, and a CTA
/// that has waited for its last exchange may end: nobody sends to it any more.
template <int kCluster, int kRows>
struct ClusterExchange {
  float part[kRows][kCluster];  ///< by rank
  unsigned long long arrived;   ///< the mbarrier that counts their bytes

  __device__ __forceinline__ unsigned at(const void* member) {
    return static_cast<unsigned>(__cvta_generic_to_shared(member));
  }
  /// One thread begins; cluster_wait() has to follow in all CTAs before the first of them sends.
  __device__ __forceinline__ void begin() {
    barrier_init(at(&arrived), 1);
    barrier_arrive_expect(at(&arrived), sizeof part);
  }
  /// The kCluster first threads of row `row` send its number, each to one CTA. `lane` counts them.
  __device__ __forceinline__ void send(int row, int lane, int rank, float number) {
    if (lane < kCluster) store_at_rank(at(&part[row][rank]), number, at(&arrived), lane);
  }
  __device__ __forceinline__ void wait() { barrier_wait(at(&arrived), 0); }
  /// The total over the CTAs, in the order of their ranks: bitwise the same in all of them.
  template <class R>
  __device__ __forceinline__ float total(int row) const {
    float total = part[row][0];
#pragma unroll
    for (int rank = 1; rank < kCluster; ++rank) total = R::combine(total, part[row][rank]);
    return total;
  }
};

// New keys to a cache of 16-bit elements, which has no scale. Needs attention/rotary.cuh.jinja.

struct HalfCache {
  static __device__ __forceinline__ void store(char* row, int column, const float (&x)[8], float) {
    *reinterpret_cast<uint4*>(row + 2 * column) = pack8(x);
  }
  static __device__ __forceinline__ void store(char* row, int column, const uint4& words, float) {
    *reinterpret_cast<uint4*>(row + 2 * column) = words;
  }
};
using Cache = HalfCache;

// grid: 1  block: 64
// args: [{"name": "y", "type": "f32", "size": 64, "expect": "iota"}]
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
template <class T>
__device__ std::enable_if_t<std::is_unsigned_v<T>, T> low(T a) {
  return std::min(a, std::numeric_limits<T>::max());
}
__global__ void bounds(float* y) {
  const uint32_t t = low(threadIdx.x);
  float v = std::max(static_cast<float>(t), -INFINITY);
  if (v < std::numeric_limits<float>::lowest() || v > FLT_MAX || t > INT_MAX || isnan(v - NAN) == 0 || M_PI < 3) v = -1;
  int a = 1, b = 2;
  std::swap(a, b);
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  y[t] = __uint_as_float(bits) + a - 2 * b;
}

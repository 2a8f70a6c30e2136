// Interval arithmetic: bounds of an expression over a box of indices, and the resulting truth of a condition. A bound
// of NaN stands for an unknown value: every function propagates it, and no comparison with it is decided. Sums and
// products of floats round like those of single elements, so the bounds also hold for computed values.

template <class T>
struct Bounds {
  T low, high;
};
/// Truth of a condition over a box: some element may satisfy it; all elements satisfy it.
struct Truth {
  bool some, all;
};

template <class T>
__device__ __forceinline__ constexpr Bounds<T> at(T x) {
  return {x, x};
}
__device__ __forceinline__ Bounds<float> unknown() { return at(__int_as_float(0x7fffffff)); }
/// An int in the bits of a float, as far as floats are exact.
__device__ __forceinline__ Bounds<float> at_whole(float bits) {
  const int x = __float_as_int(bits);
  return -(1 << 24) <= x && x <= 1 << 24 ? at(static_cast<float>(x)) : unknown();
}
__device__ __forceinline__ constexpr Truth perhaps() { return {true, false}; }

template <class T>
__device__ __forceinline__ T smaller(T a, T b) {
  return a != a || a < b ? a : b;
}
template <class T>
__device__ __forceinline__ T larger(T a, T b) {
  return a != a || a > b ? a : b;
}

template <class A, class B>
__device__ __forceinline__ auto add(Bounds<A> a, Bounds<B> b) -> Bounds<decltype(A() + B())> {
  return {a.low + b.low, a.high + b.high};
}
template <class A, class B>
__device__ __forceinline__ auto subtract(Bounds<A> a, Bounds<B> b) -> Bounds<decltype(A() - B())> {
  return {a.low - b.high, a.high - b.low};
}
template <class A, class B>
__device__ __forceinline__ auto multiply(Bounds<A> a, Bounds<B> b) -> Bounds<decltype(A() * B())> {
  using T = decltype(A() * B());
  const T w = a.low * b.low, x = a.low * b.high, y = a.high * b.low, z = a.high * b.high;
  // A NaN in a single product propagates too: smaller(a, NaN) is NaN.
  return {smaller(smaller(w, x), smaller(y, z)), larger(larger(w, x), larger(y, z))};
}
template <class T>
__device__ __forceinline__ Bounds<T> negate(Bounds<T> a) {
  return {-a.high, -a.low};
}
template <class A, class B>
__device__ __forceinline__ auto lesser(Bounds<A> a, Bounds<B> b) -> Bounds<decltype(A() + B())> {
  using T = decltype(A() + B());
  return {smaller<T>(a.low, b.low), smaller<T>(a.high, b.high)};
}
template <class A, class B>
__device__ __forceinline__ auto greater(Bounds<A> a, Bounds<B> b) -> Bounds<decltype(A() + B())> {
  using T = decltype(A() + B());
  return {larger<T>(a.low, b.low), larger<T>(a.high, b.high)};
}
template <class T>
__device__ __forceinline__ Bounds<T> magnitude(Bounds<T> a) {
  if (a.low <= T(0) && a.high >= T(0)) return {T(0), larger(-a.low, a.high)};
  return {larger(a.low, -a.high), larger(-a.low, a.high)};
}
/// By a positive constant, rounded down.
__device__ __forceinline__ int floor_quotient(int a, int n) { return a / n - (a % n < 0); }
__device__ __forceinline__ Bounds<int> floor_divide(Bounds<int> a, int n) {
  return {floor_quotient(a.low, n), floor_quotient(a.high, n)};
}
__device__ __forceinline__ Bounds<int> modulo(Bounds<int> a, int n) {
  const int first = floor_quotient(a.low, n) * n;
  if (floor_quotient(a.high, n) * n != first) return {0, n - 1};
  return {a.low - first, a.high - first};
}
template <class A, class B>
__device__ __forceinline__ auto choose(Truth c, Bounds<A> a, Bounds<B> b) -> Bounds<decltype(A() + B())> {
  using T = decltype(A() + B());
  if (c.all) return {T(a.low), T(a.high)};
  if (!c.some) return {T(b.low), T(b.high)};
  return {smaller<T>(a.low, b.low), larger<T>(a.high, b.high)};
}

template <class A, class B>
__device__ __forceinline__ Truth less(Bounds<A> a, Bounds<B> b) {
  return {!(a.low >= b.high), a.high < b.low};
}
template <class A, class B>
__device__ __forceinline__ Truth less_equal(Bounds<A> a, Bounds<B> b) {
  return {!(a.low > b.high), a.high <= b.low};
}
template <class A, class B>
__device__ __forceinline__ Truth equal(Bounds<A> a, Bounds<B> b) {
  return {!(a.low > b.high || a.high < b.low), a.low == a.high && b.low == b.high && a.low == b.low};
}
__device__ __forceinline__ constexpr Truth negate(Truth a) { return {!a.all, !a.some}; }
__device__ __forceinline__ constexpr Truth both(Truth a, Truth b) { return {a.some && b.some, a.all && b.all}; }
__device__ __forceinline__ constexpr Truth either(Truth a, Truth b) { return {a.some || b.some, a.all || b.all}; }
__device__ __forceinline__ constexpr Truth choose(Truth c, Truth a, Truth b) {
  return either(both(c, a), both(negate(c), b));
}

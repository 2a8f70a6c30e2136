// grid: 1  block: 64
// args: [{"name": "y", "type": "f64", "size": 64, "expect": "iota"}]
struct Point { float x, y; char tag; };
struct Mixed { double d; char c; short s[3]; };
__device__ __noinline__ Point middle(Point a, Point b) { return {(a.x + b.x) / 2, (a.y + b.y) / 2, static_cast<char>(a.tag + b.tag)}; }
__device__ __noinline__ Mixed make(int i) { return {i * 0.5, 'a', {1, 2, static_cast<short>(i)}}; }
__device__ __noinline__ double use(Mixed m, float3 f, const Point& p) { return m.d * 2 + m.c - 'a' + m.s[0] - m.s[1] + f.y + f.x - p.tag; }
__global__ void structs(double* y) {
  const float t = threadIdx.x;
  const Point m = middle({t, 1, 1}, {t, 3, 2});
  y[threadIdx.x] = use(make(threadIdx.x), make_float3(2, m.y, 0), m) + (m.x - t);
}

// Functions of a table, and of a virtual base, chosen by the lane; one of them calls on through another pointer.
// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 64, "expect": [0, 0, 8, -3, 24, 20, 12, 42, 80, -9, 120, 110, 24, 156, 224, -15, 288, 272, 36, 342, 440, -21, 528, 506, 48, 600, 728, -27, 840, 812, 60, 930, 1152, -66, 1292, 1155, 144, 1295, 1596, -78, 1760, 1599, 168, 1763, 2112, -90, 2300, 2115, 192, 2303, 2700, -102, 2912, 2703, 216, 2915, 3360, -114, 3596, 3363, 240, 3599, 4092, -126]}, {"type": "i32", "value": 1}]
struct Shape {
  __device__ virtual int area(int a) const = 0;
};
struct Square : Shape {
  __device__ __noinline__ int area(int a) const override { return a * a; }
};
struct Line : Shape {
  __device__ __noinline__ int area(int) const override { return 0; }
};
using Step = int (*)(int);
__device__ __noinline__ int twice(int a) { return 2 * a; }
__device__ __noinline__ int minus(int a) { return -a; }
__device__ Step table[2] = {twice, minus};
__device__ __noinline__ int twice_and(int a) { return table[a & 1](2 * a); }

__global__ void calls(int* y, int odd) {
  const int t = threadIdx.x;
  Square square;
  Line line;
  const Shape* const shape = t % 3 ? static_cast<const Shape*>(&square) : &line;
  const Step step = t & 32 ? twice_and : table[t & odd];
  y[t] = step(t) + shape->area(t);
}

#include <vector>
#include <iostream>
#include "own.h"
#define CHECK(x) do { if ((x) != 0) { std::cerr << #x; } } while (0)
namespace app {
template <class T, int N = 4> struct Tile {
  T v[N];
  __device__ T& operator[](int i) { return v[i]; }
  void print() const { std::cout << v[0]; }
};
std::vector<int> all = {1, 2, 3};
}
template <typename T> __global__ void __launch_bounds__(256) scale(T* y, T a, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] *= a;
}
template __global__ void scale<float>(float*, float, int);
__host__ __device__ inline int add(int a, int b) { return a + b; }
int main(int argc, char** argv) {
  float* y;
  CHECK(cudaMalloc(&y, 4));
  scale<float><<<1, 256>>>(y, 2.f, 1);
  return 0;
}

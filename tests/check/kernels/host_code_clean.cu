// grid: 2  block: 32  kernel: saxpy
// args: [{"type": "struct", "fields": [{"type": "f32", "value": 2}, {"type": "i32", "value": 60}]}, {"type": "f32", "size": 64, "fill": 3}, {"type": "f32", "size": 64, "fill": 1, "tolerance": 6, "expect": 7}]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <iostream>
#include <string>
#include <vector>

#define CHECK(call)                                           \
  do {                                                        \
    const cudaError_t status = (call);                        \
    if (status != cudaSuccess) {                              \
      std::fprintf(stderr, "%s\n", cudaGetErrorString(status)); \
      std::exit(EXIT_FAILURE);                                \
    }                                                         \
  } while (0)
#define ON_BOTH __host__ __device__

struct Step {
  float a;
  int n;
  Step(float scale, int size) : a(scale), n{size} {}
  ON_BOTH bool has(int i) const { return i < n; }
  std::string text() const { return std::to_string(a); }
};

class Timer {
 public:
  Timer() : began_(std::chrono::steady_clock::now()) {}
  double seconds() const;

 private:
  std::chrono::steady_clock::time_point began_;
};
double Timer::seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

int calls = 0;
static std::vector<float> results;
constexpr int twice(int x) { return 2 * x; }
const int kBlock = 16 * twice(1);
void fill(std::vector<float>& x);

template <class T>
ON_BOTH T fused(T a, T x, T y) {
  return a * x + y;
}

#ifdef USE_DOUBLE
void unused() {
#else
void used() {
#endif
  ++calls;
}

__global__ void saxpy(Step step, const float* x, float* y) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  uint last = twice(1);
  if (step.has(i) && last == 2) y[i] = fused(step.a, x[i], y[i]);
}

namespace host {
float* copy_of(const std::vector<float>& from) {
  float* to = nullptr;
  CHECK(cudaMalloc(&to, from.size() * sizeof(float)));
  CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(float), cudaMemcpyHostToDevice));
  return to;
}
}  // namespace host

auto later = [](int x) { return x + 1; };
void fill(std::vector<float>& x) { std::generate(x.begin(), x.end(), [] { return 1.f; }); }

int main(int argc, char** argv) {
  std::vector<float> x(64);
  fill(x);
  Timer timer;
  saxpy<<<2, kBlock>>>(Step(2.f, 60), host::copy_of(x), host::copy_of(x));
  CHECK(cudaDeviceSynchronize());
  std::cout << timer.seconds() << " s, " << argc << '\n';
  return 0;
}

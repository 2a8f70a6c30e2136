// Device memory by the CUDA driver, and bf16: what a program has anyway, from its CUDA toolkit or its tensor library.
#pragma once
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

/// The CUDA driver, of which no header is needed.
struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  template <class F>
  F* call(const char* name) const {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  /// Makes the primary context of the first device current.
  bool begin() const {
    void* context = nullptr;
    return library && call<int(unsigned)>("cuInit")(0) == 0 &&
           call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0) == 0 &&
           call<int(void*)>("cuCtxSetCurrent")(context) == 0;
  }
  unsigned long long allocate(size_t bytes) const {
    unsigned long long at = 0;
    return call<int(unsigned long long*, size_t)>("cuMemAlloc_v2")(&at, bytes) == 0 ? at : 0;
  }
  bool write(unsigned long long to, const void* from, size_t bytes) const {
    return call<int(unsigned long long, const void*, size_t)>("cuMemcpyHtoD_v2")(to, from, bytes) == 0;
  }
  bool read(void* to, unsigned long long from, size_t bytes) const {
    return call<int()>("cuCtxSynchronize")() == 0 &&
           call<int(void*, unsigned long long, size_t)>("cuMemcpyDtoH_v2")(to, from, bytes) == 0;
  }
};

inline uint16_t to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // round to nearest even
}
inline float from_bf16(uint16_t half) {
  const uint32_t bits = uint32_t{half} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// `count` values from -magnitude to magnitude on the device, and as they are there.
struct Tensor {
  unsigned long long at = 0;
  std::vector<float> values;
  Tensor(const Driver& driver, size_t count, uint32_t seed, float magnitude = 2)
      : at(driver.allocate(2 * count)), values(count) {
    std::vector<uint16_t> halves(count);
    for (size_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;  // Numerical Recipes, "Quick and Dirty" generators
      halves[i] = to_bf16(magnitude * (static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1));
      values[i] = from_bf16(halves[i]);
    }
    driver.write(at, halves.data(), 2 * count);
  }
  bool fetch(const Driver& driver) {
    std::vector<uint16_t> halves(values.size());
    const bool read = driver.read(halves.data(), at, 2 * halves.size());
    for (size_t i = 0; i < halves.size(); ++i) values[i] = from_bf16(halves[i]);
    return read;
  }
};

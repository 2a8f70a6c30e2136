// Host code that the sections share: errors, the JSON of a section, device buffers, launches.
#pragma once

#include <cuda_runtime.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "device.cuh"

using Seconds = std::chrono::duration<double>;

[[noreturn]] void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("probe: ", stderr);
  vfprintf(stderr, format, arguments);
  fputs("\n", stderr);
  va_end(arguments);
  fflush(nullptr);
  _exit(1);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    fail("%s: %s", what, cudaGetErrorString(error));
  }
}
#define CHECK(call) check(call, #call)

// One section's JSON: "name": {"key": value, ...}. Lines are written as soon as they are known.
class Section {
 public:
  explicit Section(const char* name) { printf("\"%s\": {", name); }
  ~Section() {
    int failed = 0;
    if (cudaMemcpyFromSymbol(&failed, g_failed, sizeof failed) != cudaSuccess) {
      failed = 2;
    }
    put("wait_gave_up", failed);
    printf("\n  }");
    fflush(stdout);
  }
  void put(const std::string& key, double value) {
    printf("%s\n    \"%s\": %.6g", first_ ? "" : ",", key.c_str(), std::isfinite(value) ? value : -1.0);
    fflush(stdout);
    first_ = false;
  }

 private:
  bool first_ = true;
};

template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    CHECK(cudaMalloc(&data_, count * sizeof(T)));
    CHECK(cudaMemset(data_, 0, count * sizeof(T)));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  T* get() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    CHECK(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? -1 : values[values.size() / 2];
}

template <class It>
double medianOf(It begin, It end) {
  return median(std::vector<double>(begin, end));
}

void sync(const char* what) {
  check(cudaGetLastError(), what);
  check(cudaDeviceSynchronize(), what);
}

template <class F>
void launch(F* kernel, int grid, int block, size_t shared, int cluster, bool programmatic, void** arguments) {
  CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(shared)));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(block);
  config.dynamicSmemBytes = shared;
  cudaLaunchAttribute attributes[2];
  config.attrs = attributes;
  if (cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = cluster;
    attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs].val.clusterDim.z = 1;
    ++config.numAttrs;
  }
  if (programmatic) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
    ++config.numAttrs;
  }
  CHECK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments));
}

// Milliseconds of the device between two events round `body`.
double eventMs(const std::function<void()>& body) {
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start));
  body();
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return ms;
}

int multiprocessors() {
  int count = 0;
  CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

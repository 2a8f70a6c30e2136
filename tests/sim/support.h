// Helpers of the simulator tests: a small launcher around the executor, PTX boilerplate, fixtures.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "runtime/executor.h"

namespace roofgen::sim_test {

/// The text of tests/sim/fixtures/<name>.
std::string fixture(const std::string& name);

/// A kernel `k` with 64-bit parameters p0..p{n-1} around `body`, with declared registers %r<64>, %rd<64>, %f<64>,
/// %fd<32>, %rs<32>, %p<32>. `head` precedes the kernel.
std::string kernel_text(int params, const std::string& body, const std::string& head = "");

/// An executor with one kernel; arguments are given by position.
class Bench {
 public:
  Bench();
  Executor& executor() { return *executor_; }
  /// Loads PTX; returns the error message, or "".
  std::string load(const std::string& ptx, const std::string& entry = "k");
  /// A buffer with `values`, written by the host (therefore not an input).
  template <class T>
  DevicePtr buffer(const std::vector<T>& values, const std::string& label = "buf") {
    DevicePtr p = poisoned(values.size() * sizeof(T), label);
    if (!executor_->write(p, std::as_bytes(std::span(values)))) abort();
    return p;
  }
  DevicePtr poisoned(uint64_t bytes, const std::string& label = "out");
  template <class T>
  std::vector<T> read(DevicePtr p, size_t n) {
    std::vector<T> out(n);
    if (!executor_->read(p, std::as_writable_bytes(std::span(out)))) abort();
    return out;
  }
  Bench& arg(DevicePtr p);
  Bench& arg64(uint64_t v);
  Bench& arg32(uint32_t v);
  /// Cluster size of the following runs.
  Bench& clusters(Dim3 ctas) { return launch_.cluster = ctas, *this; }
  /// Whether the following runs are dependent launches.
  Bench& overlaps(bool overlap) { return launch_.overlap = overlap, *this; }
  /// Runs with the given arguments and clears them. Aborts on an Error.
  RunResult run(Dim3 grid, Dim3 block, uint32_t smem = 0, const RunOptions& options = {});
  /// Kind of the first finding, "" without findings.
  std::string kind(Dim3 grid, Dim3 block, uint32_t smem = 0);

 private:
  std::unique_ptr<Executor> executor_;
  ModuleId module_;
  Launch launch_;
};

uint16_t to_bf16(float x);
float from_bf16(uint16_t x);

}  // namespace roofgen::sim_test
